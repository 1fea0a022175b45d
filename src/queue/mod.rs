//! Queues: how records get from the threads that make them to the one that writes them.
//!
//! ```text
//!  thread ──Producer──► chunk ─next─► chunk ─next─► chunk ◄──Reader── engine
//!                         ▲                            │
//!                         └────────── Pool ◄───────────┘
//! ```
//! A push allocates nothing, takes no lock, makes no system call and never waits, unless
//! the policy lets it wait for room. When there is no room it is counted, and the next
//! record that finds room is preceded by a `Lost` record.

mod arena;
mod chunk;
mod fork_guard;
mod kept;
mod lane;
mod left;
mod names;
mod pool;
mod producer;
mod reader;
mod tail;
#[cfg(test)]
mod tests;

pub use arena::{About, Arena, Life, MEMBERS};
pub use chunk::CAPACITY;
pub use kept::{Kept, Moment, NEVER};
pub use names::{NameLog, Named};
pub use pool::Pool;
pub use producer::Producer;
pub use reader::{Drained, Losses, Reader};

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use std::time::{Duration, Instant};

use kymograph_backends::environment::gettid;

use crate::clock::Anchor;
use crate::intern::INTERNER;
use lane::Lane;

/// The pool of this process.
pub static POOL: Pool = Pool::new();

thread_local! {
    /// The one thread-local of the pipeline. Constant and without a destructor, so that
    /// access is a plain address computation, also while a thread shuts down.
    pub static PRODUCER: Producer = const { Producer::new() };
}

/// This thread's [`PRODUCER`]. It is not `Sync`, so the reference stays on the thread, whose last
/// code it outlives.
#[inline(always)]
pub fn producer<'a>() -> &'a Producer {
    let producer = PRODUCER.with(std::ptr::from_ref);
    // SAFETY: the calling thread's, which has no destructor.
    unsafe { &*producer }
}

/// Calls `body` with this thread's [`PRODUCER`]. Only the address is asked for inside of
/// `LocalKey::with`, which is not inlined with more in it, and then is two calls.
#[inline(always)]
pub fn with_producer<R>(body: impl FnOnce(&Producer) -> R) -> R {
    body(producer())
}

/// The `pthread` key whose destructor retires a thread's lane; `u32::MAX` before
/// [`watch_threads`]. Key destructors run after those of C++ and Rust thread-locals, so
/// what these record while a thread ends is still seen.
static EXIT_KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Makes lanes come back when threads end. Called once, before the first recording.
pub fn watch_threads() {
    if EXIT_KEY.load(Ordering::Acquire) != u32::MAX {
        return;
    }
    let mut key = 0;
    // SAFETY: `key` is writable, and `retire` takes what pthread passes.
    if unsafe { libc::pthread_key_create(&mut key, Some(retire)) } == 0 {
        EXIT_KEY.store(key, Ordering::Release);
    }
}

extern "C" fn retire(_: *mut libc::c_void) {
    PRODUCER.with(|p| p.retire(&POOL));
}

/// Arms the destructor for the calling thread.
fn on_thread_exit() {
    let key = EXIT_KEY.load(Ordering::Acquire);
    if key != u32::MAX {
        // SAFETY: the key was created; any non-null value makes its destructor run.
        unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    }
}

/// The kernel's id and name of the calling thread.
fn this_thread() -> (u32, [u64; 2]) {
    let mut name = [0u64; 2];
    if cfg!(miri) {
        return (1, name);
    }
    // SAFETY: PR_GET_NAME writes at most 16 bytes, terminator included (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    (gettid() as u32, name)
}

/// The arena that this process records into, if it is read by another.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());
/// Whether that is read by this process itself, and its children have nothing to do with it.
static OWN: AtomicBool = AtomicBool::new(false);
/// In a forked child: the member that its parent is.
static PARENT: AtomicU32 = AtomicU32::new(0);
/// Publishes names. Under the interner's lock.
static NAMES: names::Writer = names::Writer::new();

/// Has everything recorded from now on in this process and its children go to `arena`, which
/// another process reads. Returns false if something was recorded already.
pub fn share(arena: &'static Arena) -> bool {
    if !POOL.share(arena) {
        return false;
    }
    fork_guard::arm();
    ARENA.store(ptr::from_ref(arena).cast_mut(), Ordering::Release);
    true
}

/// The arena that this process records into, if it is read by another.
pub fn arena() -> Option<&'static Arena> {
    // SAFETY: null, or leaked.
    unsafe { ARENA.load(Ordering::Acquire).as_ref() }
}

/// As [`share`], with an arena that this process reads itself. Its children do not use it.
pub fn use_own(arena: &'static Arena) -> bool {
    OWN.store(true, Ordering::Release);
    let used = share(arena);
    if !used {
        OWN.store(false, Ordering::Release);
    }
    used
}

/// Whether the arena of this process is read by the process itself.
pub fn is_own() -> bool {
    OWN.load(Ordering::Acquire)
}

/// Enters this process as a member of its arena, unless it is one. Takes no lock and
/// allocates nothing. Returns false if there is no room for it.
pub fn enter() -> bool {
    let Some(arena) = arena() else { return true };
    notice_fork();
    if POOL.member() != 0 {
        return true;
    }
    let now = Anchor::now();
    let began = (now.ticks, now.nanos);
    // SAFETY: no arguments, cannot fail.
    let pid = unsafe { libc::getpid() } as u32;
    let parent = PARENT.load(Ordering::Relaxed);
    let names = if parent == 0 { 0 } else { INTERNER.count() };
    let Some(number) = arena.enter(pid, parent, names, began) else { return false };
    if !POOL.become_member(number) {
        // Another thread was faster.
        arena.release(number);
    }
    true
}

/// Says of this process that it ends, or becomes another, or (`Life::Records`) does not.
pub fn live(life: Life) {
    if let (Some(arena), member @ 1..) = (arena(), POOL.member()) {
        arena.live(member, life, crate::clock::ticks());
    }
}

/// The child of a `vfork` may have said that this process ends, whose memory it has.
#[cold]
fn goes_on() {
    if let (Some(arena), member @ 1..) = (arena(), POOL.member())
        && arena.about(member).is_some_and(|about| about.life == Life::Ends)
    {
        arena.live(member, Life::Records, 0);
    }
}

/// Has the reader of the arena write everything that this process has recorded, and waits
/// until that is done, or for `timeout`. Returns whether it is done.
pub fn flush(timeout: Duration) -> bool {
    let (Some(arena), member @ 1..) = (arena(), POOL.member()) else { return false };
    if !POOL.has_records() {
        return true;
    }
    let (ticket, since) = (arena.ask_flush(member), Instant::now());
    while !arena.is_flushed(member, ticket) {
        if since.elapsed() > timeout || arena.is_closing() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Events of this process that were written, and lost, as of the last [`flush`].
pub fn written() -> (u64, u64) {
    arena().map_or((0, 0), |arena| arena.written(POOL.member()))
}

/// Publishes a name before it is used. Returns false if there is no room for it. The caller
/// holds the interner's lock.
pub fn publish(name: Named<'_>) -> bool {
    arena().is_none() || enter() && NAMES.publish(&POOL, name)
}

/// Publishes what a thread is called that has recorded nothing. The caller holds the
/// interner's lock.
pub fn publish_thread(tid: u32, name: &[u8]) -> bool {
    arena().is_some() && enter() && NAMES.publish_thread(&POOL, tid, name)
}

/// A lane for the calling thread.
fn take_lane(pool: &Pool) -> Option<&Lane> {
    if ptr::eq(pool, &POOL) && !enter() {
        return None;
    }
    let lane = pool.take_lane()?;
    let (tid, name) = this_thread();
    lane.open(pool.member(), tid, name);
    Some(lane)
}

/// To be called in a forked child, on its only thread, before it records anything. Takes no
/// lock and allocates nothing.
pub fn after_fork() {
    if arena().is_none() {
        POOL.reset_after_fork();
        INTERNER.after_fork();
    }
    if is_own() {
        renew_after_fork();
    }
    notice_fork();
    PRODUCER.with(Producer::forget);
    // At once, so that the reader of the arena knows that it is still in use.
    enter();
}

/// In a forked child that has not noticed yet: it is no member of the arena.
fn notice_fork() {
    if arena().is_some() && fork_guard::process() == 0 {
        renew_after_fork();
    }
}

/// This process is another than the one that it was forked from.
#[cold]
fn renew_after_fork() {
    match POOL.member() {
        0 => {}
        _ if is_own() => leave_own(),
        member => PARENT.store(member, Ordering::Relaxed),
    }
    POOL.reset_after_fork();
    INTERNER.after_fork();
    fork_guard::renew();
}

/// The arena is that of the process that this one was forked from.
fn leave_own() {
    ARENA.store(ptr::null_mut(), Ordering::Release);
    OWN.store(false, Ordering::Release);
    NAMES.forget();
    POOL.abandon();
}

/// Returns the calling thread's lane now, as its end would.
pub fn retire_thread() {
    PRODUCER.with(|p| p.retire(&POOL));
}
