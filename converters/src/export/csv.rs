//! Rows as text: RFC 4180. What is missing is an empty field, a map is an object in JSON.

use std::io::{self, Write};

use arrow_array::{Array, Float64Array, Int64Array, MapArray, RecordBatch, StringArray};
use arrow_schema::Schema;

use crate::json::write_string;

/// The names of the columns.
pub(super) fn header(out: &mut impl Write, schema: &Schema) -> io::Result<()> {
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        text(out, field.name())?;
    }
    out.write_all(b"\r\n")
}

/// Rows.
pub(super) fn rows(out: &mut impl Write, batch: &RecordBatch) -> io::Result<()> {
    for row in 0..batch.num_rows() {
        for (index, column) in batch.columns().iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            if !column.is_null(row) {
                value(out, column.as_ref(), row)?;
            }
        }
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

fn value(out: &mut impl Write, column: &dyn Array, row: usize) -> io::Result<()> {
    let column = column.as_any();
    if let Some(texts) = column.downcast_ref::<StringArray>() {
        text(out, texts.value(row))
    } else if let Some(numbers) = column.downcast_ref::<Int64Array>() {
        write!(out, "{}", numbers.value(row))
    } else if let Some(numbers) = column.downcast_ref::<Float64Array>() {
        write!(out, "{:?}", numbers.value(row))
    } else if let Some(maps) = column.downcast_ref::<MapArray>() {
        text(out, &object(maps, row))
    } else {
        Err(io::Error::other("a column of a type that tables do not have"))
    }
}

fn object(maps: &MapArray, row: usize) -> String {
    let (keys, values) = (maps.keys().as_any(), maps.values().as_any());
    let (keys, values) = (keys.downcast_ref::<StringArray>(), values.downcast_ref::<StringArray>());
    let Some((keys, values)) = keys.zip(values) else { return "{}".to_owned() };
    let range = maps.value_offsets()[row] as usize..maps.value_offsets()[row + 1] as usize;
    let mut json = b"{".to_vec();
    for entry in range.clone() {
        if entry > range.start {
            json.extend_from_slice(b", ");
        }
        write_string(&mut json, keys.value(entry));
        json.extend_from_slice(b": ");
        if values.is_null(entry) {
            json.extend_from_slice(b"null");
        } else {
            write_string(&mut json, values.value(entry));
        }
    }
    json.push(b'}');
    String::from_utf8_lossy(&json).into_owned()
}

/// A text, in quotes where it must be; an empty one too, to tell it from what is missing.
fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    if !text.is_empty() && !text.contains(['"', ',', '\r', '\n']) {
        return out.write_all(text.as_bytes());
    }
    write!(out, "\"{}\"", text.replace('"', "\"\""))
}
