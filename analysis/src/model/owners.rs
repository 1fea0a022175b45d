//! The operators that device work belongs to.

use hashbrown::HashMap;

use super::{Kind, Model, NONE};

/// For each event of a device the operator that launched it; [`NONE`] for all others.
///
/// It is the innermost operator around the launch, on the thread of the launch; if there is
/// none, the operator whose `External id` the work has. In this order, since in some traces of
/// 2022 and 2023 the work's `External id` is its correlation number.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    of: Vec<u32>,
}

impl Owners {
    pub(super) fn of(model: &Model<'_>) -> Owners {
        let events = &model.events;
        let mut of = vec![NONE; events.len()];
        let mut left: Vec<u32> = Vec::new();
        for work in model.device() {
            match model.peers().get(*work).and_then(|call| model.operator_around(call)) {
                Some(operator) => of[*work as usize] = operator,
                None => left.push(*work),
            }
        }
        let external = model.trace.strings.find("External id");
        if external.is_some() && !left.is_empty() {
            let mut operators: HashMap<i64, u32> = HashMap::new();
            let is_operator = |row: &u32| events.kinds[*row as usize] == Kind::Operator;
            for row in (0..events.len() as u32).filter(is_operator) {
                if let Some(number) = model.int(row, external) {
                    operators.insert(number, row);
                }
            }
            for work in left {
                let number = model.int(work, external).filter(|number| *number > 0);
                if let Some(operator) = number.and_then(|number| operators.get(&number)) {
                    of[work as usize] = *operator;
                }
            }
        }
        Owners { of }
    }

    /// The operator that launched an event of a device.
    pub fn get(&self, work: u32) -> Option<u32> {
        self.of.get(work as usize).copied().filter(|operator| *operator != NONE)
    }
}

impl Model<'_> {
    /// The innermost operator around an event of the host.
    pub fn operator_around(&self, row: u32) -> Option<u32> {
        self.calls().callers(row).find(|row| self.events.kinds[*row as usize] == Kind::Operator)
    }
}
