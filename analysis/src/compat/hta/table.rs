//! Tables as HTA has them: its names, microseconds, its rounding.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::Error;
use crate::stats::round;
use crate::table::{Cells, Column, Type, Unit};

/// Renames the columns, turns nanoseconds into microseconds, rounds, and leaves out what HTA
/// does not have.
///
/// # Errors
///
/// When Arrow refuses the result.
pub fn table(batch: &RecordBatch, columns: &[Column]) -> Result<RecordBatch, Error> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for column in columns.iter().filter(|column| !column.hta.is_empty()) {
        let Some(array) = batch.column_by_name(column.name) else { continue };
        let times = matches!(column.unit, Unit::Duration | Unit::Moment);
        let array = if times || (column.ty == Type::Float && column.digits.is_some()) {
            let cells = Cells::of(batch);
            let value = |row| {
                let Some(value) = cells.float(column.name, row) else { return column.hta_null };
                let value = if times { value / 1e3 } else { value };
                Some(column.digits.map_or(value, |digits| round(value, digits)))
            };
            Arc::new((0..batch.num_rows()).map(value).collect::<Float64Array>()) as ArrayRef
        } else {
            Arc::clone(array)
        };
        let ty: &DataType = array.data_type();
        fields.push(Field::new(column.hta, ty.clone(), true));
        arrays.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
