//! Comma-separated values, with a line of names.

use std::fmt::Write as _;

use arrow_array::RecordBatch;

use super::{Column, Shown, float};

/// The table; nulls are empty.
pub fn csv(batch: &RecordBatch) -> String {
    let mut out = String::new();
    for (at, field) in batch.schema().fields().iter().enumerate() {
        separate(&mut out, at);
        quote(&mut out, field.name());
    }
    out.push('\n');
    let columns: Vec<Column<'_>> = batch.columns().iter().map(Column::of).collect();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            separate(&mut out, at);
            match column.cell(row) {
                Shown::Null => {}
                Shown::Int(n) => _ = write!(out, "{n}"),
                Shown::Float(x) => out += &float(x),
                Shown::Text(text) => quote(&mut out, text),
            }
        }
        out.push('\n');
    }
    out
}

fn separate(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

fn quote(out: &mut String, text: &str) {
    if text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        *out += "\"";
        *out += &text.replace('"', "\"\"");
        *out += "\"";
    } else {
        *out += text;
    }
}
