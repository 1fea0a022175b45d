//! Columns of some rows of a table.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::trace::{StrId, Trace, Value};

/// Columns that are being put together.
#[derive(Default)]
pub(super) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Whole numbers.
    pub(super) fn int(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        let array = Int64Array::from_iter_values(values);
        self.push(Field::new(name, DataType::Int64, false), Arc::new(array));
    }

    /// Whole numbers, some of them missing.
    pub(super) fn maybe_int(&mut self, name: &str, values: impl Iterator<Item = Option<i64>>) {
        let array = Int64Array::from_iter(values);
        self.push(Field::new(name, DataType::Int64, true), Arc::new(array));
    }

    /// Floating point.
    pub(super) fn float(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        let array = Float64Array::from_iter_values(values);
        self.push(Field::new(name, DataType::Float64, false), Arc::new(array));
    }

    /// Texts.
    pub(super) fn text<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        let array = StringArray::from_iter_values(values);
        self.push(Field::new(name, DataType::Utf8, false), Arc::new(array));
    }

    /// Texts, some of them missing.
    pub(super) fn maybe_text<'a>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) {
        let array = StringArray::from_iter(values);
        self.push(Field::new(name, DataType::Utf8, true), Arc::new(array));
    }

    /// Arguments: a map from names to texts. Of a name that repeats, the last value counts,
    /// since maps have none that do.
    pub(super) fn args(
        &mut self,
        trace: &Trace,
        rows: impl Iterator<Item = impl Iterator<Item = (StrId, Value)>>,
    ) -> io::Result<()> {
        let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
        let mut ends = vec![0];
        let mut last: Vec<(StrId, Value)> = Vec::new();
        for entries in rows {
            last.clear();
            for (name, value) in entries {
                match last.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = value,
                    None => last.push((name, value)),
                }
            }
            for &(name, value) in &last {
                keys.append_value(trace.strings.get(name));
                match value {
                    Value::Null => values.append_null(),
                    Value::Str(text) => values.append_value(trace.strings.get(text)),
                    value => values.append_value(trace.json(value)),
                }
            }
            ends.push(i32::try_from(keys.len()).map_err(io::Error::other)?);
        }
        let array = map(keys.finish(), values.finish(), ends)?;
        let ty = array.data_type().clone();
        self.push(Field::new("args", ty, false), Arc::new(array));
        Ok(())
    }

    fn push(&mut self, field: Field, array: ArrayRef) {
        self.fields.push(field);
        self.arrays.push(array);
    }

    /// The rows.
    pub(super) fn finish(self) -> io::Result<RecordBatch> {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).map_err(io::Error::other)
    }
}

/// Maps from names to texts, each between two of `ends`. Arrow's `MapBuilder` does the same with code for
/// arrays of every type, 0.3 MB.
fn map(keys: StringArray, values: StringArray, ends: Vec<i32>) -> io::Result<MapArray> {
    let ends = OffsetBuffer::new(ends.into());
    let fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    let entry = Field::new("key_value", DataType::Struct(fields.clone()), false);
    StructArray::try_new(fields, vec![Arc::new(keys), Arc::new(values)], None)
        .and_then(|entries| MapArray::try_new(Arc::new(entry), ends, entries, None, false))
        .map_err(io::Error::other)
}
