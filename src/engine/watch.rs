//! The watch: slices that take too long cause a dump of the flight recorder.

use kymograph_protos::StrId;
use kymograph_protos::packet::{Name, Strings};

use crate::config::{DumpOn, Slow};
use crate::intern::Interner;
use crate::page::MAX_PATTERNS;

/// See the module.
#[derive(Debug)]
pub struct Watch {
    rules: Vec<Slow>,
    /// How long a name may take, by its number: 0 before the first look.
    limits: Vec<u64>,
    /// The rules that a slice was called by, as bits; of the first 64.
    matched: u64,
    /// The first slice since the last [`Watch::take`] that took too long, in words.
    found: Option<String>,
}

impl Watch {
    /// `None` if nothing is to be watched.
    pub fn new(on: &DumpOn) -> Option<Watch> {
        let rules = on.slow.clone();
        (!rules.is_empty()).then_some(Watch { rules, limits: Vec::new(), matched: 0, found: None })
    }

    /// A slice took this long, so far. Returns whether that is too long.
    #[inline]
    pub fn took(&mut self, name: Name<'_>, strings: &Interner, nanos: u64) -> bool {
        let limit = match name {
            Name::Id(id) => match self.limits.get(id.0 as usize) {
                Some(limit) if *limit != 0 => *limit,
                _ => self.learn(id, strings),
            },
            Name::Bytes(bytes) => self.limit(bytes),
        };
        let slow = nanos > limit;
        if slow {
            self.note(name, strings, nanos);
        }
        slow
    }

    /// Why a dump is due, if one is.
    pub fn take(&mut self) -> Option<String> {
        self.found.take()
    }

    #[cold]
    fn learn(&mut self, id: StrId, strings: &Interner) -> u64 {
        let limit = self.limit(strings.text(id).bytes);
        let index = id.0 as usize;
        if self.limits.len() <= index {
            self.limits.resize(index + 1, 0);
        }
        self.limits[index] = limit;
        limit
    }

    /// The rules that a slice was called by, as bits.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    fn limit(&mut self, name: &[u8]) -> u64 {
        let mut limit = u64::MAX;
        for (at, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.names(name)) {
            limit = limit.min(rule.nanos());
            self.matched |= if at < MAX_PATTERNS { 1 << at } else { 0 };
        }
        limit
    }

    #[cold]
    fn note(&mut self, name: Name<'_>, strings: &Interner, nanos: u64) {
        if self.found.is_none() {
            let name = match name {
                Name::Id(id) => strings.text(id).bytes,
                Name::Bytes(bytes) => bytes,
            };
            let name = String::from_utf8_lossy(name);
            self.found = Some(format!("{name} took {:.3} ms", nanos as f64 / 1e6));
        }
    }
}
