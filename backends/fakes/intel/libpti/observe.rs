//! What Level Zero tells becomes records.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::Record;
use crate::seam::{Call, Event, Nanos, Task, Work, realtime};
use crate::sizes::kind;
use crate::{buffers, in_flight, record, replay, settings, view};

thread_local! {
    /// When the calls that this thread is in began.
    static BEGAN: RefCell<Vec<Nanos>> = const { RefCell::new(Vec::new()) };
}

pub(crate) extern "C" fn observe(event: &Event) {
    match event {
        Event::Enter(_) => BEGAN.with_borrow_mut(|stack| stack.push(realtime())),
        Event::Exit(call) => exit(call),
        Event::Work(work) => submitted(work),
        Event::Wait(wait) if view::is_enabled(kind::SYNCHRONIZATION) => {
            of_thread(&record::wait(wait));
        }
        Event::Overhead { kind, start, end, .. } if view::is_enabled(kind::OVERHEAD) => {
            of_thread(&record::overhead(*kind, *start, *end));
        }
        _ => {}
    }
}

fn of_thread(record: &Record) {
    // SAFETY: always succeeds.
    buffers::write(unsafe { libc::gettid() } as u32, record);
}

fn exit(call: &Call) {
    let start = BEGAN.with_borrow_mut(Vec::pop).unwrap_or_default();
    if view::is_call_enabled(call) {
        of_thread(&record::call(call, start, realtime()));
    }
}

fn submitted(work: &Work) {
    let wanted = match work.task {
        Task::Graph => false,
        Task::Kernel(_) => view::is_enabled(kind::KERNEL),
        Task::Copy(copy) if copy.peer.is_some() => view::is_enabled(kind::PEER_COPY),
        Task::Copy(_) => view::is_enabled(kind::COPY),
        Task::Set { .. } => view::is_enabled(kind::FILL),
    };
    if wanted {
        in_flight::add(work);
    }
}

/// Writes records of all work that is over.
pub(crate) fn finish() {
    if view::is_enabled(kind::KERNEL) {
        replay::once();
    }
    in_flight::finish(false, |work, _over| finished(work));
}

fn finished(mut work: Work) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let hit = |fault| settings::befalls(fault, count);
    if hit("drop") {
        return;
    }
    if hit("zero-correlation") {
        work.correlation = 0;
    }
    let ahead = if settings::fault("clock-jump") && count > 100 { 3_600_000_000_000 } else { 0 };
    let times = (work.start + ahead, work.end + ahead);
    let (start, end) = if hit("zero-times") { (0, 0) } else { times };
    buffers::write(buffers::DEVICES, &record::work(&work, start, end));
}
