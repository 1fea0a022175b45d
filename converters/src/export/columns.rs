//! Columns of some rows of a table.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

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
        let names = MapFieldNames {
            entry: "key_value".to_owned(),
            key: "key".to_owned(),
            value: "value".to_owned(),
        };
        let mut map = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
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
                map.keys().append_value(trace.strings.get(name));
                match value {
                    Value::Null => map.values().append_null(),
                    Value::Str(text) => map.values().append_value(trace.strings.get(text)),
                    value => map.values().append_value(trace.json(value)),
                }
            }
            map.append(true).map_err(io::Error::other)?;
        }
        let array = map.finish();
        let ty = arrow_array::Array::data_type(&array).clone();
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
