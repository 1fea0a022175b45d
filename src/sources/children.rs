//! Profilers of the program's own that take part in recordings.
//!
//! They are told when a recording begins and ends, by whatever request, and record through
//! the API like everybody else. What goes wrong in them is in the trace, as a fact.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::recorder;

/// What is done when a recording begins or ends; the error is for people.
type Part = Box<dyn FnMut() -> Result<(), String> + Send>;

struct Child {
    id: u64,
    name: String,
    start: Part,
    stop: Part,
    running: bool,
}

/// Shared, so that one that takes long holds up neither those who come nor those who go.
type Entry = Arc<Mutex<Child>>;

static CHILDREN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
/// The process in which they were started last; 0 if they never were.
static OF: AtomicU32 = AtomicU32::new(0);
static IDS: AtomicU64 = AtomicU64::new(1);

/// Takes part in recordings until it is dropped: see [`take_part`].
#[must_use = "it takes part until this is dropped"]
#[derive(Debug)]
pub struct Membership {
    id: u64,
}

/// Has `start` called when sources are switched on for a recording (in its warm-up, if it
/// has one), and `stop` when it ends, while what it pushes is still recorded. Both are
/// called once per recording, by the thread that starts or ends it: the program's, or
/// Kymograph's background thread. Returning an error, or panicking, puts a fact
/// `kymograph.<pid>.child.<name>` into the trace, and does no other harm. A recording that
/// runs already goes on without it.
///
/// ```
/// let cache = kymograph::session::take_part(
///     "cache",
///     || Ok(()),
///     || Err("the counters were reset meanwhile".to_owned()),
/// );
/// # drop(cache);
/// ```
pub fn take_part(
    name: &str,
    start: impl FnMut() -> Result<(), String> + Send + 'static,
    stop: impl FnMut() -> Result<(), String> + Send + 'static,
) -> Membership {
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    let (name, start, stop) = (name.to_owned(), Box::new(start), Box::new(stop));
    let child = Child { id, name, start, stop, running: false };
    lock(&CHILDREN).push(Arc::new(Mutex::new(child)));
    Membership { id }
}

impl Drop for Membership {
    fn drop(&mut self) {
        lock(&CHILDREN).retain(|child| lock(child).id != self.id);
    }
}

/// Starts those that do not run.
pub(super) fn start() {
    if !lock(&CHILDREN).is_empty() {
        OF.store(std::process::id(), Ordering::Relaxed);
    }
    each(false, |child| &mut child.start);
}

/// Stops those that run.
pub(super) fn stop() {
    // The child of a `vfork` has its parent's memory. Without children, no system call.
    let of_this_process = || OF.load(Ordering::Relaxed) == std::process::id();
    if OF.load(Ordering::Relaxed) == 0 || !of_this_process() {
        return;
    }
    each(true, |child| &mut child.stop);
}

fn each(running: bool, part: impl Fn(&mut Child) -> &mut Part) {
    let children = lock(&CHILDREN).clone();
    for child in children {
        let mut child = lock(&child);
        if child.running != running {
            continue;
        }
        child.running = !running;
        let result = catch_unwind(AssertUnwindSafe(|| part(&mut child)()));
        let why = match result {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "it panicked".to_owned(),
        };
        let what = if running { "it could not stop" } else { "it could not start" };
        let key = format!("kymograph.{}.child.{}", std::process::id(), child.name);
        recorder::state(&key, &format!("{what}: {why}"));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
