//! What may overlap: overlapped tasks, regions, frames and events.
//!
//! Their ends name them by an id of the program's, or by their domain alone, and may come
//! from another thread. So the open ones are kept in a table behind a lock; they are rare
//! next to tasks. Metadata for one waits there for its end.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{LazyLock, Mutex};

use kymograph_protos::{Extra, Kind, Record, StrId};

use super::super::args::Args;
use super::super::guard::{events_left_out, guard};
use super::super::memory;
use super::super::session::{ITT, Session, range_id, range_number, session};
use super::super::table::{Interned, List};
use super::super::text::{CText, Text, WideText};
use super::names::{DomainRef, StringRef};
use super::sys::{Function, Id, TIMESTAMP_NONE};
use super::tasks::{given, live};
use crate::environment::gettid;

pub(crate) fn functions() -> [(&'static str, Function); 14] {
    [
        ("task_begin_overlapped", begin_overlapped as Function),
        ("task_begin_overlapped_ex", begin_overlapped_ex as Function),
        ("task_end_overlapped", end_overlapped as Function),
        ("task_end_overlapped_ex", end_overlapped_ex as Function),
        ("region_begin", begin_overlapped as Function),
        ("region_end", end_overlapped as Function),
        ("frame_begin_v3", frame_begin as Function),
        ("frame_end_v3", frame_end as Function),
        ("frame_submit_v3", frame_submit as Function),
        ("event_create", event_create as Function),
        ("event_createA", event_create as Function),
        ("event_createW", event_create_w as Function),
        ("event_start", event_start as Function),
        ("event_end", event_end as Function),
    ]
}

/// Open ranges at most; a program that never ends them must not use up memory.
const MAX_OPEN: usize = 1 << 14;
/// Metadata of one range at most.
const MAX_EXTRAS: usize = 32;

/// By what an end finds its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    /// An id of the program's (in its domain).
    Task(u64, [u64; 3]),
    /// A frame, by its id or by its domain alone.
    Frame(u64, [u64; 3]),
    /// A user event on a thread.
    Event(c_int, i32),
}

#[derive(Debug)]
struct Open {
    /// None: it is not recorded.
    id: Option<u64>,
    begin: u64,
    extras: Vec<Extra>,
}

static OPEN: LazyLock<Mutex<HashMap<Key, Open>>> = LazyLock::new(Mutex::default);
static EVENTS: List<Interned> = List::new();

fn key(id: Id) -> [u64; 3] {
    [id.d1, id.d2, id.d3]
}

/// Records the beginning of a range and keeps it open under `key`. Returns the one that
/// was open there before.
fn begin(
    session: &Session,
    key: Key,
    category: StrId,
    name: &Text<'_>,
    recorded: bool,
    time: Option<u64>,
) -> Option<Open> {
    let time = time.unwrap_or_else(|| session.now());
    let id = range_id(range_number(), true);
    let head = Record { other: id, kind: Kind::RangeBegin as u8, ..Record::default() };
    memory::locked(&OPEN, |open| {
        let room = open.len() < MAX_OPEN && open.try_reserve(1).is_ok();
        if !room && !open.contains_key(&key) {
            events_left_out(1);
            return None;
        }
        let recorded =
            recorded && session.send_head(head, category, name, &mut Args::new(), Some(time));
        let extras = Vec::new();
        open.insert(key, Open { id: recorded.then_some(id), begin: time, extras })
    })
}

/// Records the end of a range.
fn end(session: &Session, open: &Open, time: u64) {
    if let Some(id) = open.id {
        let kind = Kind::RangeEnd as u8;
        session.push(Record { time, other: id, kind, ..Record::default() }, &open.extras);
    }
}

/// Ends what is open under `key`.
fn finish(key: Key, time: Option<u64>) {
    let Some(session) = session() else { return };
    let time = time.unwrap_or_else(|| session.now());
    // Not found: begun before us, or ended twice.
    if let Some(found) = memory::locked(&OPEN, |open| open.remove(&key)) {
        end(session, &found, time);
    }
}

/// Adds metadata to the range of this id; `false` if none is open.
pub(crate) fn keep(domain: DomainRef, id: Id, extras: &[Extra]) -> bool {
    let keys = [Key::Task(domain.address(), key(id)), Key::Frame(domain.address(), key(id))];
    memory::locked(&OPEN, |open| {
        let Some(key) = keys.into_iter().find(|key| open.contains_key(key)) else {
            return false;
        };
        if let Some(found) = open.get_mut(&key) {
            let room = MAX_EXTRAS.saturating_sub(found.extras.len());
            let more = &extras[..room.min(extras.len())];
            if found.extras.try_reserve(more.len()).is_ok() {
                found.extras.extend(more);
            }
        }
        true
    })
}

fn overlapped(domain: DomainRef, id: Id, name: StringRef, time: Option<u64>) {
    let Some(session) = session() else { return };
    let category = domain.category(session);
    let key = Key::Task(domain.address(), key(id));
    let name = name.text(session, category);
    let recorded = live(session, domain, category);
    if let Some(before) = begin(session, key, category, &name, recorded, time) {
        // The id is used again: the one before can no longer be ended.
        end(session, &before, time.unwrap_or_else(|| session.now()));
    }
}

unsafe extern "C" fn begin_overlapped(domain: DomainRef, id: Id, _parent: Id, name: StringRef) {
    guard((), || overlapped(domain, id, name, None));
}

unsafe extern "C" fn begin_overlapped_ex(
    domain: DomainRef,
    clock: *const c_void,
    timestamp: u64,
    id: Id,
    _parent: Id,
    name: StringRef,
) {
    guard((), || overlapped(domain, id, name, given(clock, timestamp)));
}

unsafe extern "C" fn end_overlapped(domain: DomainRef, id: Id) {
    guard((), || finish(Key::Task(domain.address(), key(id)), None));
}

unsafe extern "C" fn end_overlapped_ex(
    domain: DomainRef,
    clock: *const c_void,
    timestamp: u64,
    id: Id,
) {
    guard((), || finish(Key::Task(domain.address(), key(id)), given(clock, timestamp)));
}

/// A frame's key; its id may be missing.
fn frame(domain: DomainRef, id: *const Id) -> Key {
    if id.is_null() {
        return Key::Frame(domain.address(), key(Id::default()));
    }
    // SAFETY: a parameter of a callback: not NULL, so an id of the program's.
    let id = unsafe { id.read_unaligned() };
    Key::Frame(domain.address(), key(id))
}

/// A frame is called as its domain.
unsafe extern "C" fn frame_begin(domain: DomainRef, id: *const Id) {
    guard((), || {
        let Some(session) = session() else { return };
        let category = domain.category(session);
        let name = Text::Borrowed(domain.name());
        let recorded = live(session, domain, category);
        let key = frame(domain, id);
        if let Some(before) = begin(session, key, category, &name, recorded, None) {
            end(session, &before, session.now());
        }
    });
}

unsafe extern "C" fn frame_end(domain: DomainRef, id: *const Id) {
    guard((), || finish(frame(domain, id), None));
}

/// A frame that is over; the times are ours (`__itt_get_timestamp`).
unsafe extern "C" fn frame_submit(domain: DomainRef, _: *const Id, from: u64, to: u64) {
    guard((), || {
        let Some(session) = session() else { return };
        let category = domain.category(session);
        if !live(session, domain, category) {
            return;
        }
        let to = if to == TIMESTAMP_NONE { session.now() } else { to };
        let from = if from == TIMESTAMP_NONE { to } else { from.min(to) };
        let id = range_id(range_number(), true);
        let head = Record { other: id, kind: Kind::RangeBegin as u8, ..Record::default() };
        let name = Text::Borrowed(domain.name());
        if session.send_head(head, category, &name, &mut Args::new(), Some(from)) {
            let kind = Kind::RangeEnd as u8;
            session.push(Record { time: to, other: id, kind, ..Record::default() }, &[]);
        }
    });
}

/// The event of this name; numbered from 1, as 0 may be taken for a failure.
fn create_event(name: &[u8]) -> c_int {
    let known = EVENTS.find(|event| event.text() == name).map(|found| found.0);
    let index = known.or_else(|| EVENTS.push(Interned::new(name)?));
    index.and_then(|index| c_int::try_from(index + 1).ok()).unwrap_or(0)
}

/// The length is redundant, and wrong in some programs.
unsafe extern "C" fn event_create(name: CText, _length: c_int) -> c_int {
    guard(0, || create_event(name.bytes()))
}

unsafe extern "C" fn event_create_w(name: WideText, _length: c_int) -> c_int {
    guard(0, || create_event(&name.utf8()))
}

fn event_key(event: c_int) -> Key {
    Key::Event(event, gettid())
}

/// An event need not be ended: it then had no duration, which shows when it is started
/// again. So the one before ends where it began.
unsafe extern "C" fn event_start(event: c_int) -> c_int {
    guard(-1, || {
        let Some(session) = session() else { return -1 };
        let index = u32::try_from(event).ok().and_then(|event| event.checked_sub(1));
        let Some(found) = index.and_then(|index| EVENTS.get(index)) else {
            return -1;
        };
        let category = session.key(&ITT);
        let name = match found.id(session, category) {
            StrId::NONE => Text::Borrowed(found.text()),
            site => Text::Site(site),
        };
        let recorded = session.live(category);
        let before = begin(session, event_key(event), category, &name, recorded, None);
        if let Some(before) = before {
            end(session, &before, before.begin);
        }
        0
    })
}

unsafe extern "C" fn event_end(event: c_int) -> c_int {
    guard(-1, || {
        finish(event_key(event), None);
        0
    })
}
