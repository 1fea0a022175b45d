//! Several tables in one: what a metric gives for a rank that is made of several tables.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Schema};

use crate::Error;

/// A table of one row, with a column for each of the tables: the list of its rows.
///
/// # Errors
///
/// When it is too large for Arrow.
pub fn bundle(tables: &[(&str, RecordBatch)]) -> Result<RecordBatch, Error> {
    let mut fields = Vec::with_capacity(tables.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(tables.len());
    for (name, table) in tables {
        let rows = StructArray::from(table.clone());
        let item = Arc::new(Field::new("item", rows.data_type().clone(), false));
        let ends = OffsetBuffer::from_lengths([rows.len()]);
        let list = ListArray::try_new(item, ends, Arc::new(rows), None)?;
        fields.push(Field::new(*name, list.data_type().clone(), false));
        arrays.push(Arc::new(list));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// One of the tables of a [`bundle`]; `None` if it is not in it.
pub fn unbundle(bundle: &RecordBatch, name: &str) -> Option<RecordBatch> {
    let list: &ListArray = bundle.column_by_name(name)?.as_any().downcast_ref()?;
    let rows = list.values().as_any().downcast_ref::<StructArray>()?;
    Some(RecordBatch::from(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use crate::table::Rows;

    #[test]
    fn a_bundle_gives_back_its_tables_with_what_describes_them() {
        const COLUMNS: &[Column] =
            &[Column::moment("ts", "when"), Column::text("name", "what it is called")];
        let mut rows = Rows::new(COLUMNS);
        rows.push([7i64.into(), "a".into()]);
        rows.push([8i64.into(), crate::table::Cell::Null]);
        let table = rows.finish().unwrap();
        let empty = Rows::new(COLUMNS).finish().unwrap();
        let both = bundle(&[("one", table.clone()), ("none", empty.clone())]).unwrap();
        assert_eq!(unbundle(&both, "one"), Some(table));
        assert_eq!(unbundle(&both, "none"), Some(empty));
        assert_eq!(unbundle(&both, "other"), None);
    }
}
