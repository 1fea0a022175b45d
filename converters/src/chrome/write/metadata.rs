//! Metadata events: those that were kept as they were, and those that the hub gives rise to.

use crate::order::Order as _;
use std::collections::HashSet;
use std::io::Write;

use super::{Writer, fact, first_time};
use crate::chrome::metadata::{Entry, Generated, Identity};
use crate::chrome::{METADATA_EVENTS, METADATA_POSITIONS, METADATA_TIME};
use crate::json::{self, Document, Item, Limits, write_string};
use crate::trace::{Trace, Value};

/// A metadata event without its last bracket.
pub(super) struct Line {
    pub(super) position: u32,
    pub(super) text: Vec<u8>,
}

impl<W: Write> Writer<'_, W> {
    /// All of them.
    pub(super) fn metadata(&self) -> Vec<Line> {
        let trace = self.line.trace;
        let mut given = HashSet::new();
        let mut lines = Vec::new();
        if let Some(Value::Json(list)) = fact(trace, METADATA_EVENTS) {
            let list = trace.strings.get(list).as_bytes();
            let mut list = Document::new(list, Limits::default());
            while let Ok(Some(Item::Event(event))) = list.next_item() {
                given.extend(identity(event.root()));
                let mut text = Vec::new();
                json::write_value(&mut text, event.root());
                text.pop();
                lines.push(Line { position: u32::MAX, text });
            }
        }
        let mut entries = Generated::new(trace).entries;
        entries.retain(|entry| !given.contains(&entry.identity()));
        let time = self.metadata_time();
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.order_by_key(|row| entries[*row].identity());
        let order: Vec<usize> = order.into_iter().map(|row| row + lines.len()).collect();
        let verbatim = lines.len();
        lines.extend(entries.iter().map(|entry| self.generated(entry, time)));
        // Another trace, or a part of it, has others.
        if let Some(positions) = positions(trace).filter(|list| list.len() == lines.len()) {
            for (row, position) in (0..verbatim).chain(order).zip(positions) {
                lines[row].position = position;
            }
            // Those that the file did not have.
            lines.retain(|line| line.position != 0);
        }
        lines
    }

    fn metadata_time(&self) -> Option<i64> {
        match fact(self.line.trace, METADATA_TIME) {
            Some(Value::I64(time)) => Some(time),
            // Whoever wrote none reads files without.
            _ if self.foreign_producer => None,
            _ => Some(first_time(self.line.trace)),
        }
    }

    fn generated(&self, entry: &Entry, time: Option<i64>) -> Line {
        let mut text = Vec::new();
        text.extend_from_slice(b"{\"ph\": \"M\", \"name\": ");
        write_string(&mut text, &entry.name);
        if let Some(time) = time {
            self.line.time(&mut text, time);
        }
        let ids = format!(", \"pid\": {}, \"tid\": {}, \"args\": ", entry.pid, entry.tid);
        text.extend_from_slice(ids.as_bytes());
        text.extend_from_slice(entry.args.as_bytes());
        Line { position: u32::MAX, text }
    }
}

/// Where they stood in the file: see [`METADATA_POSITIONS`].
fn positions(trace: &Trace) -> Option<Vec<u32>> {
    let Some(Value::Json(list)) = fact(trace, METADATA_POSITIONS) else { return None };
    let list = trace.strings.get(list).strip_prefix('[')?.strip_suffix(']')?;
    let numbers = list.split(',').filter(|number| !number.is_empty());
    numbers.map(|number| number.trim().parse().ok()).collect()
}

fn identity(event: json::Value<'_>) -> Option<Identity> {
    let id = |key| match event.get(key) {
        Some(value) => {
            let mut out = Vec::new();
            json::write_value(&mut out, value);
            String::from_utf8_lossy(&out).into_owned()
        }
        None => "0".to_owned(),
    };
    let name = event.get("name").and_then(json::Value::as_str)?.text().into_owned();
    Some((name, id("pid"), id("tid")))
}
