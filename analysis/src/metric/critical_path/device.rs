//! Edges on devices: how long work lasts, and what it waited for.

use hashbrown::HashMap;
use kymograph_converters::order::Order as _;

use super::graph::{EdgeKind, Graph};
use super::waits::Waits;
use crate::Error;
use crate::model::{Kind, Model};
use crate::reading::Version;

/// A longer gap is no delay between two kernels.
const LONGEST_DELAY: i64 = 1_500_000;

/// For each event the length of the queue after it.
struct Queues(HashMap<u32, i64>);

pub(super) fn connect(model: &Model<'_>, graph: &mut Graph) -> Result<(), Error> {
    let mut queues = Queues(HashMap::new());
    for (_, changes) in model.queues() {
        queues.0.extend(changes.iter().map(|change| (change.row, change.length)));
    }
    let events = &model.events;
    let is_there = |row: &u32| {
        let waits = matches!(model.name(*row), "Event Sync" | "Context Sync");
        (events.on_device(*row) || waits) && events.correlations[*row as usize] >= 0
    };
    let mut rows: Vec<u32> = graph.rows.iter().copied().filter(is_there).collect();
    // Waits count when they are over.
    rows.order_by_numbers(|row| match events.kinds[*row as usize] {
        Kind::Sync => [events.end(*row)],
        _ => [events.starts[*row as usize]],
    });
    let waits = Waits::of(model);
    let mut device = Device { model, graph, queues, last: Vec::new(), sources: HashMap::new() };
    for row in rows {
        if events.kinds[row as usize] == Kind::Sync {
            device.wait(&waits, row);
        } else {
            device.work(row);
        }
    }
    Ok(())
}

struct Device<'a, 'b> {
    model: &'a Model<'b>,
    graph: &'a mut Graph,
    queues: Queues,
    /// The end of the last work of each stream, in the order in which streams came.
    last: Vec<(i32, u32)>,
    /// Work that other work waits for.
    sources: HashMap<u32, u32>,
}

impl Device<'_, '_> {
    fn wait(&mut self, waits: &Waits, row: u32) {
        let model = self.model;
        let stream = model.events.streams[row as usize];
        let call = model.peers().get(row);
        match model.name(row) {
            "Stream Wait Event" => {
                let source = waits.source(model, row);
                let next = call.and_then(|call| waits.next_launch(call));
                let next = next.and_then(|launch| model.peers().get(launch));
                if let (Some(source), Some(next)) = (source, next) {
                    self.sources.insert(next, source);
                }
            }
            "Event Sync" => {
                let source = waits.source(model, row).and_then(|source| self.graph.ends(source));
                self.released(source.map(|(_, end)| end), call);
            }
            "Context Sync" => {
                for (_, end) in self.last.clone() {
                    self.released(Some(end), call);
                }
            }
            _ => self.released(self.last_on(stream), call),
        }
    }

    /// A call ends when work has ended.
    fn released(&mut self, by: Option<u32>, call: Option<u32>) {
        let end = call.and_then(|call| self.graph.ends(call));
        if let (Some(by), Some((_, end))) = (by, end) {
            self.graph.connect(by, end, EdgeKind::Sync, None);
        }
    }

    fn last_on(&self, stream: i32) -> Option<u32> {
        self.last.iter().find(|(of, _)| *of == stream).map(|(_, end)| *end)
    }

    fn work(&mut self, row: u32) {
        let (model, stream) = (self.model, self.model.events.streams[row as usize]);
        let Some((start, end)) = self.graph.ends(row) else { return };
        self.graph.connect(start, end, EdgeKind::Operator, Some(row));
        let source = self.sources.remove(&row).and_then(|source| self.graph.ends(source));
        let source = source.map(|(_, end)| end);
        if let Some(source) = source {
            self.graph.connect(source, start, EdgeKind::Sync, None);
        }
        let last = self.last_on(stream);
        let call = model.peers().get(row);
        let launched = call.map_or(i64::MIN, |call| model.events.starts[call as usize]);
        let time = |node: u32| self.graph.node(node).time;
        let before = |node: Option<u32>, moment| node.is_none_or(|node| time(node) < moment);
        let was_empty = call.and_then(|call| self.queues.0.get(&call)) == Some(&1)
            && self.queues.0.get(&row) == Some(&0);
        let old = model.reading.hta().is_some_and(|rules| rules.version == Version::Hta);
        if was_empty && before(last, launched) && before(source, launched) {
            if let Some((from, _)) = call.and_then(|call| self.graph.ends(call)) {
                self.graph.connect(from, start, EdgeKind::LaunchDelay, None);
            }
        } else if let Some(last) = last
            && (old || time(start).saturating_sub(time(last)) < LONGEST_DELAY)
            && before(source, time(last))
        {
            let event = Some(self.graph.node(last).row);
            self.graph.connect(last, start, EdgeKind::KernelDelay, event);
        }
        match self.last.iter_mut().find(|(of, _)| *of == stream) {
            Some((_, last)) => *last = end,
            None => self.last.push((stream, end)),
        }
    }
}
