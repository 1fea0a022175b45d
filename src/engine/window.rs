//! Which part of what is recorded belongs to the trace.
//!
//! A recording that is prepared in advance has its sources on before its window opens, and
//! what they say then is discarded; by its timestamps, so that it does not matter when the
//! engine gets to it. A window that is opened or closed by a call (`step()`) is decided on
//! the caller's thread, while the engine may be busy with what others recorded a moment
//! later. So the caller says that it is about to decide, *then* reads the clock:
//!
//! ```text
//!  caller: UNDECIDED ──► T = now ──► T
//!  engine: records, drained ──► looks at the window: anything but UNDECIDED is right for
//!                               all of them, since T is later than what was drained before
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::control_block::lock;
use crate::clock::{self, Converter};
use crate::queue;

/// An edge that is not known yet, and later than everything.
pub(super) const NEVER: u64 = u64::MAX;
/// An edge that is being decided at this moment.
const UNDECIDED: u64 = u64::MAX - 1;

/// How long the engine waits for a caller that was interrupted while it decided.
const TIMEOUT: Duration = Duration::from_millis(100);

/// One of the two edges.
#[derive(Debug)]
struct Edge {
    /// In ticks; or `NEVER`, `UNDECIDED`.
    ticks: AtomicU64,
    /// In nanoseconds of `CLOCK_BOOTTIME`, if it was said so and not converted yet.
    nanos: AtomicU64,
}

impl Edge {
    fn at(ticks: u64) -> Edge {
        Edge { ticks: AtomicU64::new(ticks), nanos: AtomicU64::new(NEVER) }
    }

    /// Engine.
    fn get(&self, converter: &Converter) -> u64 {
        let nanos = self.nanos.load(Ordering::Acquire);
        if nanos != NEVER {
            self.ticks.store(converter.ticks(nanos), Ordering::SeqCst);
            self.nanos.store(NEVER, Ordering::Release);
        }
        match self.ticks.load(Ordering::SeqCst) {
            UNDECIDED => self.wait(),
            ticks => ticks,
        }
    }

    #[cold]
    fn wait(&self) -> u64 {
        let since = Instant::now();
        while since.elapsed() < TIMEOUT {
            match self.ticks.load(Ordering::SeqCst) {
                UNDECIDED => std::thread::yield_now(),
                ticks => return ticks,
            }
        }
        NEVER
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Window {
    opens: Edge,
    closes: Edge,
    /// Holes in it, in nanoseconds: from, to. Only for what devices do: what the program
    /// does is not recorded then.
    pauses: Mutex<Vec<(u64, u64)>>,
    /// Whether there ever was a pause.
    paused: AtomicBool,
    /// The windows so far, if ranges of the program open and close them: ticks at which it
    /// opened, and both edges in nanoseconds. In order.
    captured: Mutex<Vec<(u64, (u64, u64))>>,
    captures: AtomicU8,
}

/// [`Window::captures`]: ranges of the program open it; and have done so before.
const CAPTURES: u8 = 1;
const REOPENS: u8 = 2;

/// The window, as the engine sees it in a pass. In ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub opens: u64,
    pub closes: u64,
    /// Whether it has holes.
    pub paused: bool,
    /// Whether ranges of the program open and close it.
    pub captures: bool,
    /// Whether there was a window before this one.
    pub reopens: bool,
}

impl Bounds {
    /// Whether it is known when it opens.
    pub fn is_open(&self) -> bool {
        self.opens != NEVER
    }

    /// Whether everything is in it.
    pub fn is_all(&self) -> bool {
        self.opens == 0 && self.closes == NEVER && !self.paused
    }

    /// The edges in nanoseconds.
    pub fn nanos(&self, converter: &Converter) -> (u64, u64) {
        let nanos = |ticks| match ticks {
            0 | NEVER => ticks,
            ticks => converter.nanos(ticks),
        };
        (nanos(self.opens), nanos(self.closes))
    }
}

impl Window {
    /// All that is recorded.
    pub fn all() -> Window {
        Window::between(0)
    }

    /// What happens from this time on, in nanoseconds of `CLOCK_BOOTTIME`; 0: all.
    pub fn from(opens: u64) -> Window {
        match opens {
            0 => Window::all(),
            nanos => Window::with_edges([[NEVER, nanos], [NEVER, NEVER]]),
        }
    }

    /// Nothing, until it is opened.
    pub fn closed() -> Window {
        Window::between(NEVER)
    }

    fn between(opens: u64) -> Window {
        Window {
            opens: Edge::at(opens),
            closes: Edge::at(NEVER),
            pauses: Mutex::default(),
            paused: AtomicBool::new(false),
            captured: Mutex::default(),
            captures: AtomicU8::new(0),
        }
    }

    /// What has edges at these times, each in ticks, and in nanoseconds if it is not [`NEVER`].
    pub fn with_edges(edges: [[u64; 2]; 2]) -> Window {
        let [opens, closes] = edges.map(|[ticks, nanos]| Edge {
            ticks: AtomicU64::new(if ticks == UNDECIDED { NEVER } else { ticks }),
            nanos: AtomicU64::new(nanos),
        });
        Window { opens, closes, ..Window::all() }
    }

    /// Whether it was made [`Window::closed`].
    pub fn is_limited(&self) -> bool {
        self.opens.ticks.load(Ordering::SeqCst) != 0
    }

    /// From now on what devices do is left out.
    pub fn pause(&self) {
        let now = clock::system(libc::CLOCK_BOOTTIME);
        lock(&self.pauses).push((now, NEVER));
        self.paused.store(true, Ordering::Release);
    }

    /// And from now on not any more.
    pub fn resume(&self) {
        if let Some(pause) = lock(&self.pauses).last_mut() {
            pause.1 = clock::system(libc::CLOCK_BOOTTIME);
        }
    }

    /// Whether what began at this time, in nanoseconds, began in a pause.
    pub fn is_paused_at(&self, time: u64) -> bool {
        let pauses = lock(&self.pauses);
        let after = pauses.partition_point(|(from, _)| *from <= time);
        after > 0 && time < pauses[after - 1].1
    }

    /// The engine's thread: it opens at this time of `CLOCK_BOOTTIME`, past or future.
    pub fn open_at(&self, nanos: u64) {
        self.opens.nanos.store(nanos, Ordering::Release);
        say_edge(Side::Opens, NEVER, nanos);
    }

    /// The engine's thread: it closes at this time.
    pub fn close_at(&self, nanos: u64) {
        self.closes.nanos.store(nanos, Ordering::Release);
        say_edge(Side::Closes, NEVER, nanos);
    }

    /// Any thread: opens or closes it now if `decide`, which is called with the time, says
    /// so. One thread at a time.
    pub fn decide<T>(&self, decide: impl FnOnce() -> (Option<Side>, T)) -> T {
        let edges = [(&self.opens, Side::Opens), (&self.closes, Side::Closes)];
        let change = |edge: &Edge, from, to| {
            edge.ticks.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let mine = edges.map(|(edge, _)| change(edge, NEVER, UNDECIDED));
        let now = clock::ticks();
        let (side, result) = decide();
        for ((edge, this), mine) in edges.into_iter().zip(mine) {
            if mine {
                // Fails if the other side has said a time meanwhile.
                change(edge, UNDECIDED, if side == Some(this) { now } else { NEVER });
                if side == Some(this) {
                    say_edge(this, now, NEVER);
                }
            }
        }
        result
    }

    /// The engine's thread, after it drained the records that it decides about.
    pub fn bounds(&self, converter: &Converter) -> Bounds {
        Bounds {
            opens: self.opens.get(converter),
            closes: self.closes.get(converter),
            paused: self.paused.load(Ordering::Acquire),
            captures: self.captures.load(Ordering::Relaxed) & CAPTURES != 0,
            reopens: self.captures.load(Ordering::Relaxed) & REOPENS != 0,
        }
    }

    /// The engine's thread: this is the window of what it writes next, in ticks. A window that
    /// has no end yet may be closed by [`Window::close_at`].
    pub fn capture(&self, (opens, closes): (u64, u64)) {
        let before = self.opens.ticks.swap(opens, Ordering::SeqCst);
        if closes != NEVER || before != opens {
            self.closes.ticks.store(closes, Ordering::SeqCst);
        }
        let known = lock(&self.captured);
        let earlier = known.iter().any(|(ticks, _)| *ticks < opens);
        self.captures.store(CAPTURES | if earlier { REOPENS } else { 0 }, Ordering::Relaxed);
    }

    /// The engine's thread: a window opened at these ticks, and has these edges in nanoseconds.
    pub fn captured(&self, opened: u64, edges: (u64, u64)) {
        let mut known = lock(&self.captured);
        match known.iter_mut().rev().find(|(ticks, _)| *ticks <= opened) {
            Some((ticks, old)) if *ticks == opened => *old = edges,
            _ => known.push((opened, edges)),
        }
    }

    /// The edges of the captured window that work between these times belongs to.
    pub fn captured_around(&self, begin: u64, end: u64) -> Option<(u64, u64)> {
        let known = lock(&self.captured);
        let at = known.partition_point(|(_, (_, closes))| *closes <= begin);
        known.get(at).map(|(_, edges)| *edges).filter(|(opens, _)| end >= *opens)
    }
}

/// One of the edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Opens,
    Closes,
}

/// Leaves for a recovery when the window opens or closes.
pub(crate) fn say_edge(side: Side, ticks: u64, nanos: u64) {
    if let Some(arena) = queue::arena().filter(|_| queue::is_own()) {
        arena.say_edge(side as usize, ticks, nanos);
    }
}
