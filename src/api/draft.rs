//! Events in the making: a head and its arguments, put together without allocating.
//!
//! The macros record the common event (no argument or one that fits into the head)
//! without this; here is everything else, for them, for the C ABI and for the
//! `tracing` layer.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

use kymograph_protos::record::{ArgType, Extra, Kind, Record};
use kymograph_protos::{Recorder, StrId};

use super::value::{Encoded, Value};
use crate::clock;
use crate::intern::INTERNER;
use crate::queue::with_producer;
use crate::recorder::PIPELINE;

/// Arguments (flows and the track included) that one event can have.
pub(crate) const MAX_ARGS: usize = 32;

/// See the module.
pub(crate) struct Draft<'a> {
    head: Record,
    /// The first `len` are there. The others stay as they are: to clear them takes longer than
    /// to record the event.
    extras: [MaybeUninit<Extra>; MAX_ARGS],
    len: usize,
    /// The one string that travels by value, because it could not be interned.
    text: &'a [u8],
    /// The argument that `text` is the value of; none: it is the event's name.
    text_of: StrId,
}

impl<'a> Draft<'a> {
    /// An event that happens now and is called `site`.
    pub(crate) fn new(kind: Kind, site: StrId) -> Draft<'a> {
        Draft::from(Record { time: clock::ticks(), site, kind: kind as u8, ..Record::default() })
    }

    /// An event with this head.
    #[inline]
    pub(crate) fn from(head: Record) -> Draft<'a> {
        let extras = [const { MaybeUninit::uninit() }; MAX_ARGS];
        Draft { head, extras, len: 0, text: &[], text_of: StrId::NONE }
    }

    /// An event that happens now and is called `name`, in the category of that id.
    pub(crate) fn called(kind: Kind, category: StrId, name: &'a [u8]) -> Draft<'a> {
        let site = INTERNER.intern(category, StrId::NONE, name);
        let mut draft = Draft::new(kind, site);
        if site.is_none() {
            draft.name(category, name);
        }
        draft
    }

    /// Lets the name travel by value.
    pub(crate) fn name(&mut self, category: StrId, name: &'a [u8]) {
        if !self.text.is_empty() {
            self.text_or_wait(self.text_of, self.text);
        }
        (self.head.site, self.text, self.text_of) = (category, name, StrId::NONE);
    }

    /// Sets what depends on the kind: the id of a range, the unit of a counter.
    pub(crate) fn other(mut self, other: u64) -> Draft<'a> {
        self.head.other = other;
        self
    }

    /// Puts the event on a track.
    pub(crate) fn track(&mut self, id: u64) {
        self.add(Extra::new(StrId::NONE, ArgType::Track, id));
    }

    /// Makes it be about a thread, which need not be this one.
    #[cfg(feature = "inject")]
    pub(crate) fn thread(&mut self, tid: u32) {
        self.head.arg = tid.into();
    }

    /// The argument whose name the site knows.
    #[inline]
    pub(crate) fn first_arg(&mut self, ty: ArgType, bits: u64) {
        (self.head.tag, self.head.arg) = (ty as u8, bits);
    }

    /// A further argument, or a flow.
    #[inline]
    pub(crate) fn arg(&mut self, name: StrId, ty: ArgType, bits: u64) {
        let name = match ty {
            ArgType::Flow | ArgType::FlowEnd => StrId::NONE,
            // Without a name an integer would be taken for the rank of a track.
            _ if name.is_none() => unnamed(),
            _ => name,
        };
        self.add(Extra::new(name, ty, bits));
    }

    /// A further argument that is a string.
    pub(crate) fn text(&mut self, name: StrId, text: &'a [u8]) {
        match INTERNER.intern(StrId::NONE, StrId::NONE, text) {
            StrId::NONE => self.text_by_value(name, text),
            id => self.arg(name, ArgType::Str, id.0.into()),
        }
    }

    /// A further argument that is a string and could not be interned. Only one string
    /// travels by value: the name if that must, else the first that comes; the others are
    /// counted as cut short, to nothing.
    #[inline]
    pub(crate) fn text_by_value(&mut self, name: StrId, text: &'a [u8]) {
        if self.text.is_empty() {
            (self.text, self.text_of) = (text, if name.is_none() { unnamed() } else { name });
        } else {
            self.text_or_wait(name, text);
        }
    }

    /// A further argument that is a string, apart from the one that travels by value.
    #[cold]
    fn text_or_wait(&mut self, name: StrId, text: &[u8]) {
        match INTERNER.intern_or_wait(StrId::NONE, text) {
            StrId::NONE => cut_short(),
            id => self.arg(name, ArgType::Str, id.0.into()),
        }
    }

    /// Further arguments, by name.
    pub(crate) fn values(&mut self, args: &[(&'static str, &'a dyn Value)]) {
        for &(name, value) in args {
            let name = INTERNER.intern_static(StrId::NONE, StrId::NONE, name);
            match <dyn Value>::encode(value) {
                Encoded::Bits(ty, bits) => self.arg(name, ty, bits),
                Encoded::Text(text) => self.text(name, text.as_bytes()),
            }
        }
    }

    #[inline]
    fn add(&mut self, extra: Extra) {
        match self.extras.get_mut(self.len) {
            Some(slot) => {
                slot.write(extra);
                self.len += 1;
            }
            None => cut_short(),
        }
    }

    /// Records it. Returns whether there was room. By reference, since a move is a copy of all that
    /// it has room for. To be called once.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> bool {
        if !self.text.is_empty() && !self.text_of.is_none() {
            self.add(Extra::new(self.text_of, ArgType::Bytes, self.text.len() as u64));
        }
        // SAFETY: `add` has written the first `len`.
        let extras = unsafe { std::slice::from_raw_parts(self.extras.as_ptr().cast(), self.len) };
        PIPELINE.push_named(self.head, extras, self.text)
    }
}

fn cut_short() {
    with_producer(|producer| producer.cut_short());
}

/// What an argument without a name is called.
fn unnamed() -> StrId {
    static ID: AtomicU32 = AtomicU32::new(0);
    match ID.load(Ordering::Relaxed) {
        0 => {
            let id = INTERNER.intern_static(StrId::NONE, StrId::NONE, "arg");
            ID.store(id.0, Ordering::Relaxed);
            id
        }
        id => StrId(id),
    }
}
