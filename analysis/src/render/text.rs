//! Tables for the terminal.

use arrow_array::RecordBatch;

use super::{Shown, cell};

/// Characters of a cell that are shown.
const WIDEST: usize = 60;

/// The table, with units beside the names. Long texts are cut in the middle; of more than
/// `limit` rows the first are shown, and how many there are.
pub fn text(batch: &RecordBatch, limit: Option<usize>) -> String {
    let schema = batch.schema();
    let shown = limit.unwrap_or(usize::MAX).min(batch.num_rows());
    let mut columns: Vec<(Vec<String>, bool)> = Vec::new();
    for (column, field) in schema.fields().iter().enumerate() {
        let unit = field.metadata().get("unit").map_or("", String::as_str);
        let mut cells = vec![match unit {
            "" | "1" => field.name().clone(),
            "ns" => format!("{} [µs]", field.name()),
            unit => format!("{} [{unit}]", field.name()),
        }];
        let mut left = false;
        for row in 0..shown {
            cells.push(match cell(batch, column, row) {
                Shown::Null => "-".to_owned(),
                Shown::Int(n) if unit == "ns" => micros(n as f64),
                Shown::Float(x) if unit == "ns" => micros(x),
                Shown::Int(n) => n.to_string(),
                Shown::Float(x) => format!("{x:.3}"),
                Shown::Text(text) => {
                    left = true;
                    cut(text)
                }
            });
        }
        columns.push((cells, left));
    }
    let mut out = String::new();
    for line in 0..=shown {
        let mut text = String::new();
        for (cells, left) in &columns {
            let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            let cell = &cells[line];
            let room = " ".repeat(width - cell.chars().count());
            text += &if *left { format!("{cell}{room}  ") } else { format!("{room}{cell}  ") };
        }
        out += text.trim_end();
        out.push('\n');
    }
    if shown < batch.num_rows() {
        out += &format!("… {} of {} rows; --limit shows more\n", shown, batch.num_rows());
    }
    out
}

/// Microseconds with all their digits, in groups of three.
fn micros(nanos: f64) -> String {
    let text = format!("{:.3}", nanos / 1e3);
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{fraction}")
}

fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= WIDEST {
        return text.to_owned();
    }
    let head: String = text.chars().take(WIDEST * 2 / 3).collect();
    let tail: String = text.chars().skip(count - WIDEST / 3 + 1).collect();
    format!("{head}…{tail}")
}
