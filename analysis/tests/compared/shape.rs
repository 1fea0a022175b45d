//! Brings tables of HTA into the shape of ours.

use super::csv::Csv;

/// The value in `{'Queue Length': 3}`.
pub fn counter_values(csv: &mut Csv) {
    let Some(at) = csv.column("args") else { return };
    csv.names[at] = "value".to_owned();
    for row in &mut csv.rows {
        let value = row[at].trim_end_matches('}').rsplit(": ").next().unwrap_or_default();
        row[at] = value.to_owned();
    }
    drop_column(csv, "ph");
    if csv.column("id").is_none() {
        csv.names.push("id".to_owned());
        csv.rows.iter_mut().for_each(|row| row.push(String::new()));
    }
}

pub fn drop_column(csv: &mut Csv, name: &str) {
    if let Some(at) = csv.column(name) {
        csv.names.remove(at);
        csv.rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
}

/// The last row of each moment of each series.
pub fn last_of_each_moment(csv: &mut Csv, series: &[&str], time: &str) {
    let key = |csv: &Csv, row: &[String]| {
        let mut key: Vec<String> =
            series.iter().map(|name| csv.get(row, name).to_owned()).collect();
        // To whole nanoseconds.
        key.push(format!("{:.3}", csv.number(row, time)));
        key
    };
    let mut kept: Vec<Vec<String>> = Vec::new();
    let rows = std::mem::take(&mut csv.rows);
    let mut keys: Vec<Vec<String>> = Vec::new();
    for row in rows {
        let key = key(csv, &row);
        if keys.last() == Some(&key) {
            kept.pop();
            keys.pop();
        }
        kept.push(row);
        keys.push(key);
    }
    csv.rows = kept;
}
