//! What the driver tells becomes callbacks and records.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::Record;
use crate::seam::{Call, Event, Nanos, Task, Work};
use crate::sizes::kind;
use crate::{
    activity, attributes, buffers, callbacks, external, in_flight, record, replay, settings,
};

thread_local! {
    /// When the calls that this thread is in began.
    static BEGAN: RefCell<Vec<Option<Nanos>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) extern "C" fn observe(event: &Event) {
    match event {
        Event::Ready => callbacks::cu_init_finished(),
        Event::Enter(call) => enter(call),
        Event::Exit(call) => exit(call),
        Event::Work(work) => submitted(work),
        Event::Wait(wait) => {
            callbacks::synchronized(wait);
            if activity::is_enabled(kind::SYNCHRONIZATION) {
                let (start, end) = attributes::clock_of(wait.start, wait.end);
                write(&record::wait(wait, start, end));
            }
        }
        Event::Recorded { place, correlation, event, record, time } => {
            if activity::is_enabled(kind::SYNCHRONIZATION) {
                let told = attributes::event_times();
                let time = if told { attributes::clock_of(*time, *time).0 } else { 0 };
                write(&record::recorded(*place, *correlation, *event, *record, time));
            }
        }
        Event::Context { context, device } => {
            callbacks::resource(callbacks::CONTEXT_CREATED, *context, 0);
            if activity::is_enabled(kind::DEVICE) {
                write(&record::device(*device));
            }
            if activity::is_enabled(kind::CONTEXT) {
                write(&record::context(*context, *device));
            }
        }
        Event::Destroy { context } => {
            callbacks::resource(callbacks::CONTEXT_DESTROY_STARTING, *context, 0);
        }
        Event::Stream { place, priority } => {
            callbacks::resource(callbacks::STREAM_CREATED, place.context, place.stream);
            if activity::is_enabled(kind::STREAM) {
                write(&record::stream(*place, *priority));
            }
        }
        Event::Memory(memory) => {
            if activity::is_enabled(record::kind_of(memory.deed)) {
                let (start, end) = attributes::clock_of(memory.start, memory.end);
                write(&record::memory(memory, start, end));
            }
        }
        Event::Overhead { kind, correlation, start, end } => {
            if activity::is_enabled(kind::OVERHEAD) {
                let times = attributes::clock_of(*start, *end);
                write(&record::overhead(*kind, thread(), *correlation, times));
            }
        }
    }
}

/// The calling thread, as clients asked to have it.
fn thread() -> u32 {
    if attributes::system_threads() {
        // SAFETY: always succeeds.
        return unsafe { libc::gettid() } as u32;
    }
    // SAFETY: always succeeds.
    (unsafe { libc::pthread_self() }) as u32
}

fn write(record: &Record) {
    buffers::write_of_thread(thread(), record);
}

fn enter(call: &Call) {
    callbacks::api(call, callbacks::ENTER);
    let wanted = activity::is_call_enabled(call.domain, call.cbid);
    let began = wanted.then(attributes::now);
    BEGAN.with_borrow_mut(|stack| stack.push(began));
}

fn exit(call: &Call) {
    let began = BEGAN.with_borrow_mut(Vec::pop).flatten();
    if let Some(start) = began {
        if activity::is_enabled(kind::EXTERNAL_CORRELATION) {
            for (of, id) in external::tops() {
                write(&record::external(of, id, call.correlation));
            }
        }
        write(&record::call(call, thread(), start, attributes::now()));
    }
    callbacks::api(call, callbacks::EXIT);
}

/// Nodes of graphs have no records of their own when whole graphs have.
fn submitted(work: &Work) {
    let wanted = match work.task {
        Task::Graph => activity::is_enabled(kind::GRAPH_TRACE),
        _ if work.graph != 0 && activity::is_enabled(kind::GRAPH_TRACE) => false,
        Task::Kernel(_) => {
            activity::is_enabled(kind::CONCURRENT_KERNEL) || activity::is_enabled(kind::KERNEL)
        }
        Task::Copy(copy) if copy.peer.is_some() => {
            activity::is_enabled(kind::MEMCPY2) || activity::is_enabled(kind::MEMCPY)
        }
        Task::Copy(_) => activity::is_enabled(kind::MEMCPY),
        Task::Set { .. } => activity::is_enabled(kind::MEMSET),
    };
    if wanted {
        in_flight::add(work);
    }
}

/// Writes records of all work that is over; with `forced` also of work that is not, which
/// then has no times.
pub(crate) fn finish(forced: bool) {
    if activity::is_enabled(kind::CONCURRENT_KERNEL) {
        replay::once();
    }
    in_flight::finish(forced, |work, over| {
        let (start, end) = if over { attributes::clock_of(work.start, work.end) } else { (0, 0) };
        finished(work, start, end);
    });
}

fn finished(mut work: Work, start: Nanos, end: Nanos) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let hit = |fault| settings::befalls(fault, count);
    if hit("drop") {
        return buffers::drop_one();
    }
    if hit("zero-correlation") {
        work.correlation = 0;
    }
    let (start, end) = if hit("zero-times") { (0, 0) } else { (start, end) };
    let end = if hit("future") { end + settings::HOUR } else { end };
    buffers::write_of_device(&record::work(&work, start, end));
}
