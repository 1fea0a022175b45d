//! Work of devices by its correlation number.

use hashbrown::HashMap;

use super::{Model, NONE};

/// For each correlation number the events of devices that have it.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The first of each number.
    first: HashMap<i64, u32>,
    /// For each event the next one of its number; [`NONE`] for the last.
    next: Vec<u32>,
}

impl Work {
    pub(super) fn of_model(model: &Model<'_>) -> Work {
        let events = &model.events;
        let first = HashMap::with_capacity(model.device().len());
        let mut work = Work { first, next: vec![NONE; events.len()] };
        for row in (0..events.len() as u32).rev() {
            let number = events.correlations[row as usize];
            if events.on_device(row) && number != -1 {
                let after = work.first.insert(number, row);
                work.next[row as usize] = after.unwrap_or(NONE);
            }
        }
        work
    }

    /// The events of a number, in the order of the trace.
    pub fn of(&self, number: i64) -> impl Iterator<Item = u32> + '_ {
        let after = |row: &u32| Some(self.next[*row as usize]).filter(|next| *next != NONE);
        std::iter::successors(self.first.get(&number).copied(), after)
    }
}
