//! The pipeline as backends see it: see [`Recorder`] and [`ColdRecorder`].

pub(crate) mod armed;
pub(crate) mod category;
pub(crate) mod names;
pub(crate) mod steps;

use std::sync::atomic::{AtomicU8, Ordering, fence};

use kymograph_protos::packet::Strings;
use kymograph_protos::record::{ArgType, Extra, Kind, Record, StrId};
use kymograph_protos::{ColdRecorder, Recorder};

use crate::clock;
use crate::guard::uncancelled;
use crate::hooks::DECIDE;
use crate::intern::INTERNER;
use crate::queue::{self, Arena, POOL, Producer, producer, with_producer};
use armed::armed;

/// Whether events are compiled in (feature `off` takes them out).
pub const COMPILED_IN: bool = !cfg!(feature = "off");

/// The pipeline of this process.
pub static PIPELINE: Pipeline = Pipeline;

/// What [`enabled`] knows of a category, by its id: 0 nothing yet, else `ON` or `OFF`.
/// Forgotten when a recording starts or stops.
static KNOWN: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
const ON: u8 = 1;
const OFF: u8 = 2;

/// See the module.
#[derive(Debug)]
pub struct Pipeline;

impl Pipeline {
    /// As [`Recorder::begin`], for callers that have the calling thread's producer.
    #[inline(always)]
    pub(crate) fn begin_on(&self, producer: &Producer, site: StrId, tag: u8) -> bool {
        let (time, kind) = (self.now(), Kind::Begin as u8);
        let head = Record { time, site, kind, tag, ..Record::default() };
        producer.begin(&POOL, head, 0, &[], &[])
    }

    /// As [`Recorder::end`], for callers that have the calling thread's producer.
    #[inline(always)]
    pub(crate) fn end_on(&self, producer: &Producer) -> bool {
        let head = Record { time: self.now(), kind: Kind::End as u8, ..Record::default() };
        producer.end(&POOL, head, 0, &[])
    }
}

/// Forgets which categories are wanted.
pub(crate) fn forget_categories() {
    fence(Ordering::SeqCst);
    for id in 0..=INTERNER.count().min(KNOWN.len() as u32 - 1) {
        KNOWN[id as usize].store(0, Ordering::Relaxed);
    }
}

/// Has the trace say something of itself. The text is kept for good.
pub(crate) fn state(key: &str, text: &str) {
    let fact = Record {
        time: PIPELINE.now(),
        arg: PIPELINE.intern_or_wait(StrId::NONE, text.as_bytes()).0.into(),
        site: PIPELINE.intern_or_wait(StrId::NONE, key.as_bytes()),
        kind: Kind::Fact as u8,
        tag: ArgType::Str as u8,
        ..Record::default()
    };
    PIPELINE.push(fact, &[]);
}

/// Switches a category on or off, until the recording ends or another one starts.
pub(crate) fn set_enabled(category: StrId, on: bool) {
    KNOWN[category.0 as usize & 0xffff].store(if on { ON } else { OFF }, Ordering::Relaxed);
}

impl Recorder for Pipeline {
    #[inline]
    fn now(&self) -> u64 {
        clock::ticks()
    }

    #[inline]
    fn intern(&self, category: StrId, text: &[u8]) -> StrId {
        INTERNER.intern(category, StrId::NONE, text)
    }

    #[inline]
    fn push(&self, head: Record, extras: &[Extra]) -> bool {
        self.push_named(head, extras, &[])
    }

    #[inline]
    fn push_named(&self, head: Record, extras: &[Extra], name: &[u8]) -> bool {
        // No closure, which would be a function of its own, with a copy of the head.
        let producer = producer();
        match Kind::from_u8(head.kind) {
            Some(Kind::Begin) => producer.begin(&POOL, head, 0, extras, name),
            Some(Kind::Push) => {
                // A name by value leaves room in `site` for its category.
                let by_value = !name.is_empty() && !ends_in_bytes(extras);
                let stack = if by_value { head.site } else { INTERNER.text(head.site).category };
                producer.begin(&POOL, head, stack.0, extras, name)
            }
            Some(Kind::End) => producer.end(&POOL, head, 0, extras),
            Some(Kind::Pop) => producer.end(&POOL, head, head.site.0, extras),
            Some(Kind::ThreadName | Kind::ProcessName) => {
                remember(&head, name);
                producer.event(&POOL, head, extras, name)
            }
            _ => producer.event(&POOL, head, extras, name),
        }
    }

    #[inline]
    fn begin(&self, site: StrId, tag: u8) -> bool {
        self.begin_on(producer(), site, tag)
    }

    #[inline]
    fn end(&self) -> bool {
        self.end_on(producer())
    }

    #[inline]
    fn enabled(&self, category: StrId) -> bool {
        match KNOWN[category.0 as usize & 0xffff].load(Ordering::Relaxed) {
            ON => true,
            OFF => false,
            _ => ask(category),
        }
    }
}

impl ColdRecorder for Pipeline {
    fn intern_or_wait(&self, category: StrId, text: &[u8]) -> StrId {
        INTERNER.intern_or_wait(category, text)
    }

    fn may_be_enabled(&self, category: StrId) -> bool {
        let name = INTERNER.text(category).bytes;
        let later = || armed().is_some_and(|armed| armed.categories.matches(name));
        self.enabled(category) || later()
    }

    fn lost(&self, events: u64) {
        POOL.lose(events);
    }

    fn cut_short(&self) {
        with_producer(Producer::cut_short);
    }

    fn backlogged(&self) -> bool {
        // An arena that is closing is not read, so no room will be made.
        POOL.is_backlogged() && !queue::arena().is_some_and(Arena::is_closing)
    }
}

/// For traces that begin later.
#[cold]
fn remember(head: &Record, name: &[u8]) {
    if let Some(armed) = armed() {
        let name = if name.is_empty() { INTERNER.text(head.site).bytes } else { name };
        uncancelled(|| armed.names.say(head, name));
    }
}

fn ends_in_bytes(extras: &[Extra]) -> bool {
    extras.last().is_some_and(|e| e.ty == ArgType::Bytes as u8)
}

#[cold]
fn ask(category: StrId) -> bool {
    let name = INTERNER.text(category).bytes;
    let decide = || DECIDE.get().and_then(|decide| decide(name));
    let Some(wanted) = decide() else {
        // Nothing is recorded at the moment; do not remember that.
        return false;
    };
    let known = &KNOWN[category.0 as usize & 0xffff];
    known.store(if wanted { ON } else { OFF }, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if decide() != Some(wanted) {
        // A recording has started: this may have been forgotten before it was known.
        known.store(0, Ordering::Relaxed);
    }
    wanted
}
