//! A table as columns of JSON: what a page reads fast, and packs small.
//!
//! ```json
//! {"metric": "profiler_steps", "answers": "…", "of": 3, "cut": null, "columns": [
//!   {"name": "rank", "type": "int", "unit": "", "moment": false, "meaning": "…", "values": [0, 0, 1]},
//!   {"name": "name", "type": "text", …, "texts": ["aten::mm", "ul"], "shared": [0, 7], "values": [0, 1, null]}]}
//! ```
//!
//! Texts are numbers of `texts`, each of which begins with as many UTF-16 units of the one before it as
//! `shared` says: stacks have much in common with their neighbours. Whole numbers that a double cannot hold are strings of their
//! digits. `of` says how many rows there are, if some are left out, and `cut` which.

use arrow_array::{Array, Float64Array, Int64Array, RecordBatch, StringArray};
use hashbrown::HashMap;
use kymograph_converters::json::write_string;
use std::fmt::Write as _;

/// The largest whole number up to which doubles hold all of them.
const EXACT: u64 = 1 << 53;
/// Bytes of text from which on texts are put in order.
const MUCH: usize = 32 << 10;

/// A table for the page.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// The metric that it is of.
    pub metric: &'a str,
    /// What the metric answers.
    pub answers: &'a str,
    /// The rows.
    pub batch: &'a RecordBatch,
    /// How many rows there are with those that are left out.
    pub of: usize,
    /// Which rows are left out, if some are: a sentence.
    pub cut: Option<&'a str>,
}

impl Table<'_> {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"metric\":");
        text(&mut out, self.metric);
        out += ",\"answers\":";
        text(&mut out, self.answers);
        let _ = write!(out, ",\"rows\":{},\"of\":{},\"cut\":", self.batch.num_rows(), self.of);
        match self.cut {
            Some(cut) => text(&mut out, cut),
            None => out += "null",
        }
        out += ",\"columns\":[";
        let schema = self.batch.schema();
        for (n, (field, array)) in schema.fields().iter().zip(self.batch.columns()).enumerate() {
            out += if n == 0 { "{\"name\":" } else { ",\n{\"name\":" };
            text(&mut out, field.name());
            let about = field.metadata();
            let said = |key| about.get(key).map_or("", String::as_str);
            out += ",\"unit\":";
            text(&mut out, said("unit"));
            out += ",\"meaning\":";
            text(&mut out, said("meaning"));
            let _ = write!(out, ",\"moment\":{},\"type\":", about.contains_key("since"));
            cells(&mut out, array.as_ref());
            out.push('}');
        }
        out + "]}"
    }
}

/// The type of a column and its cells.
fn cells(out: &mut String, array: &dyn Array) {
    let any = array.as_any();
    if let Some(ints) = any.downcast_ref::<Int64Array>() {
        *out += "\"int\",\"values\":";
        list(out, ints.iter(), |out, value| {
            let quote = if value.unsigned_abs() > EXACT { "\"" } else { "" };
            let _ = write!(out, "{quote}{value}{quote}");
        });
    } else if let Some(floats) = any.downcast_ref::<Float64Array>() {
        *out += "\"float\",\"values\":";
        let finite = floats.iter().map(|value| value.filter(|value| value.is_finite()));
        list(out, finite, |out, value| {
            let _ = write!(out, "{value}");
        });
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut all: Vec<&str> = Vec::new();
        let numbers: Vec<Option<usize>> = texts
            .iter()
            .map(|value| {
                let value = value?;
                Some(*known.entry(value).or_insert_with(|| {
                    all.push(value);
                    all.len() - 1
                }))
            })
            .collect();
        // In order they have most in common; where there is little text, rows in their own order
        // pack better.
        let mut order: Vec<usize> = (0..all.len()).collect();
        if all.iter().map(|text| text.len()).sum::<usize>() > MUCH {
            order.sort_unstable_by_key(|number| all[*number]);
        }
        let mut places = vec![0; all.len()];
        order.iter().enumerate().for_each(|(place, number)| places[*number] = place);
        let shared: Vec<(usize, &str)> = order
            .iter()
            .scan("", |before, number| {
                let own = all[*number];
                Some(split(std::mem::replace(before, own), own))
            })
            .collect();
        *out += "\"text\",\"texts\":";
        list(out, shared.iter().map(|(_, rest)| Some(*rest)), text);
        *out += ",\"shared\":";
        list(out, shared.iter().map(|(units, _)| Some(units)), |out, units| {
            let _ = write!(out, "{units}");
        });
        *out += ",\"values\":";
        list(out, numbers.into_iter(), |out, number| {
            let _ = write!(out, "{}", places[number]);
        });
    } else {
        *out += "\"none\",\"values\":[]";
    }
}

/// How many UTF-16 units a text has in common with the beginning of another, and its rest.
fn split<'t>(before: &str, text: &'t str) -> (usize, &'t str) {
    let both = before.chars().zip(text.chars()).take_while(|(one, other)| one == other);
    let (units, bytes) = both
        .fold((0, 0), |(units, bytes), (one, _)| (units + one.len_utf16(), bytes + one.len_utf8()));
    (units, &text[bytes..])
}

fn list<T>(
    out: &mut String,
    values: impl Iterator<Item = Option<T>>,
    write: impl Fn(&mut String, T),
) {
    out.push('[');
    for (n, value) in values.enumerate() {
        if n > 0 {
            out.push(',');
        }
        match value {
            Some(value) => write(out, value),
            None => *out += "null",
        }
    }
    out.push(']');
}

/// A text as JSON.
pub fn text(out: &mut String, text: &str) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    write_string(&mut bytes, text);
    out.push_str(&String::from_utf8_lossy(&bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymograph_analysis::Column;
    use kymograph_analysis::table::{Cell, Rows};

    #[test]
    fn every_cell_comes_back() {
        const COLUMNS: &[Column] = &[
            Column::moment("ts", "when"),
            Column::text("name", "what it is called"),
            Column::float("part", "how much"),
        ];
        let mut rows = Rows::new(COLUMNS);
        rows.push([7i64.into(), "</script>".into(), 0.1.into()]);
        rows.push([i64::MAX.into(), Cell::Null, Cell::Null]);
        rows.push([Cell::Null, "</script>".into(), f64::INFINITY.into()]);
        let batch = rows.finish().unwrap();
        let table = Table { metric: "m", answers: "a", batch: &batch, of: 3, cut: None };
        let read: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        let column = |n: usize, key: &str| read["columns"][n][key].clone();
        assert_eq!(column(0, "values"), serde_json::json!([7, "9223372036854775807", null]));
        assert_eq!(column(0, "moment"), true);
        assert_eq!(column(1, "texts"), serde_json::json!(["</script>"]));
        assert_eq!(column(1, "shared"), serde_json::json!([0]));
        assert_eq!(column(1, "values"), serde_json::json!([0, null, 0]));
        assert_eq!(column(2, "values"), serde_json::json!([0.1, null, null]));
    }

    #[test]
    fn texts_share_their_beginnings() {
        assert_eq!(split("", "aten::mm"), (0, "aten::mm"));
        assert_eq!(split("aten::mm", "aten::mul"), (7, "ul"));
        assert_eq!(split("😀é", "😀éx"), (3, "x"), "units of UTF-16");
        assert_eq!(split("same", "same"), (4, ""));
    }
}
