//! The arguments of one record.

use kymograph_protos::{ArgType, Extra, StrId};

/// Arguments of one record at most.
pub(crate) const MAX_ARGS: usize = 40;

/// The arguments of a record, on the stack.
pub(crate) struct Args {
    list: [Extra; MAX_ARGS],
    len: usize,
}

impl Args {
    pub(crate) fn new() -> Args {
        Args { list: [Extra::new(StrId::NONE, ArgType::None, 0); MAX_ARGS], len: 0 }
    }

    pub(crate) fn slot(&mut self, slots: [Extra; 2]) {
        self.push(slots[0]);
        self.push(slots[1]);
    }

    pub(crate) fn push(&mut self, extra: Extra) {
        if let Some(place) = self.list.get_mut(self.len) {
            *place = extra;
            self.len += 1;
        }
    }

    pub(crate) fn unsigned(&mut self, key: StrId, value: impl Into<u64>) {
        self.push(Extra::new(key, ArgType::U64, value.into()));
    }

    /// An argument that is left out when it says nothing.
    pub(crate) fn unless_zero(&mut self, key: StrId, value: impl Into<u64>) {
        let value = value.into();
        if value != 0 {
            self.unsigned(key, value);
        }
    }

    pub(crate) fn signed(&mut self, key: StrId, value: i64) {
        self.push(Extra::new(key, ArgType::I64, value as u64));
    }

    pub(crate) fn float(&mut self, key: StrId, value: f64) {
        self.push(Extra::new(key, ArgType::F64, value.to_bits()));
    }

    /// An argument that is a text, interned.
    pub(crate) fn text(&mut self, key: StrId, value: StrId) {
        self.push(Extra::new(key, ArgType::Str, value.0.into()));
    }

    pub(crate) fn extras(&self) -> &[Extra] {
        &self.list[..self.len]
    }
}
