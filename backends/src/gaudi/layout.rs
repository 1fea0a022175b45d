//! The buffer that `synProfilerGetTrace` fills.
//!
//! ```text
//!       ┌─────────────────────┬───────────────┬────────────┬─────────┐
//!       │ event × n           │ strings       │ n?         │ version │
//!       └─────────────────────┴───────────────┴────────────┴─────────┘
//! byte  0                     n × stride      size − 16    size − 8
//!
//! event 0      8        16    32          48         64      68      72       80
//!       ┌──────┬────────┬─────┬───────────┬──────────┬───────┬───────┬────────┬──────────
//!       │ name*│category*│type│ timestamp │ duration │ type  │ index │ context│ arguments
//!       └──────┴────────┴─────┴───────────┴──────────┴───────┴───────┴────────┴──────────
//!                              long double            of the engine
//! ```
//! | arguments | 208 bytes (Gaudi2 and 3) | 112 bytes (SynapseAI_Core) |
//! |---|---|---|
//! | of an event | dataType* 80, operation* 88, recipeId u16 96, recipeName* 104, streamHandle 112, eventHandle 120, count u8 128, extra* 136 | dataType* 80, operation* 88 |
//! | of metadata | name* 80, group* 88 | the same |
//! | context | u64 | u32 |
//!
//! Which layout it is, nothing says: it is the one in which the beginning makes sense. Pointers
//! point into the strings; no other is followed, which costs a name and no more. The last entry
//! may be none (gaudi-pytorch-bridge leaves it out). Times are microseconds in newer
//! releases and nanoseconds in older ones (gaudi-pytorch-bridge multiplies by 1000 from one
//! release on), so the unit is told by what comes near the profiler's own clock.

use super::float80::scaled;
use crate::device::error::Result;
use crate::device::raw::Raw;

/// A layout of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// 208 bytes.
    New,
    /// 112 bytes.
    Old,
}

impl Layout {
    pub(crate) const fn stride(self) -> usize {
        match self {
            Layout::New => 208,
            Layout::Old => 112,
        }
    }
}

// Both end where a 16-byte `long double` may follow.
const _: () = assert!((Layout::New.stride() | Layout::Old.stride()) & 15 == 0);

/// Where addresses of strings lie in an event.
pub(crate) const NAME: usize = 0;
pub(crate) const DATA_TYPE: usize = 80;
pub(crate) const OPERATION: usize = 88;
const RECIPE_NAME: usize = 104;

/// Bytes of an extra argument: key* 0, type 8 (0 u64, 1 char*, 2 double), value 16.
const EXTRA: usize = 24;
/// Events by which a layout is recognised.
const PROBE: usize = 16;
/// How many of them there must be if no name is found.
const ENOUGH: usize = 4;

/// A filled buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace<'a> {
    bytes: &'a [u8],
    /// Where the bytes lay when pointers were made.
    address: usize,
    layout: Layout,
    /// How many events there are.
    count: usize,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    trace: &'a Trace<'a>,
    raw: Raw<'a>,
}

/// The value of an extra argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Extra<'a> {
    Number(u64),
    Text(&'a [u8]),
    Float(f64),
}

impl<'a> Trace<'a> {
    /// A buffer with `count` events, or why it is none.
    pub(crate) fn new(bytes: &'a [u8], count: usize) -> Result<Trace<'a>> {
        let address = bytes.as_ptr().addr();
        let candidates =
            [Layout::New, Layout::Old].map(|layout| Trace { bytes, address, layout, count });
        let sensible = candidates.into_iter().filter(Trace::makes_sense);
        // The first of those that are as good.
        let mut best = sensible.rev().max_by_key(Trace::names);
        if let Some(trace) = &mut best {
            trace.count -= usize::from(!trace.ends_in_event());
        }
        best.ok_or_else(|| {
            format!(
                "its {count} events in {} bytes have neither 208 nor 112 bytes each, or are not \
                     all there: this release of Synapse is not known",
                bytes.len()
            )
            .into()
        })
    }

    fn makes_sense(&self) -> bool {
        let events = self.count.checked_mul(self.layout.stride());
        let there = events.is_some_and(|events| events <= self.bytes.len());
        // A letter or two may stand anywhere.
        let enough = || self.names() > 0 || self.probed().count() >= ENOUGH;
        there && self.probed().all(|event| event.is_event()) && enough()
    }

    /// The events by which the layout is recognised: not the last one, which may be none.
    fn probed(&self) -> impl Iterator<Item = Event<'_>> {
        (0..self.count.saturating_sub(1).clamp(1, PROBE)).map(|index| self.event(index))
    }

    /// How many of them have a name, of their own or that they give an engine: there is nothing
    /// else in the trace of a device that did nothing.
    fn names(&self) -> usize {
        let named = |event: &Event<'_>| match event.kind() {
            b'M' => !event.named().is_empty(),
            _ => self.text(event.raw.u64(NAME)).is_some(),
        };
        self.probed().filter(named).count()
    }

    fn ends_in_event(&self) -> bool {
        let last = self.event(self.count.saturating_sub(1));
        last.is_event() && self.points_into_strings(last.raw.u64(NAME)) && last.time(1).is_some()
    }

    /// How many events have a name that lies elsewhere.
    pub(crate) fn strays(&'a self) -> u64 {
        let strays = |event: &Event<'_>| {
            [NAME, OPERATION].iter().any(|at| !self.points_into_strings(event.raw.u64(*at)))
        };
        self.events().filter(|event| event.kind() != b'M' && strays(event)).count() as u64
    }

    fn points_into_strings(&self, pointer: u64) -> bool {
        let at = (pointer as usize).wrapping_sub(self.address);
        pointer == 0 || (self.count * self.layout.stride()..self.bytes.len()).contains(&at)
    }

    /// The number at the end: of the release's format, perhaps.
    pub(crate) fn version(&self) -> u64 {
        Raw::new(self.bytes).u64(self.bytes.len().saturating_sub(8))
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The event of this number, which is less than `count`.
    pub(crate) fn event(&'a self, index: usize) -> Event<'a> {
        let at = index * self.layout.stride();
        let bytes = self.bytes.get(at..at + self.layout.stride()).unwrap_or_default();
        Event { trace: self, raw: Raw::new(bytes) }
    }

    pub(crate) fn events(&'a self) -> impl Iterator<Item = Event<'a>> {
        (0..self.count).map(|index| self.event(index))
    }

    /// The string at an address, if it lies in the buffer.
    fn text(&self, pointer: u64) -> Option<&'a [u8]> {
        if pointer == 0 || !self.points_into_strings(pointer) {
            return None;
        }
        let text = &self.bytes[(pointer as usize) - self.address..];
        let end = text.iter().position(|byte| *byte == 0)?;
        Some(&text[..end])
    }
}

impl<'a> Event<'a> {
    /// All of it.
    pub(crate) fn bytes(&self) -> Raw<'a> {
        self.raw
    }

    /// Whether it has a letter that is known.
    fn is_event(&self) -> bool {
        matches!(self.kind(), b'B' | b'E' | b'X' | b'M' | b'C' | b'i' | b'I')
    }

    /// Chrome's letter for what it is.
    pub(crate) fn kind(&self) -> u8 {
        self.raw.u8(16)
    }

    pub(crate) fn name(&self) -> &'a [u8] {
        self.text(NAME)
    }

    /// The address of a string, whose field lies there, and its bytes.
    pub(crate) fn pointer(&self, at: usize) -> u64 {
        self.raw.u64(at)
    }

    pub(crate) fn text(&self, at: usize) -> &'a [u8] {
        self.trace.text(self.raw.u64(at)).unwrap_or_default()
    }

    /// All strings that it points to, by where their addresses lie.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let places = [Some(NAME), Some(DATA_TYPE), Some(OPERATION), self.recipe_name()];
        let texts = places.into_iter().flatten().map(|at| (at, self.text(at)));
        texts.filter(|(_, text)| !text.is_empty())
    }

    /// When it was, times `scale`.
    pub(crate) fn time(&self, scale: u64) -> Option<u64> {
        scaled(self.long_double(32), scale)
    }

    /// How long it took, times `scale`.
    pub(crate) fn duration(&self, scale: u64) -> Option<u64> {
        scaled(self.long_double(48), scale)
    }

    fn long_double(&self, at: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.raw.u64(at).to_ne_bytes());
        bytes[8..].copy_from_slice(&self.raw.u64(at + 8).to_ne_bytes());
        bytes
    }

    /// Type and index of the engine.
    pub(crate) fn engine(&self) -> (u32, u32) {
        (self.raw.u32(64), self.raw.u32(68))
    }

    pub(crate) fn context(&self) -> u64 {
        match self.trace.layout {
            Layout::New => self.raw.u64(72),
            Layout::Old => self.raw.u32(72).into(),
        }
    }

    /// What metadata names.
    pub(crate) fn named(&self) -> &'a [u8] {
        self.text(DATA_TYPE)
    }

    fn is_new(&self) -> bool {
        self.trace.layout == Layout::New
    }

    /// 0: none.
    pub(crate) fn recipe(&self) -> u16 {
        if self.is_new() { self.raw.u16(96) } else { 0 }
    }

    /// Where the address of the recipe's name lies, if it has one.
    pub(crate) fn recipe_name(&self) -> Option<usize> {
        self.is_new().then_some(RECIPE_NAME)
    }

    pub(crate) fn stream(&self) -> u64 {
        if self.is_new() { self.raw.u64(112) } else { 0 }
    }

    pub(crate) fn event_handle(&self) -> u64 {
        if self.is_new() { self.raw.u64(120) } else { 0 }
    }

    /// Further arguments: name and value.
    pub(crate) fn extras(&self) -> impl Iterator<Item = (&'a [u8], Extra<'a>)> {
        let trace = self.trace;
        let count = if self.is_new() { usize::from(self.raw.u8(128)) } else { 0 };
        let at = (self.raw.u64(136) as usize).wrapping_sub(trace.address);
        let bytes = at
            .checked_add(count * EXTRA)
            .filter(|_| trace.points_into_strings(self.raw.u64(136)))
            .and_then(|end| trace.bytes.get(at..end))
            .unwrap_or_default();
        bytes.chunks_exact(EXTRA).filter_map(move |extra| {
            let raw = Raw::new(extra);
            let key = trace.text(raw.u64(0))?;
            let value = match raw.u32(8) {
                0 => Extra::Number(raw.u64(16)),
                1 => Extra::Text(trace.text(raw.u64(16))?),
                2 => Extra::Float(f64::from_bits(raw.u64(16))),
                _ => return None,
            };
            Some((key, value))
        })
    }
}

/// The factor that makes nanoseconds of the trace's times: 1000, or 1 in older releases.
/// `near` is a time of the profiler's clock, in nanoseconds, while it ran.
pub(crate) fn unit(trace: &Trace<'_>, near: u64) -> u64 {
    let timed = trace.events().filter(|event| event.kind() != b'M');
    let first = timed.filter_map(|event| event.time(1)).find(|time| *time != 0).unwrap_or(0);
    let distance = |scale: u64| first.saturating_mul(scale).abs_diff(near);
    if distance(1) < distance(1000) { 1 } else { 1000 }
}
