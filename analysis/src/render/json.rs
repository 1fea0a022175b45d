//! JSON: `{"metric": …, "columns": [{"name", "unit", "type"}], "rows": [{…}]}`.

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use kymograph_converters::json::write_string;

use super::{Shown, cell, float};

/// The table of a metric; nulls are null.
pub fn json(metric: &str, batch: &RecordBatch) -> String {
    let mut out = String::from("{\"metric\": ");
    put(&mut out, metric);
    out += ",\n\"columns\": [";
    let schema = batch.schema();
    for (n, field) in schema.fields().iter().enumerate() {
        out += if n == 0 { "\n  {\"name\": " } else { ",\n  {\"name\": " };
        put(&mut out, field.name());
        out += ", \"unit\": ";
        put(&mut out, field.metadata().get("unit").map_or("", String::as_str));
        out += match field.data_type() {
            DataType::Int64 => ", \"type\": \"int\"}",
            DataType::Float64 => ", \"type\": \"float\"}",
            _ => ", \"type\": \"text\"}",
        };
    }
    out += "],\n\"rows\": [";
    for row in 0..batch.num_rows() {
        out += if row == 0 { "\n  {" } else { ",\n  {" };
        for (column, field) in schema.fields().iter().enumerate() {
            if column > 0 {
                out += ", ";
            }
            put(&mut out, field.name());
            out += ": ";
            match cell(batch, column, row) {
                Shown::Float(x) if x.is_finite() => out += &float(x),
                Shown::Null | Shown::Float(_) => out += "null",
                Shown::Int(n) => out += &n.to_string(),
                Shown::Text(text) => put(&mut out, text),
            }
        }
        out.push('}');
    }
    out + "\n]}\n"
}

pub(super) fn put(out: &mut String, text: &str) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    write_string(&mut bytes, text);
    out.push_str(&String::from_utf8_lossy(&bytes));
}
