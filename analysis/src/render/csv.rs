//! Comma-separated values, with a line of names.

use arrow_array::RecordBatch;

use super::{Shown, cell, float};

/// The table; nulls are empty.
pub fn csv(batch: &RecordBatch) -> String {
    let schema = batch.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| quoted(field.name())).collect();
    let mut out = names.join(",") + "\n";
    for row in 0..batch.num_rows() {
        for column in 0..batch.num_columns() {
            if column > 0 {
                out.push(',');
            }
            match cell(batch, column, row) {
                Shown::Null => {}
                Shown::Int(n) => out += &n.to_string(),
                Shown::Float(x) => out += &float(x),
                Shown::Text(text) => out += &quoted(text),
            }
        }
        out.push('\n');
    }
    out
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
