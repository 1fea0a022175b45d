//! Comma-separated values, with a line of names.

use std::fmt::Write as _;
use std::io;

use arrow_array::RecordBatch;

use super::{Column, Shown, float};

/// Text is handed on when it is so long.
const PIECE: usize = 1 << 16;

/// The table; nulls are empty.
pub fn csv(batch: &RecordBatch) -> String {
    let mut out = String::new();
    let _ = lines(batch, &mut out, &mut |_| Ok(()));
    out
}

/// Writes the table in pieces, of which a large one is never all in memory.
///
/// # Errors
///
/// Those of `out`.
pub fn write_csv(batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = String::new();
    lines(batch, &mut text, &mut |text| {
        if text.len() >= PIECE {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
        Ok(())
    })?;
    out.write_all(text.as_bytes())
}

/// Adds a line of names and the rows to `out`, and says after each.
fn lines(
    batch: &RecordBatch,
    out: &mut String,
    after: &mut dyn FnMut(&mut String) -> io::Result<()>,
) -> io::Result<()> {
    for (at, field) in batch.schema().fields().iter().enumerate() {
        separate(out, at);
        quote(out, field.name());
    }
    out.push('\n');
    let columns: Vec<Column<'_>> = batch.columns().iter().map(Column::of).collect();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            separate(out, at);
            match column.cell(row) {
                Shown::Null => {}
                Shown::Int(n) => _ = write!(out, "{n}"),
                Shown::Float(x) => *out += &float(x),
                Shown::Text(text) => quote(out, text),
            }
        }
        out.push('\n');
        after(out)?;
    }
    Ok(())
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
