//! Tables as text, JSON and CSV, Parquet and Arrow.

mod csv;
mod json;
mod packed;
mod stacks;
mod text;
mod torch;

pub use csv::csv;
pub use json::json;
pub use packed::{arrow, parquet};
pub use stacks::{collapsed, speedscope};
pub use text::text;
pub use torch::TorchTable;

use arrow_array::{Array, Float64Array, Int64Array, RecordBatch, StringArray};

/// A cell as it is written.
enum Shown<'a> {
    Null,
    Int(i64),
    Float(f64),
    Text(&'a str),
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> Shown<'_> {
    let array = batch.column(column);
    if array.is_null(row) {
        return Shown::Null;
    }
    let any = array.as_any();
    if let Some(ints) = any.downcast_ref::<Int64Array>() {
        Shown::Int(ints.value(row))
    } else if let Some(floats) = any.downcast_ref::<Float64Array>() {
        Shown::Float(floats.value(row))
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        Shown::Text(texts.value(row))
    } else {
        Shown::Null
    }
}

/// A number that reads back as the same, and tells that it is not whole.
fn float(x: f64) -> String {
    if x == x.trunc() && x.abs() < 1e15 { format!("{x:.1}") } else { format!("{x}") }
}
