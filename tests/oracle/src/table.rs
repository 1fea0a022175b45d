//! Answers as text.

use serde_json::Value;

/// One value as it stands in a table.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => {
            let escape = |c: char| {
                if c.is_control() { c.escape_default().collect() } else { String::from(c) }
            };
            text.chars().map(escape).collect()
        }
        other => other.to_string(),
    }
}

/// A line per row below a line of names, columns two spaces apart, no trailing space.
pub(crate) fn render(columns: &[String], rows: &[Vec<Value>]) -> String {
    let body = rows.iter().map(|row| row.iter().map(cell).collect());
    let lines: Vec<Vec<String>> = std::iter::once(columns.to_vec()).chain(body).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).filter_map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
