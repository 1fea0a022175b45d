//! Launches, and what they launched.

use hashbrown::HashMap;

use super::{Kind, Model, NONE, Reading};

/// For each event the one at the other end of its launch: of a call the work that it
/// launched, of work the call. A call that launched several has the last of them, in the
/// order of the trace; [`Peers::launched`] has all.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    /// The peer of each event; [`NONE`] if it has none.
    pub of: Vec<u32>,
}

impl Peers {
    pub(crate) fn of(model: &Model<'_>) -> Peers {
        let events = &model.events;
        let on_device = |row: usize| match model.reading {
            Reading::Exact => events.kinds[row].is_work() || events.on_device(row as u32),
            Reading::Hta(_) => is_device_side(model, row),
        };
        // The last call and the last work of each number.
        let mut ends: HashMap<i64, (u32, u32)> = HashMap::new();
        for (row, number) in events.correlations.iter().enumerate() {
            if *number == -1 || (model.reading == Reading::Exact && !may_launch(model, row)) {
                continue;
            }
            let (call, work) = ends.entry(*number).or_insert((NONE, NONE));
            *if on_device(row) { work } else { call } = row as u32;
        }
        let numbers = events.correlations.iter().enumerate();
        let of = numbers.map(|(row, number)| match ends.get(number) {
            Some((call, work)) if *call != NONE && *work != NONE => {
                if on_device(row) {
                    *call
                } else {
                    *work
                }
            }
            _ => NONE,
        });
        Peers { of: of.collect() }
    }

    /// The peer of an event.
    pub fn get(&self, row: u32) -> Option<u32> {
        self.of.get(row as usize).copied().filter(|peer| *peer != NONE)
    }

    /// All that was launched, in the order of `rows`, by the call that launched it.
    pub fn launched(&self, model: &Model<'_>, rows: &[u32]) -> HashMap<u32, Vec<u32>> {
        let mut launched: HashMap<u32, Vec<u32>> = HashMap::new();
        for row in rows {
            if let Some(call) = self.get(*row).filter(|_| model.events.on_device(*row)) {
                launched.entry(call).or_default().push(*row);
            }
        }
        launched
    }
}

/// Waits have correlation numbers, too, but launch nothing.
fn may_launch(model: &Model<'_>, row: usize) -> bool {
    let kind = model.events.kinds[row];
    kind.is_work()
        || model.events.on_device(row as u32)
        || !matches!(kind, Kind::Sync | Kind::DeviceAnnotation)
}

/// Which end of a launch HTA takes an event for.
pub(super) fn is_device_side(model: &Model<'_>, row: usize) -> bool {
    let events = &model.events;
    (events.streams[row] >= 0 && events.correlations[row] >= 0)
        || matches!(model.name(row as u32), "Event Sync" | "Context Sync")
}
