//! Texts that a written file has in a table, and refers to by their place there.

use hashbrown::HashMap;

use crate::trace::StrId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    /// In the order of their numbers, from 0.
    pub(crate) all: Vec<StrId>,
    numbers: HashMap<StrId, usize>,
}

impl Numbered {
    pub(crate) fn number(&mut self, text: StrId) -> usize {
        *self.numbers.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() - 1
        })
    }
}
