//! Arguments of one trace in another.

use std::collections::HashMap;

use super::numbers::{Numbers, Replaced};
use crate::trace::{ArgsId, ListId, StrId, Trace, Value};

/// Arguments that repeat what joins events.
const JOINTS: [&str; 4] =
    ["correlation", "External id", "external id", "wait_on_cuda_event_record_corr_id"];
/// Arguments that repeat the number of a device.
const DEVICES: [&str; 6] =
    ["device", "Device Id", "fromDevice", "inDevice", "toDevice", "outDevice"];

/// A value of another trace.
pub(super) fn value(to: &mut Trace, from: &Trace, value: Value) -> Value {
    ArgRows::new(from).value(to, from, value)
}

/// Properties of a device of another trace.
pub(super) fn properties(to: &mut Trace, from: &Trace, set: Option<ArgsId>) -> Option<ArgsId> {
    ArgRows::new(from).plain(to, from, set)
}

/// Strings, sets and lists of arguments that were taken over.
pub(super) struct ArgRows {
    joints: Vec<StrId>,
    devices: Vec<StrId>,
    sets: HashMap<ArgsId, Option<ArgsId>>,
    lists: HashMap<(ListId, bool), Value>,
    strings: Vec<Option<StrId>>,
}

impl ArgRows {
    pub(super) fn new(from: &Trace) -> ArgRows {
        let find =
            |names: &[&str]| names.iter().filter_map(|name| from.strings.find(name)).collect();
        ArgRows {
            joints: find(&JOINTS),
            devices: find(&DEVICES),
            sets: HashMap::new(),
            lists: HashMap::new(),
            strings: vec![None; from.strings.len() + 1],
        }
    }

    /// A set, in which numbers are replaced.
    pub(super) fn set(
        &mut self,
        to: &mut Trace,
        from: &Trace,
        numbers: &mut Numbers,
        replaced: &mut Replaced,
        set: Option<ArgsId>,
    ) -> Option<ArgsId> {
        let id = set?;
        if let Some(known) = self.sets.get(&id) {
            return *known;
        }
        let mut entries = Vec::new();
        for (name, value) in from.args.entries(set) {
            let value = match value {
                Value::I64(n) if self.joints.contains(&name) && n > 0 => {
                    Value::I64(numbers.joint(replaced, n as u64) as i64)
                }
                Value::U64(n) if self.joints.contains(&name) => {
                    Value::U64(numbers.correlation(replaced, n))
                }
                Value::I64(n) if self.devices.contains(&name) => {
                    Value::I64(replaced.devices.get(&n).copied().unwrap_or(n))
                }
                value => self.value(to, from, value),
            };
            entries.push((self.text(to, from, name), value));
        }
        let new = to.args.add(&entries);
        self.sets.insert(id, new);
        new
    }

    /// A set as it is.
    pub(super) fn plain(
        &mut self,
        to: &mut Trace,
        from: &Trace,
        set: Option<ArgsId>,
    ) -> Option<ArgsId> {
        let mut entries = Vec::new();
        for (name, value) in from.args.entries(set) {
            let value = self.value(to, from, value);
            entries.push((self.text(to, from, name), value));
        }
        to.args.add(&entries)
    }

    /// A value. Lists lie no deeper in each other than [`crate::trace::Args::MAX_DEPTH`].
    fn value(&mut self, to: &mut Trace, from: &Trace, value: Value) -> Value {
        let (list, is_dict) = match value {
            Value::Str(id) => return Value::Str(self.text(to, from, id)),
            Value::Json(id) => return Value::Json(self.text(to, from, id)),
            Value::List(list) => (list, false),
            Value::Dict(list) => (list, true),
            value => return value,
        };
        if let Some(known) = self.lists.get(&(list, is_dict)) {
            return *known;
        }
        let new = if is_dict {
            let mut entries = Vec::new();
            for (name, value) in from.args.entries_of(list) {
                let value = self.value(to, from, value);
                entries.push((self.text(to, from, name), value));
            }
            to.args.dict(&entries)
        } else {
            let items: Vec<Value> =
                from.args.items(list).map(|item| self.value(to, from, item)).collect();
            to.args.list(&items)
        };
        self.lists.insert((list, is_dict), new);
        new
    }

    pub(super) fn text(&mut self, to: &mut Trace, from: &Trace, id: StrId) -> StrId {
        match self.strings.get_mut(id.0 as usize) {
            Some(known) if !id.is_none() => {
                *known.get_or_insert_with(|| to.strings.intern(from.strings.get(id)))
            }
            _ => StrId::NONE,
        }
    }
}
