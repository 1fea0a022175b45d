//! A signal handler or an allocator that records while its thread is in the middle of
//! recording is not served, but counted; in between it is served. Nothing is ever torn.

use kymograph::{Config, Recording, instant, scope};
use oracle::Trace;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// There is one recording at a time in a process.
static ALONE: Mutex<()> = Mutex::new(());

/// Events that were attempted where they may come from inside.
static INSIDE: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let _handler = scope!("handler", inside = true);
    instant!("tick");
    INSIDE.fetch_add(2, Ordering::Relaxed);
}

/// Scopes in scopes, some with arguments, until told to stop. Returns how many.
fn work(stop: &AtomicBool) -> u64 {
    let mut scopes = 0;
    while !stop.load(Ordering::Relaxed) {
        let _outer = scope!("outer", n = scopes);
        for n in 0..20 {
            let _inner = scope!("inner");
            let _leaf = scope!("leaf", n = n, more = "text", still = 1.5);
            scopes += 2;
        }
        scopes += 1;
    }
    scopes
}

#[test]
fn of_signal_handlers() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    INSIDE.store(0, Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::to_file(folder.path().join("t.pftrace"));
    config.set("BUFFER", "256M").unwrap();
    // The workers wait for the writer, however slow that is: what is lost was pushed inside.
    config.set("POLICY", "stall:60s").unwrap();
    // SAFETY: the handler is safe to run anywhere; SA_RESTART spares everybody else.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    let recording = Recording::start(config).unwrap();
    let stop: &AtomicBool = Box::leak(Box::default());
    let workers: Vec<_> = (0..2).map(|_| std::thread::spawn(|| work(stop))).collect();
    for n in 0..5_000 {
        // SAFETY: the worker runs until `stop` is set.
        unsafe { libc::pthread_kill(workers[n % 2].as_pthread_t(), libc::SIGUSR1) };
        (0..n % 97 * 10).for_each(|_| std::hint::spin_loop());
    }
    stop.store(true, Ordering::Relaxed);
    let scopes: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    let inside = INSIDE.load(Ordering::Relaxed);
    let summary = recording.stop();
    assert_eq!(summary.events + summary.lost, scopes + inside, "{summary:?}");
    assert!(summary.lost < inside, "most are served: {summary:?}");
    assert_eq!((summary.unmatched_ends, summary.misnested, summary.unknown), (0, 0, 0));

    let trace = Trace::open(folder.path().join("t.pftrace"));
    let count = |name: &str| {
        trace.one_i64(&format!("SELECT count(*) FROM slice WHERE name = '{name}'")) as u64
    };
    let [outer, inner, leaf] = ["outer", "inner", "leaf"].map(count);
    // What was lost in a handler was lost from these or from its own two.
    assert_eq!(count("handler") + count("tick") + summary.lost, inside);
    assert_eq!((outer + inner + leaf, inner), (scopes, leaf));
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    assert_eq!(
        trace.one_i64(
            "SELECT count(*) FROM slice s LEFT JOIN slice p ON p.id = s.parent_id
             WHERE s.name IN ('inner', 'leaf') AND p.name IS NOT iif(s.name = 'leaf', 'inner', 'outer')"
        ),
        0
    );
    match summary.lost {
        0 => trace.assert_clean(),
        _ => trace.clean_except(&[
            "traced_buf_trace_writer_packet_loss",
            "traced_buf_sequence_packet_loss",
        ]),
    }
}

/// An allocator that records every allocation of the threads that ask for it.
struct Hooked;

thread_local! {
    static HOOKED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: passes everything on.
unsafe impl GlobalAlloc for Hooked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if HOOKED.with(Cell::get) {
            instant!("alloc", bytes = layout.size());
            INSIDE.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Hooked = Hooked;

#[test]
fn of_an_allocator() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    INSIDE.store(0, Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(Config::to_file(folder.path().join("t.pftrace"))).unwrap();
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            std::thread::spawn(move || {
                HOOKED.with(|hooked| hooked.set(true));
                for n in 0..3000 {
                    // New names make the interner allocate.
                    let _scope = kymograph::Scope::named(&kymograph::APP, &format!("{worker} {n}"));
                    drop(vec![0u8; n]);
                }
                HOOKED.with(|hooked| hooked.set(false));
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let inside = INSIDE.load(Ordering::Relaxed);
    let summary = recording.stop();
    assert_eq!(summary.events + summary.lost, 6000 + inside, "{summary:?}");
    assert_eq!(summary.lost, 0, "the pipeline allocates outside of its pushes: {summary:?}");
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name = 'alloc'") as u64, inside);
    assert_eq!(trace.one_i64("SELECT count(DISTINCT name) FROM slice"), 6001);
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
}
