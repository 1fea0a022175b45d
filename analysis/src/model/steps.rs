//! Profiler steps: the iterations of a program's main loop, and what belongs to each.

use super::{Events, Kind, Model, Reading};

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its number.
    pub number: i64,
    /// The event that says so.
    pub row: u32,
}

/// All steps of a trace.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// In the order of the trace.
    pub all: Vec<Step>,
    /// The number of the step that each event belongs to: of what the host does, the step it
    /// begins in; of what a device does, that of its launch. -1 if there is none.
    pub of: Vec<i64>,
}

impl Steps {
    pub(super) fn of(model: &Model<'_>) -> Steps {
        let events = &model.events;
        let mut known = hashbrown::HashMap::new();
        let mut all = Vec::new();
        for (row, name) in events.names.iter().enumerate() {
            let number = *known.entry(*name).or_insert_with(|| number(model.text(*name)));
            // A device's view of a step is no step.
            let counts = model.reading.hta().is_some()
                || events.kinds[row] != Kind::DeviceAnnotation && !events.on_device(row as u32);
            if let Some(number) = number.filter(|_| counts) {
                all.push(Step { number, row: row as u32 });
            }
        }
        // A recording of ours may hold the steps of a profiler that ran in it, too.
        let own = |step: &Step| events.kinds[step.row as usize] == Kind::Step;
        if all.iter().any(own) {
            all.retain(own);
        }
        let segments = Segments::of(events, &all);
        let mut of = vec![-1; events.len()];
        for (row, number) in of.iter_mut().enumerate() {
            if events.streams[row] == Events::HOST {
                *number = segments.at(events.starts[row]);
            }
        }
        let peers = model.peers();
        for row in 0..events.len() {
            // HTA has no steps for what ran on stream 0.
            let counts = match model.reading {
                Reading::Exact => events.streams[row] != Events::HOST,
                Reading::Hta(_) => events.streams[row] > 0,
            };
            if let Some(peer) = peers.get(row as u32).filter(|_| counts) {
                of[row] = of[peer as usize];
            }
        }
        Steps { all, of }
    }

    /// The numbers of all steps, in order.
    pub fn numbers(&self) -> Vec<i64> {
        let mut numbers: Vec<i64> = self.all.iter().map(|step| step.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// The number in `ProfilerStep#12`.
pub fn number(name: &str) -> Option<i64> {
    let rest = name.strip_prefix("ProfilerStep")?.trim_start().strip_prefix('#')?.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

/// Which step lasts when; where several do, the last of the trace.
struct Segments(Vec<(i64, i64)>);

impl Segments {
    fn of(events: &Events, all: &[Step]) -> Segments {
        let mut edges: Vec<i64> = Vec::new();
        for step in all {
            let (start, end) = events.interval(step.row);
            edges.extend([start, end]);
        }
        edges.sort_unstable();
        edges.dedup();
        let last = |at: i64| {
            let lasting = all.iter().rev().find(|step| {
                let (start, end) = events.interval(step.row);
                start <= at && at < end
            });
            lasting.map_or(-1, |step| step.number)
        };
        Segments(edges.into_iter().map(|edge| (edge, last(edge))).collect())
    }

    fn at(&self, time: i64) -> i64 {
        let after = self.0.partition_point(|(from, _)| *from <= time);
        after.checked_sub(1).map_or(-1, |at| self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_steps() {
        assert_eq!(number("ProfilerStep#12"), Some(12));
        assert_eq!(number("ProfilerStep # 7 x"), Some(7));
        assert_eq!(number("ProfilerStep#"), None);
        assert_eq!(number("Step#1"), None);
    }
}
