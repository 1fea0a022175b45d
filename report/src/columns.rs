//! A table as columns of JSON: what a page reads fast, and packs small.
//!
//! ```json
//! {"metric": "profiler_steps", "answers": "…", "rows": 3, "of": 3, "cut": null, "columns": [
//!   {"name": "rank", "type": "int", "unit": "", "moment": false, "meaning": "…", "values": [0, 0, 1]},
//!   {"name": "name", "type": "text", …, "texts": ["aten::mm", "ul"], "shared": [0, 7], "values": [0, 1, null]},
//!   {"name": "pid", …, "runs": [997, 12, null, 3]},
//!   {"name": "ts", …, "differences": [2285169, 6597, 44171]}]}
//! ```
//!
//! Texts are numbers of `texts`, each of which begins with as many UTF-16 units of the one before it as
//! `shared` says: stacks have much in common with their neighbours. Where the same values come again
//! and again, `runs` has each with how often it comes; where whole numbers grow, `differences` has
//! the first and what is added to it each time. Whole numbers that a double cannot hold are strings of
//! their digits. `of` says how many rows there are, if some are left out, and `cut` which.

use arrow_array::{Array, Float64Array, Int64Array, RecordBatch, StringArray};
use hashbrown::HashMap;
use kymograph_converters::json::{write_int, write_string};
use std::io::Write as _;

/// The largest whole number up to which doubles hold all of them.
const EXACT: u64 = 1 << 53;
/// Bytes of text from which on texts are put in order.
const MUCH: usize = 32 << 10;
/// Rows from which on columns are written as runs or differences, and how many times fewer runs
/// there must be.
const MANY: usize = 16;
const FEWER: usize = 4;

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
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"metric\":".to_vec();
        write_string(&mut out, self.metric);
        out.extend(b",\"answers\":");
        write_string(&mut out, self.answers);
        // Writing to a vector does not fail.
        let _ = write!(out, ",\"rows\":{},\"of\":{},\"cut\":", self.batch.num_rows(), self.of);
        match self.cut {
            Some(cut) => write_string(&mut out, cut),
            None => out.extend(b"null"),
        }
        out.extend(b",\"columns\":[");
        let schema = self.batch.schema();
        for (n, (field, array)) in schema.fields().iter().zip(self.batch.columns()).enumerate() {
            out.extend(if n == 0 { "{\"name\":" } else { ",\n{\"name\":" }.bytes());
            write_string(&mut out, field.name());
            let about = field.metadata();
            let said = |key| about.get(key).map_or("", String::as_str);
            out.extend(b",\"unit\":");
            write_string(&mut out, said("unit"));
            out.extend(b",\"meaning\":");
            write_string(&mut out, said("meaning"));
            let _ = write!(out, ",\"moment\":{},\"type\":", about.contains_key("since"));
            cells(&mut out, array.as_ref());
            out.push(b'}');
        }
        out.extend(b"]}");
        out
    }
}

/// The type of a column and its cells.
fn cells(out: &mut Vec<u8>, array: &dyn Array) {
    let any = array.as_any();
    if let Some(ints) = any.downcast_ref::<Int64Array>() {
        out.extend(b"\"int\",");
        if grows(ints) {
            differences(out, ints.values());
        } else {
            values(out, ints.len(), |row| ints.is_valid(row).then(|| ints.value(row)), int);
        }
    } else if let Some(floats) = any.downcast_ref::<Float64Array>() {
        out.extend(b"\"float\",");
        // Compared by their bits, since zero has a sign.
        let bits =
            |row| Some(floats.value(row)).filter(|value| value.is_finite()).map(f64::to_bits);
        let valid = |row| if floats.is_valid(row) { bits(row) } else { None };
        values(out, floats.len(), valid, |out, bits| float(out, f64::from_bits(bits)));
    } else if let Some(column) = any.downcast_ref::<StringArray>() {
        out.extend(b"\"text\",");
        let numbers = texts(out, column);
        values(out, numbers.len(), |row| numbers[row], |out, number| write_int(out, number as i64));
    } else {
        out.extend(b"\"none\",\"values\":[]");
    }
}

fn int(out: &mut Vec<u8>, value: i64) {
    let quote: &[u8] = if value.unsigned_abs() > EXACT { b"\"" } else { b"" };
    out.extend(quote);
    write_int(out, value);
    out.extend(quote);
}

fn float(out: &mut Vec<u8>, value: f64) {
    // Most are whole, which is faster to write. Zero may have a sign.
    if value != 0.0 && value.abs() <= EXACT as f64 && value.fract() == 0.0 {
        write_int(out, value as i64);
    } else {
        let _ = write!(out, "{value}");
    }
}

/// The different texts of a column; gives back the number of each cell's.
fn texts(out: &mut Vec<u8>, texts: &StringArray) -> Vec<Option<usize>> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut all: Vec<&str> = Vec::new();
    let mut number = |text| {
        *known.entry(text).or_insert_with(|| {
            all.push(text);
            all.len() - 1
        })
    };
    let mut numbers: Vec<Option<usize>> = texts.iter().map(|text| text.map(&mut number)).collect();
    // In order they have most in common; where there is little text, rows in their own order
    // pack better.
    let mut order: Vec<usize> = (0..all.len()).collect();
    if all.iter().map(|text| text.len()).sum::<usize>() > MUCH {
        order.sort_unstable_by_key(|number| all[*number]);
    }
    let mut places = vec![0; all.len()];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = place);
    numbers.iter_mut().flatten().for_each(|number| *number = places[*number]);
    let mut shared = Vec::with_capacity(all.len());
    let mut before = "";
    out.extend(b"\"texts\":");
    list(out, order, |out, number| {
        let (units, rest) = split(std::mem::replace(&mut before, all[number]), all[number]);
        shared.push(units);
        write_string(out, rest);
    });
    out.extend(b",\"shared\":");
    list(out, shared, |out, units| write_int(out, units as i64));
    out.push(b',');
    numbers
}

/// How many UTF-16 units a text has in common with the beginning of another, and its rest.
fn split<'t>(before: &str, text: &'t str) -> (usize, &'t str) {
    let (one, other) = (before.as_bytes(), text.as_bytes());
    let words = one.chunks_exact(8).zip(other.chunks_exact(8));
    let mut both = words.take_while(|(one, other)| one == other).count() * 8;
    both += one[both..].iter().zip(&other[both..]).take_while(|(a, b)| a == b).count();
    while !text.is_char_boundary(both) {
        both -= 1;
    }
    let (same, rest) = text.split_at(both);
    let units = if same.is_ascii() { both } else { same.encode_utf16().count() };
    (units, rest)
}

/// Cells as they are, or as runs.
fn values<T: Copy + PartialEq>(
    out: &mut Vec<u8>,
    rows: usize,
    cell: impl Fn(usize) -> Option<T>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    let write = |out: &mut Vec<u8>, cell: Option<T>| match cell {
        Some(value) => write(out, value),
        None => out.extend(b"null"),
    };
    let most = if rows < MANY { 0 } else { rows / FEWER };
    let mut runs: Vec<(Option<T>, usize)> = Vec::new();
    for row in 0..rows {
        let own = cell(row);
        match runs.last_mut() {
            Some((value, count)) if *value == own => *count += 1,
            _ => runs.push((own, 1)),
        }
        if runs.len() > most {
            out.extend(b"\"values\":");
            return list(out, 0..rows, |out, row| write(out, cell(row)));
        }
    }
    out.extend(if rows == 0 { "\"values\":" } else { "\"runs\":" }.bytes());
    list(out, runs, |out, (value, count)| {
        write(out, value);
        out.push(b',');
        write_int(out, count as i64);
    });
}

/// Whether whole numbers are so large and so near to each other that their differences are shorter.
fn grows(ints: &Int64Array) -> bool {
    let fits = |value: &i64| value.unsigned_abs() < EXACT / 2;
    if ints.len() < MANY || ints.null_count() > 0 || !ints.values().iter().all(fits) {
        return false;
    }
    let size = |value: i64| u128::from(value.unsigned_abs());
    let all: u128 = ints.values().iter().map(|value| size(*value)).sum();
    let differences: u128 = ints.values().windows(2).map(|pair| size(pair[1] - pair[0])).sum();
    // Of numbers that seldom change, runs are shorter.
    let changes = ints.values().windows(2).filter(|pair| pair[0] != pair[1]).count();
    changes > ints.len() / FEWER && differences < all / 8
}

fn differences(out: &mut Vec<u8>, values: &[i64]) {
    out.extend(b"\"differences\":");
    let mut before = 0;
    list(out, values, |out, value| {
        write_int(out, value - before);
        before = *value;
    });
}

fn list<T>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (n, value) in values.into_iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(out, value);
    }
    out.push(b']');
}

/// A text as JSON.
pub fn text(out: &mut String, text: &str) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        *out += "\"";
        *out += text;
        *out += "\"";
        return;
    }
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
        let read: serde_json::Value = serde_json::from_slice(&table.to_json()).unwrap();
        let column = |n: usize, key: &str| read["columns"][n][key].clone();
        assert_eq!(column(0, "values"), serde_json::json!([7, "9223372036854775807", null]));
        assert_eq!(column(0, "moment"), true);
        assert_eq!(column(1, "texts"), serde_json::json!(["</script>"]));
        assert_eq!(column(1, "shared"), serde_json::json!([0]));
        assert_eq!(column(1, "values"), serde_json::json!([0, null, 0]));
        assert_eq!(column(2, "values"), serde_json::json!([0.1, null, null]));
    }

    #[test]
    fn long_columns_come_back_from_runs_and_differences() {
        const COLUMNS: &[Column] = &[
            Column::moment("ts", "when"),
            Column::int("pid", "whose"),
            Column::text("name", "what it is called"),
            Column::float("part", "how much"),
            Column::int("other", "what neither grows nor stays"),
        ];
        let cells = |n: i64| -> [Cell<'_>; 5] {
            let pid = if n < 70 { Cell::Int(997) } else { Cell::Null };
            let name = if n % 50 < 25 { "a" } else { "b" };
            let part = if n < 40 { 0.0 } else { -0.0 };
            [(1_000_000_000 + n * n).into(), pid, name.into(), part.into(), (n * 7919 % 101).into()]
        };
        let mut rows = Rows::new(COLUMNS);
        (0..100).for_each(|n| rows.push(cells(n)));
        let batch = rows.finish().unwrap();
        let table = Table { metric: "m", answers: "a", batch: &batch, of: 100, cut: None };
        let read: serde_json::Value = serde_json::from_slice(&table.to_json()).unwrap();
        let list = |n: usize, key: &str| read["columns"][n][key].as_array().unwrap().clone();
        let runs = |n: usize| -> Vec<serde_json::Value> {
            let runs = list(n, "runs");
            let of =
                |run: &[serde_json::Value]| vec![run[0].clone(); run[1].as_u64().unwrap() as usize];
            runs.chunks(2).flat_map(of).collect()
        };
        let mut at = 0;
        for (n, difference) in list(0, "differences").into_iter().enumerate() {
            at += difference.as_i64().unwrap();
            assert_eq!(cells(n as i64)[0], Cell::Int(at));
        }
        assert_eq!(runs(1), [vec![997.into(); 70], vec![serde_json::Value::Null; 30]].concat());
        let texts: Vec<_> = (0..100).map(|n| serde_json::json!(n % 50 / 25)).collect();
        assert_eq!(runs(2), texts);
        let signs: Vec<bool> =
            runs(3).iter().map(|value| value.as_f64().unwrap().is_sign_negative()).collect();
        assert_eq!(signs, (0..100).map(|n| n >= 40).collect::<Vec<_>>());
        let others: Vec<_> = (0..100).map(|n| serde_json::json!(n * 7919 % 101)).collect();
        assert_eq!(list(4, "values"), others);
    }

    #[test]
    fn texts_share_their_beginnings() {
        assert_eq!(split("", "aten::mm"), (0, "aten::mm"));
        assert_eq!(split("aten::mm", "aten::mul"), (7, "ul"));
        assert_eq!(split("😀é", "😀éx"), (3, "x"), "units of UTF-16");
        assert_eq!(split("same", "same"), (4, ""));
        assert_eq!(split("beginning as long", "beginning as short"), (13, "short"));
        assert_eq!(split("é", "è"), (0, "è"), "of one character only the first byte");
        assert_eq!(split("", ""), (0, ""));
    }
}
