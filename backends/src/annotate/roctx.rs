//! ROCTX: what programs say about themselves on AMD's GPUs.
//!
//! Unlike NVTX it is a library that has no hook for a tool. Its functions reach us in two
//! ways: rocprofiler-sdk reports them where it is configured (`amd/markers.rs`), and a
//! preloaded library stands in front of them elsewhere ([`reported`] says which it is).
//!
//! Names are as in NVTX, since PyTorch says the same through both: see [`super::nvtx`].

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kymograph_protos::{ArgType, ColdRecorder, Kind, Record};

use super::args::Args;
use super::memory;
use super::nvtx;
use super::session::{self, ROCTX, range_id, range_number, session};
use super::text::Text;

/// Whether rocprofiler-sdk reports the calls that it knows of.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Ranges at most that are open and that we know by the library's ids.
const MAX_RANGES: usize = 1 << 16;

/// Our ids of ranges by the library's.
static RANGES: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);

/// Starts to record annotations.
pub fn initialize(recorder: &'static dyn ColdRecorder) {
    session::start(recorder);
}

/// rocprofiler-sdk reports the calls that it knows of from now on: who stands in front of
/// those only passes them on.
pub(crate) fn set_reported() {
    REPORTED.store(true, Ordering::Release);
}

/// Whether rocprofiler-sdk reports the calls that it knows of.
pub fn reported() -> bool {
    REPORTED.load(Ordering::Acquire)
}

/// Records a mark.
pub fn mark(message: &[u8]) {
    let Some(session) = session() else { return };
    let category = session.key(&ROCTX);
    if session.live(category) {
        let text = Text::Borrowed(message);
        session.send(Kind::Instant, category, &text, 0, &mut Args::new());
    }
}

/// Opens a nested range. Returns its level, negative if there is none.
pub fn push(message: &[u8]) -> c_int {
    let Some(session) = session() else { return -1 };
    nvtx::push_message(session, session.key(&ROCTX), message)
}

/// Closes the innermost nested range. Returns its level, negative if there is none.
pub fn pop() -> c_int {
    let Some(session) = session() else { return -1 };
    nvtx::pop_innermost(session, session.now(), session.key(&ROCTX), |_| {})
}

/// Opens a free range. Returns our id of it; see [`name_range`].
pub fn start(message: &[u8]) -> u64 {
    let Some(session) = session() else { return 0 };
    let category = session.key(&ROCTX);
    let number = range_number();
    let live = session.live(category);
    let (kind, text, id) = (Kind::RangeBegin, Text::Borrowed(message), range_id(number, true));
    let recorded = live && session.send(kind, category, &text, id, &mut Args::new());
    range_id(number, recorded)
}

/// Says that the library calls a range of ours by an id of its own.
pub fn name_range(theirs: u64, ours: u64) {
    // Not recorded.
    if ours & 1 == 0 {
        return;
    }
    memory::locked(&RANGES, |ranges| {
        let ranges = ranges.get_or_insert_default();
        if ranges.len() < MAX_RANGES && ranges.try_reserve(1).is_ok() {
            ranges.insert(theirs, ours);
        }
    });
}

/// Annotations are not of interest from here on, or are again. `thread` is 0: one thread alone is
/// not told apart.
pub fn pause(thread: u64, paused: bool) {
    let Some(session) = session() else { return };
    if thread == 0 && session::set_paused(paused) != paused {
        let what = if paused { "annotations paused" } else { "annotations resumed" };
        session.instant(session.key(&ROCTX), what.as_bytes());
    }
}

/// Names the calling thread.
pub fn name_thread(name: &[u8]) {
    let Some(session) = session() else { return };
    let (kind, tag) = (Kind::ThreadName as u8, ArgType::U64 as u8);
    let head = Record { tag, kind, ..Record::default() };
    session.send_head(head, session.key(&ROCTX), &Text::Borrowed(name), &mut Args::new(), None);
}

/// Closes the free range that the library calls `theirs`.
pub fn stop(theirs: u64) {
    let Some(session) = session() else { return };
    let time = session.now();
    let found = memory::locked(&RANGES, |ranges| ranges.as_mut().and_then(|r| r.remove(&theirs)));
    let Some(other) = found else { return };
    session.push(Record { time, other, kind: Kind::RangeEnd as u8, ..Record::default() }, &[]);
}
