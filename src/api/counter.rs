//! Counters: values over time.

use std::sync::atomic::{AtomicU32, Ordering};

use kymograph_protos::record::{ArgType, Kind, Record};
use kymograph_protos::{CounterUnit, StrId};

use super::value::{Encoded, Value};
use crate::intern::INTERNER;
use crate::recorder::category::{APP, Category};
use crate::{clock, queue};

/// A value that changes over time, on a track of its own under the process. Make it a
/// `static`:
///
/// ```
/// use kymograph::{Counter, CounterUnit};
///
/// static QUEUED: Counter = Counter::new("queued").unit(CounterUnit::Bytes);
/// QUEUED.set(4096);
/// ```
#[derive(Debug)]
pub struct Counter {
    category: &'static Category,
    name: &'static str,
    unit: CounterUnit,
    site: AtomicU32,
}

impl Counter {
    /// A counter called `name`.
    pub const fn new(name: &'static str) -> Counter {
        Counter { category: &APP, name, unit: CounterUnit::None, site: AtomicU32::new(0) }
    }

    /// What it counts.
    #[must_use]
    pub const fn unit(mut self, unit: CounterUnit) -> Counter {
        self.unit = unit;
        self
    }

    /// The category it is recorded with.
    #[must_use]
    pub const fn category(mut self, category: &'static Category) -> Counter {
        self.category = category;
        self
    }

    /// Records that it has the value `value` (an integer or float) from now on.
    #[inline]
    pub fn set(&'static self, value: impl Value) {
        if !self.category.is_enabled() {
            return;
        }
        let site = match self.site.load(Ordering::Relaxed) {
            0 => self.resolve(),
            site => StrId(site),
        };
        let (tag, arg) = match value.encode() {
            // Perfetto's counters are signed or floating.
            Encoded::Bits(ArgType::U64, n) if n > i64::MAX as u64 => {
                (ArgType::F64, (n as f64).to_bits())
            }
            Encoded::Bits(ty, bits) => (ty, bits),
            Encoded::Text(_) => return,
        };
        let head = Record {
            time: clock::ticks(),
            other: self.unit as u64,
            arg,
            site,
            kind: Kind::Counter as u8,
            tag: tag as u8,
            ..Record::default()
        };
        queue::with_producer(|producer| producer.event(&queue::POOL, head, &[], &[]));
    }

    #[cold]
    fn resolve(&self) -> StrId {
        let site = INTERNER.intern_static(self.category.id(), StrId::NONE, self.name);
        self.site.store(site.0, Ordering::Relaxed);
        site
    }
}
