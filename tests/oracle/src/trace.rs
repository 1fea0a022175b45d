//! A loaded trace and what can be asked of it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::engine::{Answer, Engine};
use crate::table;

/// Facts that trace_processor files under "info" although a trace of ours must not cause
/// them.
const INFO: [&str; 10] = [
    "packet_skipped_seq_needs_incremental_state_invalid",
    "interned_data_skipped_incremental_state_invalid",
    "thread_descriptor_skipped_incremental_state_invalid",
    "track_event_tokenizer_errors",
    "track_event_parser_errors",
    "interned_data_tokenizer_errors",
    "tokenizer_skipped_packets",
    "track_hierarchy_missing_uuid",
    "flow_step_without_start",
    "flow_end_without_start",
];

/// A trace that trace_processor has loaded.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    engine: Engine,
}

impl Trace {
    /// Loads a trace: plain, gzip or zstd.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Trace {
        Trace::try_open(path).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Trace::open`], for traces that may be refused.
    #[track_caller]
    pub fn try_open(path: impl AsRef<Path>) -> Result<Trace, String> {
        let path = path.as_ref().to_owned();
        match Engine::load(&path) {
            Ok(engine) => Ok(Trace { path, engine }),
            Err(error) => Err(format!("cannot load {}: {error}", path.display())),
        }
    }

    #[track_caller]
    fn ask(&self, sql: &str) -> Answer {
        self.engine
            .ask(sql)
            .unwrap_or_else(|error| panic!("{}: {error}\nasked: {sql}", self.path.display()))
    }

    /// The rows, each by column name.
    ///
    /// SQL integers are JSON integers, all 64 bits of them, and reals JSON reals, also when
    /// they are whole; a blob is a string of hexadecimal digits.
    #[track_caller]
    pub fn query(&self, sql: &str) -> Vec<Map<String, Value>> {
        let Answer { columns, rows } = self.ask(sql);
        let named = |row: Vec<Value>| columns.iter().cloned().zip(row).collect();
        rows.into_iter().map(named).collect()
    }

    /// The rows, each in the order of the columns.
    #[track_caller]
    pub fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        self.ask(sql).rows
    }

    /// The one integer that the query returns.
    #[track_caller]
    pub fn one_i64(&self, sql: &str) -> i64 {
        let rows = self.rows(sql);
        match rows.as_slice() {
            [row] if row.len() == 1 && row[0].is_i64() => row[0].as_i64().unwrap_or_default(),
            _ => panic!("not one integer: {rows:?}\nasked: {sql}"),
        }
    }

    /// The strings of a query with one column; NULL is `"NULL"`.
    #[track_caller]
    pub fn strings(&self, sql: &str) -> Vec<String> {
        let rows = self.rows(sql);
        assert!(rows.iter().all(|row| row.len() == 1), "more than one column\nasked: {sql}");
        rows.iter().map(|row| table::cell(&row[0])).collect()
    }

    /// The answer as text: a line of column names, then the rows, columns two spaces apart.
    /// Control characters in strings are escaped, NULL is `NULL`.
    #[track_caller]
    pub fn table(&self, sql: &str) -> String {
        let Answer { columns, rows } = self.ask(sql);
        table::render(&columns, &rows)
    }

    /// Panics if trace_processor lost, skipped or corrected anything.
    #[track_caller]
    pub fn assert_clean(&self) {
        self.clean_except(&[]);
    }

    /// As [`Trace::assert_clean`], for a trace in which these statistics must be set: it
    /// panics also when one of them is not.
    #[track_caller]
    pub fn clean_except(&self, expected: &[&str]) {
        let complaints = self.ask(&format!(
            "SELECT name, idx, severity, value FROM stats WHERE value > 0 \
             AND (severity IN ('error', 'data_loss') OR name IN ('{}')) ORDER BY name, idx",
            INFO.join("', '")
        ));
        let found = |name: &&&str| complaints.rows.iter().any(|row| row[0] == ***name);
        if let Some(absent) = expected.iter().find(|name| !found(name)) {
            panic!("{}: '{absent}' was expected and is not set", self.path.display());
        }
        let (_, unexpected): (Vec<_>, Vec<_>) = complaints
            .rows
            .into_iter()
            .partition(|row| expected.iter().any(|name| row[0] == **name));
        if !unexpected.is_empty() {
            let list = table::render(&complaints.columns, &unexpected);
            panic!("{} is not clean:\n{list}", self.path.display());
        }
    }
}
