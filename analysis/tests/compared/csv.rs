//! Tables of other tools: CSV, packed or not.

use std::io::Read;
use std::path::Path;

/// Names and rows.
#[derive(Clone, Debug, Default)]
pub struct Csv {
    pub names: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Csv {
    pub fn open(path: &Path) -> Csv {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut text = String::new();
        if path.extension().is_some_and(|ending| ending == "gz") {
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8(bytes).unwrap();
        }
        Csv::parse(&text)
    }

    pub fn parse(text: &str) -> Csv {
        let mut lines = lines(text);
        let names = if lines.is_empty() { Vec::new() } else { lines.remove(0) };
        Csv { names, rows: lines }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    pub fn get<'a>(&'a self, row: &'a [String], name: &str) -> &'a str {
        self.column(name).and_then(|at| row.get(at)).map_or("", String::as_str)
    }

    pub fn number(&self, row: &[String], name: &str) -> f64 {
        self.get(row, name).parse().unwrap_or(f64::NAN)
    }

    /// pandas writes columns of two levels as lines of their own.
    pub fn two_levels(path: &Path) -> Csv {
        let mut csv = Csv::open(path);
        if csv.rows.len() < 2 {
            return Csv::default();
        }
        let second = csv.rows.remove(0);
        let third = csv.rows.remove(0);
        csv.names = second.into_iter().zip(third).map(|(a, b)| a + &b).collect();
        csv
    }

    pub fn retain(&mut self, keep: impl Fn(&Csv, &[String]) -> bool) {
        let rows = std::mem::take(&mut self.rows);
        self.rows = rows.into_iter().filter(|row| keep(self, row)).collect();
    }

    pub fn sort_by(&mut self, names: &[&str]) {
        let at: Vec<usize> = names.iter().filter_map(|name| self.column(name)).collect();
        let key = |row: &Vec<String>| -> Vec<(f64, String)> {
            at.iter().map(|at| (row[*at].parse().unwrap_or(0.0), row[*at].clone())).collect()
        };
        self.rows.sort_by(|a, b| {
            let pairs = key(a).into_iter().zip(key(b));
            let mut orders = pairs.map(|(a, b)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
    }
}

fn lines(text: &str) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    let (mut line, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            '\r' if !quoted => {}
            c => cell.push(c),
        }
    }
    if !cell.is_empty() || !line.is_empty() {
        line.push(cell);
        lines.push(line);
    }
    lines
}
