//! What a thread did at each moment: the innermost of its events.

use super::{Model, NONE, Thread};

/// Stretches of time of a thread, one after the other, each with its innermost event.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    /// When each stretch begins; it ends where the next one begins.
    starts: Vec<i64>,
    /// Its event; [`NONE`] for none.
    rows: Vec<u32>,
}

impl Leaves {
    /// Those of a thread. Events that `counts` rejects are looked through.
    pub fn of(model: &Model<'_>, thread: &Thread, counts: impl Fn(u32) -> bool) -> Leaves {
        let events = &model.events;
        let mut leaves = Leaves::default();
        let mut open: Vec<u32> = Vec::new();
        let mut reached = i64::MIN;
        let mut ended = i64::MIN;
        let mut put = |from: i64, to: i64, row: u32| {
            if from < to {
                if ended < from && ended != i64::MIN {
                    leaves.push(ended, NONE);
                }
                leaves.push(from, row);
                ended = to;
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
        leaves.push(ended, NONE);
        leaves
    }

    fn push(&mut self, start: i64, row: u32) {
        self.starts.push(start);
        self.rows.push(row);
    }

    /// The part between two times: from, to, event.
    pub fn between(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64, u32)> + '_ {
        let first = self.starts.partition_point(|start| *start <= from).saturating_sub(1);
        let inside = (first..self.starts.len()).take_while(move |at| self.starts[*at] < to);
        inside.filter_map(move |at| {
            let end = self.starts.get(at + 1).copied()?;
            let part = (self.starts[at].max(from), end.min(to), self.rows[at]);
            (part.2 != NONE && part.0 < part.1).then_some(part)
        })
    }
}
