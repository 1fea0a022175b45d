//! When the devices do what they are asked: every stream is busy until a point in time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::seam::{Nanos, Place, realtime};

/// Between a launch and the earliest start of its work.
const LATENCY: Nanos = 2_000;

/// How far a stream may be behind the program; then launches block, as with a full queue.
const BEHIND: Nanos = 50_000_000;

#[derive(Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) id: u64,
    pub(crate) time: Nanos,
}

#[derive(Default)]
struct Timeline {
    busy_until: HashMap<(u32, u32), Nanos>,
    contexts: HashSet<u32>,
    destroyed: HashSet<u32>,
    events: HashMap<(u32, u32), Recorded>,
    records: u64,
}

static TIMELINE: Mutex<Option<Timeline>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut Timeline) -> R) -> R {
    let mut timeline: MutexGuard<'_, Option<Timeline>> =
        TIMELINE.lock().unwrap_or_else(PoisonError::into_inner);
    f(timeline.get_or_insert_default())
}

/// The context of a device: there is one each.
pub(crate) fn place(device: u32, stream: u32) -> Place {
    Place { device, context: device + 1, stream }
}

/// Whether a device has a context yet.
pub(crate) fn is_used(device: u32) -> bool {
    with(|timeline| timeline.contexts.contains(&place(device, 0).context))
}

/// Whether a context was destroyed.
pub(crate) fn is_destroyed(context: u32) -> bool {
    with(|timeline| timeline.destroyed.contains(&context))
}

/// A context is no more.
pub(crate) fn forget(context: u32) {
    with(|timeline| {
        timeline.destroyed.insert(context);
        timeline.contexts.remove(&context);
        timeline.busy_until.retain(|(of, _), _| *of != context);
    });
}

/// Whether the context, and whether the stream is new.
pub(crate) fn touch(place: Place) -> (bool, bool) {
    with(|timeline| {
        let context = timeline.contexts.insert(place.context);
        let key = (place.context, place.stream);
        let stream = !timeline.busy_until.contains_key(&key);
        timeline.busy_until.entry(key).or_insert(0);
        (context, stream)
    })
}

/// Takes the next `dur` of a stream; returns when that is.
pub(crate) fn take(place: Place, dur: Nanos) -> (Nanos, Nanos) {
    let start = with(|timeline| {
        let busy = timeline.busy_until.entry((place.context, place.stream)).or_insert(0);
        let start = (*busy).max(realtime() + LATENCY);
        *busy = start + dur;
        start
    });
    if start > realtime() + BEHIND {
        sleep_until(start - BEHIND / 2);
    }
    (start, start + dur)
}

pub(crate) fn record(place: Place, event: u32) -> Recorded {
    with(|timeline| {
        let busy = timeline.busy_until.entry((place.context, place.stream)).or_insert(0);
        let time = (*busy).max(realtime());
        timeline.records += 1;
        let recorded = Recorded { id: timeline.records, time };
        timeline.events.insert((place.context, event), recorded);
        recorded
    })
}

pub(crate) fn recorded(place: Place, event: u32) -> Recorded {
    let never = Recorded { id: 0, time: 0 };
    with(|timeline| timeline.events.get(&(place.context, event)).copied().unwrap_or(never))
}

/// Lets a stream do nothing before `time`.
pub(crate) fn hold(place: Place, time: Nanos) {
    with(|timeline| {
        let busy = timeline.busy_until.entry((place.context, place.stream)).or_insert(0);
        *busy = (*busy).max(time);
    });
}

/// When a stream, or with `None` all of its context, has done what it was asked.
pub(crate) fn done(context: u32, stream: Option<u32>) -> Nanos {
    with(|timeline| {
        let here = |key: &(u32, u32)| key.0 == context && stream.is_none_or(|s| s == key.1);
        let ends = timeline.busy_until.iter().filter(|(key, _)| here(key));
        ends.map(|(_, end)| *end).max().unwrap_or(0)
    })
}

pub(crate) fn sleep_until(time: Nanos) {
    while let Some(left @ 1..) = time.checked_sub(realtime()) {
        std::thread::sleep(Duration::from_nanos(left));
    }
}
