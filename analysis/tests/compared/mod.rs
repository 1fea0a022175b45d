//! Comparing our tables with those of other tools, value by value.

pub mod csv;
pub mod hta;
pub mod shape;
pub mod tensorboard;
pub mod torch;
pub mod views;

use csv::Csv;
use std::collections::BTreeMap;

/// How far numbers may be apart: absolutely, and of the number.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance(pub f64, pub f64);

/// What was compared, by tool and metric.
#[derive(Debug, Default)]
pub struct Tally {
    /// Values that were compared, and those that differ.
    pub counts: BTreeMap<String, (u64, u64)>,
    /// The first differences.
    pub differences: Vec<String>,
    /// What was not compared, and why.
    pub exceptions: BTreeMap<String, u64>,
}

impl Tally {
    pub fn value(&mut self, metric: &str, context: &str, theirs: &str, ours: &str, t: Tolerance) {
        let same = match (theirs.parse::<f64>(), ours.parse::<f64>()) {
            (Ok(a), Ok(b)) => {
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= t.0 + t.1 * a.abs()
            }
            _ => theirs == ours,
        };
        let count = self.counts.entry(metric.to_owned()).or_default();
        count.0 += 1;
        if !same {
            count.1 += 1;
            if count.1 <= 6 {
                let text = format!("{metric} {context}: they have {theirs:.300}, we {ours:.300}");
                self.differences.push(text);
            }
        }
    }

    pub fn except(&mut self, why: &str, count: usize) {
        *self.exceptions.entry(why.to_owned()).or_default() += count as u64;
    }

    /// Compares the columns that theirs has, row by row.
    pub fn table(&mut self, metric: &str, context: &str, theirs: &Csv, ours: &Csv, t: Tolerance) {
        let rows = (theirs.rows.len().to_string(), ours.rows.len().to_string());
        self.value(metric, &format!("{context} rows"), &rows.0, &rows.1, Tolerance(0.0, 0.0));
        for (n, (their_row, our_row)) in theirs.rows.iter().zip(&ours.rows).enumerate() {
            for (name, their_cell) in theirs.names.iter().zip(their_row) {
                if name.is_empty() {
                    continue;
                }
                let our_cell = match ours.column(name) {
                    Some(at) => our_row[at].as_str(),
                    None => "(no such column)",
                };
                let context = format!("{context} row {n} {name}");
                self.value(metric, &context, their_cell, our_cell, t);
            }
        }
    }

    pub fn print(&self) {
        for text in &self.differences {
            println!("  {text}");
        }
        println!("{:<44} {:>12} {:>10}", "tool and metric", "compared", "different");
        for (metric, (compared, different)) in &self.counts {
            println!("{metric:<44} {compared:>12} {different:>10}");
        }
        let all = self.counts.values().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
        println!("{:<44} {:>12} {:>10}", "together", all.0, all.1);
        for (why, count) in &self.exceptions {
            println!("not compared: {count} × {why}");
        }
    }

    pub fn different(&self) -> u64 {
        self.counts.values().map(|count| count.1).sum()
    }
}
