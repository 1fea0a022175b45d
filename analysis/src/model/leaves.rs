//! What a thread did at each moment: the innermost of its events.

use super::{Model, Thread};

/// Stretches of time of a thread, one after the other, each with its innermost event.
#[derive(Clone, Debug, Default)]
pub struct Leaves(Vec<(i64, i64, u32)>);

impl Leaves {
    /// Those of a thread. Events that `counts` rejects are looked through.
    pub fn of(model: &Model<'_>, thread: &Thread, counts: impl Fn(u32) -> bool) -> Leaves {
        let events = &model.events;
        let mut found: Vec<(i64, i64, u32)> = Vec::new();
        let mut open: Vec<u32> = Vec::new();
        let mut reached = i64::MIN;
        let mut put = |from: i64, to: i64, row: u32| {
            if from < to {
                found.push((from, to, row));
            }
        };
        let rows = &model.calls().order[thread.rows.clone()];
        for row in rows.iter().copied().filter(|row| counts(*row)) {
            let start = events.starts[row as usize];
            while let Some(top) = open.last().copied().filter(|top| events.end(*top) <= start) {
                put(reached, events.end(top), top);
                reached = reached.max(events.end(top));
                open.pop();
            }
            if let Some(top) = open.last() {
                put(reached, start, *top);
            }
            reached = reached.max(start);
            if events.durs[row as usize] > 0 {
                open.push(row);
            }
        }
        while let Some(top) = open.pop() {
            put(reached, events.end(top), top);
            reached = reached.max(events.end(top));
        }
        Leaves(found)
    }

    /// The part between two times: from, to, event.
    pub fn between(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64, u32)> + '_ {
        let first = self.0.partition_point(|(_, end, _)| *end <= from);
        let inside = self.0[first..].iter().take_while(move |(start, ..)| *start < to);
        inside.map(move |(start, end, row)| ((*start).max(from), (*end).min(to), *row))
    }
}
