//! Which host and which switch each rank is at: from the traces, or from a CSV file.

use crate::dataset::Dataset;
use crate::{Failure, named};
use std::collections::BTreeMap;
use std::path::Path;

/// Labels of ranks, by name: `host`, `switch`, or any other column.
#[derive(Clone, Debug, Default)]
pub struct Labels(BTreeMap<String, BTreeMap<i64, String>>);

impl Labels {
    /// Those of a file with a column `rank` and one for each label, or the hosts that the traces
    /// say.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is something else.
    pub fn of(dataset: &Dataset, file: Option<&Path>) -> Result<Labels, Failure> {
        let mut labels = Labels::default();
        let hosts = dataset.ranks.iter().filter(|manifest| !manifest.host.is_empty());
        let hosts: BTreeMap<i64, String> = hosts.map(|m| (m.rank, m.host.clone())).collect();
        if !hosts.is_empty() {
            labels.0.insert("host".to_owned(), hosts);
        }
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|error| named(path, &error))?;
            labels.take(&text).map_err(|why| named(path, &why))?;
        }
        Ok(labels)
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
        let rank = head.iter().position(|name| *name == "rank");
        let rank = rank.ok_or("its first line has to name columns, `rank` among them")?;
        for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let own = cells.get(rank).and_then(|text| text.parse::<i64>().ok());
            let own = own.filter(|_| cells.len() == head.len());
            let own =
                own.ok_or_else(|| format!("line {number}: a rank and {} labels", head.len() - 1))?;
            for (name, cell) in head.iter().zip(&cells).filter(|(name, _)| **name != "rank") {
                let of = self.0.entry((*name).to_owned()).or_default();
                of.insert(own, (*cell).to_owned());
            }
        }
        Ok(())
    }

    /// The label of a rank.
    pub fn get(&self, label: &str, rank: i64) -> Option<&str> {
        self.0.get(label)?.get(&rank).map(String::as_str)
    }

    /// The names of labels.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The ranks of each value of a label.
    pub fn groups(&self, label: &str) -> BTreeMap<&str, Vec<i64>> {
        let mut groups: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (rank, value) in self.0.get(label).into_iter().flatten() {
            groups.entry(value).or_default().push(*rank);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_by_column() {
        let mut labels = Labels::default();
        labels.take("rank,host,switch\n0,a,s1\n1, a ,s2\n\n2,b,s1\n").unwrap();
        assert_eq!(labels.get("host", 1), Some("a"));
        assert_eq!(labels.groups("switch")["s1"], [0, 2]);
        assert_eq!(labels.get("switch", 3), None);
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let why = |text: &str| Labels::default().take(text).unwrap_err();
        assert!(why("host,switch\n").contains("`rank`"));
        assert_eq!(why("rank,host\n0,a\nx,b\n"), "line 3: a rank and 1 labels");
        assert_eq!(why("rank,host\n0\n"), "line 2: a rank and 1 labels");
    }
}
