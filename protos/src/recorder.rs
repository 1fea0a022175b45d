//! The seam between code that observes activities and the pipeline that records them.

use crate::record::{Extra, Kind, Record, StrId};

/// Where backends push what they see: the methods that run for each event. The pipeline
/// implements it; a test does so with a `Vec`.
///
/// Every method may be called from any thread at any time, inside any callback: none
/// blocks, allocates in the steady state, panics or calls back.
pub trait Recorder: Send + Sync {
    /// The recording clock, in ticks.
    fn now(&self) -> u64;

    /// The id of `text`. `category` names what it belongs to (an id got with
    /// `StrId::NONE` as category, or none): the same text under two categories gets two
    /// ids. Returns `StrId::NONE` when the interner is full or busy: the caller then sends
    /// the bytes themselves with [`Recorder::push_named`].
    ///
    /// The bytes are copied; they need not be UTF-8.
    fn intern(&self, category: StrId, text: &[u8]) -> StrId;

    /// Records `head` with `extras` on the calling thread's queue (`head.tail` is set by
    /// the recorder). Returns whether it was recorded; if not, it was counted as lost.
    ///
    /// A caller that gets `false` for a `Begin` or `Push` must not push its `End` or `Pop`. An
    /// `End` or `Pop` whose beginning was recorded always finds room.
    fn push(&self, head: Record, extras: &[Extra]) -> bool {
        self.push_named(head, extras, &[])
    }

    /// As [`Recorder::push`], with a name (or string argument: see the record module)
    /// that could not be interned.
    fn push_named(&self, head: Record, extras: &[Extra], name: &[u8]) -> bool;

    /// Records the beginning of a slice without arguments, at this moment: a `Begin` of `site`,
    /// with these bits of [`Record::tag`]. As [`Recorder::push`], for what is done very often.
    fn begin(&self, site: StrId, tag: u8) -> bool {
        let kind = Kind::Begin as u8;
        self.push(Record { time: self.now(), site, kind, tag, ..Record::default() }, &[])
    }

    /// Records the end of the innermost slice that a `Begin` opened, at this moment.
    fn end(&self) -> bool {
        let kind = Kind::End as u8;
        self.push(Record { time: self.now(), kind, ..Record::default() }, &[])
    }

    /// Whether events of this category (an id got with `StrId::NONE` as category) are
    /// wanted at all at this moment. Cheap: one load.
    fn enabled(&self, category: StrId) -> bool;
}

/// What a [`Recorder`] offers beside its hot path: for code that prepares names, or decodes the
/// buffers of a vendor's library on a thread of its own.
///
/// The rules of [`Recorder`] hold, but for [`ColdRecorder::intern_or_wait`], which may wait.
pub trait ColdRecorder: Recorder {
    /// As [`Recorder::intern`]; but where that refuses because another thread adds a text, this
    /// waits for that thread, for a tenth of a second at most. For names that are interned once,
    /// or on a thread of the caller's own.
    fn intern_or_wait(&self, category: StrId, text: &[u8]) -> StrId {
        self.intern(category, text)
    }

    /// Whether events of this category are wanted now or may be wanted later, for programs that
    /// ask once and remember the answer.
    fn may_be_enabled(&self, category: StrId) -> bool {
        self.enabled(category)
    }

    /// Counts `events` that were lost before they could be pushed: in a vendor's buffers.
    fn lost(&self, _events: u64) {}

    /// Counts an argument or a text that an event of the calling thread goes without.
    fn cut_short(&self) {}

    /// Whether so much waits to be written that a source that can wait should do so. (A
    /// thread of the program cannot; a thread that decodes buffers can.)
    fn backlogged(&self) -> bool {
        false
    }
}
