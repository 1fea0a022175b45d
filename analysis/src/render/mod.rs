//! Tables as text, JSON and CSV, Parquet and Arrow.

mod csv;
mod json;
mod packed;
mod stacks;
mod text;
mod torch;

pub use csv::{csv, write_csv};
pub use json::json;
pub use packed::{arrow, parquet};
pub use stacks::{collapsed, speedscope};
pub use text::text;
pub use torch::TorchTable;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

/// A cell as it is written.
enum Shown<'a> {
    Null,
    Int(i64),
    Float(f64),
    Text(&'a str),
}

/// A column, of the type that it has.
enum Column<'a> {
    Ints(&'a Int64Array),
    Floats(&'a Float64Array),
    Texts(&'a StringArray),
    Other,
}

impl<'a> Column<'a> {
    fn of(array: &'a ArrayRef) -> Column<'a> {
        let any = array.as_any();
        if let Some(ints) = any.downcast_ref() {
            Column::Ints(ints)
        } else if let Some(floats) = any.downcast_ref() {
            Column::Floats(floats)
        } else if let Some(texts) = any.downcast_ref() {
            Column::Texts(texts)
        } else {
            Column::Other
        }
    }

    fn cell(&self, row: usize) -> Shown<'a> {
        match self {
            Column::Ints(ints) if ints.is_valid(row) => Shown::Int(ints.value(row)),
            Column::Floats(floats) if floats.is_valid(row) => Shown::Float(floats.value(row)),
            Column::Texts(texts) if texts.is_valid(row) => Shown::Text(texts.value(row)),
            _ => Shown::Null,
        }
    }
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> Shown<'_> {
    Column::of(batch.column(column)).cell(row)
}

/// A number that reads back as the same, and tells that it is not whole.
fn float(x: f64) -> String {
    if x == x.trunc() && x.abs() < 1e15 { format!("{x:.1}") } else { format!("{x}") }
}
