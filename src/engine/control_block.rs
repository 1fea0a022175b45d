//! The control block of a recording: what its engine and everything else share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::host::Host;
use super::stats::{Stats, Summary, ThreadStats};
use super::window::Window;
use crate::capture::Rule;
use crate::clock;
use crate::config::Config;
use crate::error::Error;
use crate::flight::{Order, Ordered};
use crate::page::LeftOut;
use crate::queue;

/// How long the inbox may be held by others: not at all, unless a signal handler asks that
/// interrupted the holder.
const LOCKED: Duration = Duration::from_secs(1);

/// Upper bound on a wait, as a multiple of its `timeout`, while the engine makes progress.
const MAX_EXTENSION: u32 = 10;

/// What the engine and everybody else share of a recording.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// The process that is recorded, which may be another one.
    pid: AtomicU32,
    pub(crate) host: Box<dyn Host>,
    pub(crate) ending: AtomicBool,
    pub(crate) paused: AtomicBool,
    /// What belongs to the trace.
    pub(crate) window: Window,
    /// How that is opened and closed by ranges of the program, if it is.
    pub(crate) captures: Captures,
    pub(crate) inbox: Mutex<Inbox>,
    /// Wakes the engine.
    pub(crate) wake: Condvar,
    /// Wakes those who wait for the engine.
    pub(crate) answer: Condvar,
    pub(crate) stats: Mutex<Stats>,
    tickets: AtomicU64,
    metadata: Mutex<Vec<(String, String)>>,
    edges: Mutex<(u64, u64)>,
    /// Changes whenever the engine has emptied a queue or written something.
    moved: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) stop: bool,
    /// As `stop`, and the engine stops the sources.
    close: bool,
    /// The newest flush that was asked for, and the newest that was done.
    wanted: u64,
    done: u64,
    /// Dumps of the flight recorder that were asked for.
    orders: Vec<Order>,
    /// When those were asked for that are not yet among them.
    asked: Vec<u64>,
    pub(crate) ended: bool,
}

/// What the engine is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Go on.
    None,
    /// Write everything, then say so.
    Flush(u64),
    /// Stop the sources, then end.
    Close,
    /// End.
    Stop,
}

/// Windows that ranges of the program open and close.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    rule: OnceLock<Rule>,
    windows: AtomicU64,
    ranges: AtomicU64,
    done: AtomicBool,
}

impl Captures {
    /// Before the engine is made: the window is one of these.
    pub(crate) fn by(&self, rule: Rule) {
        let _ = self.rule.set(rule);
    }

    pub(crate) fn rule(&self) -> Option<Rule> {
        self.rule.get().cloned()
    }

    /// Engine: how many windows there were, how many ranges of the last one are over, and
    /// whether there will be no more.
    pub(crate) fn say(&self, windows: u64, ranges: u64, done: bool) {
        self.ranges.store(ranges, Ordering::Relaxed);
        self.windows.store(windows, Ordering::Relaxed);
        self.done.store(done, Ordering::Release);
    }

    /// Whether a window has opened, how many of its ranges are over, and whether it is closed.
    pub(crate) fn progress(&self) -> (bool, u64, bool) {
        let done = self.done.load(Ordering::Acquire);
        (self.windows.load(Ordering::Relaxed) > 0, self.ranges.load(Ordering::Relaxed), done)
    }
}

impl Inbox {
    fn request(&self) -> Request {
        match self {
            Inbox { stop: true, .. } => Request::Stop,
            Inbox { close: true, .. } => Request::Close,
            Inbox { wanted, done, .. } if wanted > done => Request::Flush(*wanted),
            _ => Request::None,
        }
    }
}

impl Shared {
    pub(crate) fn new(config: Config, window: Window, pid: u32, host: Box<dyn Host>) -> Shared {
        Shared {
            config,
            pid: AtomicU32::new(pid),
            host,
            ending: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            window,
            captures: Captures::default(),
            inbox: Mutex::default(),
            wake: Condvar::new(),
            answer: Condvar::new(),
            stats: Mutex::default(),
            tickets: AtomicU64::new(0),
            metadata: Mutex::default(),
            edges: Mutex::default(),
            moved: AtomicU64::new(0),
        }
    }

    /// The process that is recorded.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Whether that is this process, and not one that it was forked from.
    pub(crate) fn is_ours(&self) -> bool {
        self.pid() == std::process::id()
    }

    /// In a forked child that goes on with its parent's recording.
    pub(crate) fn now_of_this_process(&self) {
        self.pid.store(std::process::id(), Ordering::Relaxed);
    }

    /// Engine: it has made progress, so a wait for its end may go on.
    pub(crate) fn moves(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the engine has ended: for `timeout`, and then for as long as it still does
    /// something in that time, ten times as long at most. Returns whether it has.
    pub(crate) fn wait_for_end(&self, mut inbox: MutexGuard<'_, Inbox>, timeout: Duration) -> bool {
        let began = Instant::now();
        let end = began + timeout * MAX_EXTENSION;
        let (mut deadline, mut before) = (began + timeout, self.moved.load(Ordering::Relaxed));
        while !inbox.ended {
            let now = Instant::now();
            if now >= deadline {
                let moved = self.moved.load(Ordering::Relaxed);
                if moved == before || now >= end {
                    return false;
                }
                (deadline, before) = (end.min(now + timeout), moved);
            }
            inbox = wait(&self.answer, inbox, deadline.saturating_duration_since(now));
        }
        true
    }

    /// Engine: waits for a request, or for `time`.
    pub(crate) fn wait(&self, time: Duration) -> Request {
        let mut inbox = lock(&self.inbox);
        if inbox.request() == Request::None && inbox.orders.is_empty() {
            inbox = wait(&self.wake, inbox, time);
        }
        inbox.request()
    }

    /// Engine: the dumps that were asked for since the last time.
    pub(crate) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut lock(&self.inbox).orders)
    }

    /// Engine: since when dumps are waited for that [`Shared::take_orders`] has not
    /// returned. Whoever asks after this returned asks later than `now` was read before.
    pub(crate) fn oldest_order(&self) -> Option<u64> {
        let inbox = lock(&self.inbox);
        inbox.orders.iter().map(|order| order.asked).chain(inbox.asked.iter().copied()).min()
    }

    /// A dump is requested: what it is to hold stays from this moment on. Followed by
    /// [`Shared::order`].
    pub(crate) fn ask(&self, deadline: Instant) -> Result<u64, Error> {
        match lock_until(&self.inbox, deadline) {
            Some(mut inbox) if !inbox.ended && self.config.flight.is_some() => {
                let asked = clock::system(libc::CLOCK_BOOTTIME);
                inbox.asked.push(asked);
                Ok(asked)
            }
            _ => Err(Error::NoFlight),
        }
    }

    /// Orders the dump. Returns where the answer will come from.
    pub(crate) fn order(&self, mut order: Order) -> Result<Ordered, Error> {
        let (answer, answered) = std::sync::mpsc::channel();
        order.answer = Some(answer);
        let deadline = Instant::now() + LOCKED;
        let mut inbox = lock_until(&self.inbox, deadline).ok_or(Error::NoFlight)?;
        if let Some(at) = inbox.asked.iter().position(|asked| *asked == order.asked) {
            inbox.asked.swap_remove(at);
        }
        if inbox.ended {
            return Err(Error::NoFlight);
        }
        inbox.orders.push(order);
        self.wake.notify_one();
        Ok(answered)
    }

    /// Engine: a flush is done.
    pub(crate) fn flushed(&self, ticket: u64) {
        lock(&self.inbox).done = ticket;
        self.answer.notify_all();
    }

    /// Engine: shows how it is going.
    pub(crate) fn publish(&self, total: Summary, threads: impl FnOnce() -> Vec<ThreadStats>) {
        let mut stats = lock(&self.stats);
        stats.total = total;
        stats.threads = threads();
    }

    /// Records nothing for a while, or goes on.
    pub(crate) fn set_paused(&self, paused: bool) {
        if self.ending.load(Ordering::Acquire)
            || self.paused.swap(paused, Ordering::AcqRel) == paused
        {
            return;
        }
        if paused {
            self.host.record(None);
            self.window.pause();
        } else {
            self.window.resume();
            self.host.record(Some(&self.config.categories));
        }
    }

    /// Whether the options want a category. `kymo record` hears which of their names there are.
    pub(crate) fn wants(&self, category: &[u8]) -> bool {
        let wanted = self.config.categories.matches(category);
        if let Some(arena) = queue::arena() {
            match wanted {
                true => arena.matched(self.config.categories.matching(category)),
                false => arena.leave_out(LeftOut::Category.bit()),
            }
        }
        wanted
    }

    /// Whether a category is recorded now; `None` if nothing is any more.
    pub(crate) fn wants_now(&self, category: &[u8]) -> Option<bool> {
        let wanted = || !self.paused.load(Ordering::Acquire) && self.wants(category);
        (!self.ending.load(Ordering::Acquire)).then(wanted)
    }

    /// Nothing is recorded from now on.
    pub(crate) fn recording_ends(&self) {
        if !self.ending.swap(true, Ordering::AcqRel) {
            self.host.record(None);
        }
    }

    /// Ends it as soon as the engine gets to it, which stops the sources then. Nothing new
    /// is recorded from now on.
    pub(crate) fn end(&self) {
        self.recording_ends();
        let mut inbox = lock(&self.inbox);
        inbox.close = true;
        self.wake.notify_one();
    }

    /// Has the engine end now: its process is dead.
    pub(crate) fn process_died(&self) {
        lock(&self.inbox).stop = true;
        self.wake.notify_one();
    }

    /// Something that the trace says of itself: it gets the key `kymograph.<pid>.<key>`.
    pub(crate) fn state(&self, key: &str, value: &str) {
        lock(&self.metadata).push((key.to_owned(), value.to_owned()));
    }

    /// Engine: what there is to say.
    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        lock(&self.metadata).clone()
    }

    /// What it amounted to, as of the last flush.
    pub(crate) fn total(&self) -> Summary {
        lock(&self.stats).total.clone()
    }

    /// When its window opened and closed, once it is over.
    pub(crate) fn window_nanos(&self) -> (u64, u64) {
        *lock(&self.edges)
    }

    /// Engine: it is over.
    pub(crate) fn ended(&self, total: Summary, edges: (u64, u64)) {
        *lock(&self.edges) = edges;
        let written = total.failure.is_none() && total.unwritten == 0;
        self.publish(total, Vec::new);
        self.host.over(written);
        lock(&self.inbox).ended = true;
        self.answer.notify_all();
    }

    /// The engine panicked: it is over, with what was counted last.
    pub(crate) fn broke(&self) {
        let mut total = lock(&self.stats).total.clone();
        total.failure = Some("the writer panicked".to_owned());
        self.ended(total, (0, 0));
    }

    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed) + 1;
        let deadline = Instant::now() + timeout;
        let Some(mut inbox) = lock_until(&self.inbox, deadline) else {
            return false;
        };
        inbox.wanted = inbox.wanted.max(ticket);
        self.wake.notify_one();
        while inbox.done < ticket && !inbox.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inbox = wait(&self.answer, inbox, left);
        }
        true
    }
}

/// A panic while it was held leaves a mutex usable: its data are plain values.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], but gives up: `_exit` may be called in a signal handler that interrupted
/// the holder of the lock.
pub(crate) fn lock_until<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}
