//! Call sites: what the macros know at compile time, and the numbers it got at run time.

use std::sync::atomic::{AtomicU32, Ordering};

use kymograph_protos::StrId;
use kymograph_protos::record::{ArgType, Kind, Record};

use super::draft::Draft;
use super::track::Track;
use super::value::Encoded;
use crate::intern::INTERNER;
use crate::recorder::category::Category;
use crate::{clock, queue};

/// A place in the program that records events with `N` arguments. Made by the macros.
#[derive(Debug)]
pub struct Callsite<const N: usize> {
    category: &'static Category,
    name: &'static str,
    args: [&'static str; N],
    site: AtomicU32,
    ids: [AtomicU32; N],
}

impl<const N: usize> Callsite<N> {
    /// A place that records events called `name`.
    pub const fn new(
        category: &'static Category,
        name: &'static str,
        args: [&'static str; N],
    ) -> Callsite<N> {
        let ids = [const { AtomicU32::new(0) }; N];
        Callsite { category, name, args, site: AtomicU32::new(0), ids }
    }

    /// Whether it records anything now.
    #[inline(always)]
    pub fn is_enabled(&'static self) -> bool {
        self.category.is_enabled()
    }

    /// The id of its name, or none if it could not be interned (yet).
    #[inline(always)]
    pub(crate) fn site(&self) -> StrId {
        match self.site.load(Ordering::Acquire) {
            0 => self.resolve(),
            site => StrId(site),
        }
    }

    #[cold]
    fn resolve(&self) -> StrId {
        let category = self.category.id();
        let mut complete = !category.is_none();
        for (id, name) in self.ids.iter().zip(self.args) {
            let interned = INTERNER.intern_static(StrId::NONE, StrId::NONE, name);
            complete &= !interned.is_none();
            // Another thread may have had more luck.
            if !interned.is_none() {
                id.store(interned.0, Ordering::Relaxed);
            }
        }
        if !complete {
            // The next event tries again.
            return StrId::NONE;
        }
        let arg = self.ids.first().map_or(StrId::NONE, |id| StrId(id.load(Ordering::Relaxed)));
        let site = INTERNER.intern_static(category, arg, self.name);
        if !site.is_none() {
            self.site.store(site.0, Ordering::Release);
        }
        site
    }

    /// Records an event of `kind`; `other` and `first` extra as the kind wants them.
    #[inline(always)]
    pub(crate) fn record(
        &'static self,
        kind: Kind,
        other: u64,
        track: Option<u64>,
        values: [Encoded<'_>; N],
    ) -> bool {
        let head = Record {
            time: clock::ticks(),
            other,
            site: self.site(),
            kind: kind as u8,
            ..Record::default()
        };
        let plain = track.is_none() && !head.site.is_none();
        match values.as_slice() {
            [] if plain => push(kind, head),
            [Encoded::Bits(ty, bits)] if plain => {
                push(kind, Record { arg: *bits, tag: *ty as u8, ..head })
            }
            _ => self.record_with(head, track, &values),
        }
    }

    /// With several arguments, strings, a track, or a name that is not interned.
    #[inline(never)]
    fn record_with(
        &'static self,
        head: Record,
        track: Option<u64>,
        values: &[Encoded<'_>],
    ) -> bool {
        let mut draft = Draft::from(head);
        if head.site.is_none() {
            draft.name(self.category.id(), self.name.as_bytes());
        }
        if let Some(track) = track {
            draft.track(track);
        }
        for (index, value) in values.iter().enumerate() {
            let name = StrId(self.ids[index].load(Ordering::Relaxed));
            match value.bits() {
                (ArgType::Bytes, _, bytes) => draft.text_by_value(name, bytes),
                (ty, bits, _) if index == 0 && !head.site.is_none() => draft.first_arg(ty, bits),
                (ty, bits, _) => draft.arg(name, ty, bits),
            }
        }
        draft.push()
    }
}

/// Records a moment: for the macro.
#[inline(always)]
pub fn instant<const N: usize>(
    site: &'static Callsite<N>,
    track: Option<&Track>,
    values: [Encoded<'_>; N],
) {
    site.record(Kind::Instant, 0, track.map(Track::id), values);
}

#[inline(always)]
fn push(kind: Kind, head: Record) -> bool {
    queue::with_producer(|producer| match kind {
        Kind::Begin => producer.begin(&queue::POOL, head, 0, &[], &[]),
        _ => producer.event(&queue::POOL, head, &[], &[]),
    })
}
