//! Start, stop, and the threads in between.
//!
//! Records are decoded on a thread of rocprofiler-sdk's, which calls [`records`]. A thread of
//! ours has buffers handed over that are not full, several times a second while HIP is used,
//! and takes a recording down; nothing of this happens in a thread of the program.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kymograph_protos::ColdRecorder;

use super::calls;
use super::configure::{self, CONFIGURE, Setup};
use super::decode::Decoder;
use super::kinds::Selection;
use super::library;
use super::runtime;
use super::sys::{Entry, Id, RecordHeader, SUCCESS, describe};
use crate::annotate::guarded;
use crate::device::error::{Error, Result};
use crate::device::names;
use crate::device::reader::{self, Reader, Round, keep_pace};
use crate::device::remark;
use crate::device::sample;
use crate::device::worker::{self, Labels, Worker};
use crate::source::{Settings, Source};

/// The source.
pub static AMD: Amd = Amd(());

/// AMD GPUs, as a [`Source`].
#[derive(Debug)]
pub struct Amd(());

/// How long the end of the library may be delayed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a thread of the library waits for a pipeline that does not keep up, each time.
const BACKLOG_TIMEOUT: Duration = Duration::from_millis(200);
/// Records that are decoded between two looks at whether the pipeline keeps up.
const BATCH: usize = 512;

static WORKER: Worker = Worker::new(Labels {
    names: names::AMD,
    thread: "kymograph-amd",
    late: "rocprofiler-sdk did not hand over its last records",
});
/// What the recording that runs, if one does, was started with.
static WANTED: Mutex<Option<(&'static dyn ColdRecorder, Settings)>> = Mutex::new(None);
/// What reads records while a recording runs.
static DECODER: Mutex<Option<Decoder>> = Mutex::new(None);
/// Set when the library ends: nothing of HIP may be called any more.
static FINALIZING: AtomicBool = AtomicBool::new(false);
/// Whether HIP may have been used before the library was configured, which cannot be found out.
static IN_DOUBT: AtomicBool = AtomicBool::new(false);
/// Whether it was said in this recording why something is missing.
static SAID: AtomicBool = AtomicBool::new(false);
/// Records that the library dropped, as it counts them: since it was loaded.
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Calls of [`records`].
static BUFFERS: AtomicU64 = AtomicU64::new(0);

impl Source for Amd {
    fn name(&self) -> &'static str {
        names::AMD.shown
    }

    fn start(&self, recorder: &'static dyn ColdRecorder, settings: &Settings) {
        guarded((), || {
            if WORKER.is_running() || WORKER.is_dead() {
                return;
            }
            if Selection::parse(&settings.activity_types).is_empty() {
                return;
            }
            SAID.store(false, Ordering::Relaxed);
            sample::keep(settings.samples);
            *lock(&WANTED) = Some((recorder, settings.clone()));
            match configure::setup() {
                Some(_) => go_on(),
                None => {
                    if let Err(why) = configure_now() {
                        refused(&why.to_string());
                    }
                }
            }
        });
    }

    fn flush(&self, timeout: Duration) -> bool {
        WORKER.flush(timeout)
    }

    fn stop(&self, timeout: Duration) -> bool {
        calls::disable();
        let done = WORKER.stop(timeout);
        if WORKER.is_dead() {
            return true;
        }
        // Asked only by callers that wait: it takes the loader's lock.
        if !timeout.is_zero() && wanted().is_some() && !SAID.load(Ordering::Relaxed) {
            unseen().into_iter().for_each(refused);
        }
        if done {
            *lock(&WANTED) = None;
        }
        done
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recording that is wanted.
pub(crate) fn wanted() -> Option<(&'static dyn ColdRecorder, Settings)> {
    lock(&WANTED).clone()
}

/// Why nothing is recorded where the library is missing.
const NO_LIBRARY: &str = "this program uses ROCm, but there is no librocprofiler-sdk.so; install \
                          rocprofiler-sdk, and set LD_LIBRARY_PATH if it is not where ROCm is";

/// Says that a program uses HIP, and that the library to record it with is missing.
pub fn without_library() {
    refused(NO_LIBRARY);
}

/// Says that HIP is not recorded, if a recording runs.
pub(crate) fn refused(why: &str) {
    SAID.store(true, Ordering::Relaxed);
    if let Some((recorder, _)) = wanted() {
        remark::not_recorded(recorder, names::AMD, why);
    }
}

/// Why nothing was seen of HIP, if it was used.
fn unseen() -> Option<&'static str> {
    if !configure::is_configured() {
        let loaded = runtime::is_registered() == Some(true);
        return loaded
            .then_some("HIP was loaded after the recording started, too late to be recorded");
    }
    let asked = IN_DOUBT.load(Ordering::Relaxed) && !calls::ever();
    asked.then_some(
        "no call of HIP was seen; if the program made some, it had used HIP before the recording \
         started, which the librocprofiler-register.so of this ROCm does not tell; start \
         recording before the first call of HIP, or run the program under `kymo record`",
    )
}

/// Configures the library for a program that did not have us configured when it started:
/// where HIP was not used yet, or the library can do it later.
fn configure_now() -> Result<()> {
    const SYMBOL: &std::ffi::CStr = c"rocprofiler_configure";
    // SAFETY: a C string; null stands for all that the process shares.
    let exported = !unsafe { libc::dlsym(libc::RTLD_DEFAULT, SYMBOL.as_ptr()) }.is_null();
    let there = library::present();
    if let Some(why) = configure::failure() {
        return Err(why.into());
    }
    if configure::is_configured() {
        return Ok(());
    }
    if there.is_none() && !library::runtime_is_there() {
        return Ok(());
    }
    if there.is_none() && exported {
        // HIP will have it loaded and call the function that it sees: ours.
        return Ok(());
    }
    let found = there.or_else(library::load).ok_or(NO_LIBRARY)?;
    let entry = match Entry::find(found) {
        Ok(entry) => entry,
        Err(_) if exported => return Ok(()),
        Err(function) => return Err(Error::missing(library::shown_path(found), function)),
    };
    let mut state: c_int = 0;
    // SAFETY: stores a number: 0 not yet, 1 done, -1 at it.
    unsafe { (entry.is_initialized)(&mut state) };
    if state < 0 || (state == 0 && exported) {
        return Ok(());
    }
    let version = library::version(&entry).ok_or("rocprofiler_get_version failed")?;
    let registered = runtime::is_registered();
    let used = state == 1 || registered == Some(true);
    let late = runtime::can_start_late(found);
    if used && !late {
        return Err(format!(
            "HIP was used before the recording started, and rocprofiler-sdk {} cannot be \
             configured after that; start recording before the first call of HIP, run the \
             program under `kymo record`, or use ROCm 7.13 or later",
            library::shown(version)
        )
        .into());
    }
    IN_DOUBT.store(registered.is_none() && !late, Ordering::Relaxed);
    // SAFETY: a function of the right type that lives for ever.
    match unsafe { (entry.force_configure)(CONFIGURE) } {
        SUCCESS => Ok(()),
        error => Err(format!(
            "rocprofiler_force_configure: {}; another tool may have configured \
             rocprofiler-sdk {} first",
            describe(error, entry.status_string),
            library::shown(version)
        )
        .into()),
    }
}

/// Starts the recording that is wanted, with what was set up.
pub(crate) fn go_on() {
    let (Some(setup), Some((recorder, settings))) = (configure::setup(), wanted()) else { return };
    if !WORKER.begin(recorder) {
        return;
    }
    WORKER.watch_process(in_child, None);
    let selection = Selection::parse(&settings.activity_types);
    let path = format!("{} ({})", library::shown(setup.version), setup.path);
    remark::fact(recorder, "hip.rocprofiler_sdk", &path);
    let mut decoder =
        Decoder::new(recorder, setup.agents.clone(), selection, setup.numbers, settings.all_args);
    decoder.clock.look(&setup.sdk);
    decoder.sdk = Some(setup.sdk);
    *lock(&DECODER) = Some(decoder);
    let Selection { calls, collectives, hsa, .. } = selection;
    calls::enable([calls, collectives, hsa, hsa], settings.all_args);
    for name in selection.beyond(setup.selection) {
        let key = names::AMD.of_process(format_args!("kind_not_recorded.{name}"));
        let why = "it must be asked for (ACTIVITY_TYPES) before HIP is first used";
        remark::fact(recorder, &key, why);
    }
    // SAFETY: a context of ours.
    let result = unsafe { (setup.sdk.start_context)(setup.context) };
    if result != SUCCESS {
        calls::disable();
        *lock(&DECODER) = None;
        WORKER.cancel();
        let why = describe(result, setup.sdk.status_string);
        refused(&format!("rocprofiler_start_context: {why}"));
        return;
    }
    let session = Session { setup, recorder, before: Before::now(), used: false };
    if !WORKER.run(move |worker| reader::run(session, worker)) {
        calls::disable();
        // SAFETY: a context of ours.
        unsafe { (setup.sdk.stop_context)(setup.context) };
    }
}

/// Counters at the start of a recording.
#[derive(Clone, Copy)]
struct Before {
    dropped: u64,
    buffers: u64,
}

impl Before {
    fn now() -> Before {
        Before {
            dropped: DROPPED.load(Ordering::Relaxed),
            buffers: BUFFERS.load(Ordering::Relaxed),
        }
    }
}

/// A recording of this source.
struct Session {
    setup: &'static Setup,
    recorder: &'static dyn ColdRecorder,
    before: Before,
    /// Whether HIP was used.
    used: bool,
}

impl Reader for Session {
    const NAP: Duration = Duration::from_millis(250);
    const FLUSH_EVERY: Duration = Self::NAP;

    fn round(&mut self, _worker: &Worker, round: Round) {
        let active = calls::active();
        self.used |= active;
        if round.asked || active {
            flush(self.setup);
        }
    }

    fn end(self, _worker: &Worker) {
        let Session { setup, recorder, before, used } = self;
        let started = Instant::now();
        calls::disable();
        if (used || calls::active()) && !FINALIZING.load(Ordering::Acquire) {
            runtime::synchronise();
            worker::moves();
        }
        // First no more records, then those that there are: the other way round, what ends in
        // between would be lost.
        // SAFETY: a context of ours.
        unsafe { (setup.sdk.stop_context)(setup.context) };
        worker::moves();
        flush(setup);
        if let Some(mut decoder) = lock(&DECODER).take() {
            decoder.describe_devices();
            state(recorder, &decoder, before, started);
        }
    }
}

/// Has the library hand over what it has, and waits for it.
fn flush(setup: &Setup) {
    if let Some(decoder) = &mut *lock(&DECODER) {
        decoder.clock.look(&setup.sdk);
    }
    if let Some(buffer) = setup.buffer {
        // SAFETY: a buffer of ours; this is not the thread that empties it.
        unsafe { (setup.sdk.flush_buffer)(buffer) };
    }
    worker::moves();
}

/// The library hands over records.
///
/// # Safety
/// Called by the library: `headers` are `count` headers of records, for the call.
pub(crate) unsafe extern "C" fn records(
    _context: Id,
    _buffer: Id,
    headers: *mut *mut RecordHeader,
    count: usize,
    _data: *mut c_void,
    dropped: u64,
) {
    guarded((), || {
        let mut decoder = lock(&DECODER);
        let Some(decoder) = &mut *decoder else { return };
        BUFFERS.fetch_add(1, Ordering::Relaxed);
        decoder.describe_devices();
        let since = dropped.saturating_sub(DROPPED.fetch_max(dropped, Ordering::AcqRel));
        if since > 0 {
            decoder.recorder().lost(since);
            remark::note(decoder.recorder(), &format!("{since} HIP records dropped"));
        }
        if headers.is_null() {
            return;
        }
        // SAFETY: the caller's promise.
        let headers = unsafe { std::slice::from_raw_parts(headers, count) };
        let started = Instant::now();
        for batch in headers.chunks(BATCH) {
            for header in batch {
                // SAFETY: as above; null if there is none.
                if let Some(header) = unsafe { header.as_ref() } {
                    // SAFETY: as above.
                    unsafe { decoder.record(header) };
                }
            }
            // The library has a second buffer meanwhile, and no more: do not wait for long.
            let timeout = BACKLOG_TIMEOUT.saturating_sub(started.elapsed());
            keep_pace(decoder.recorder(), timeout, || false);
        }
    });
}

/// What came of it, in the trace.
fn state(recorder: &dyn ColdRecorder, decoder: &Decoder, before: Before, stopping: Instant) {
    let counts = decoder.counts;
    let now = Before::now();
    let rows = [
        ("kernels", counts.kernels),
        ("copies", counts.copies),
        ("sets", counts.sets),
        ("graphs", counts.graphs),
        ("pages", counts.pages),
        ("waits", counts.waits),
        ("kernels_unnamed", counts.unnamed),
        ("records_skipped", counts.skipped),
        ("lost.dropped_by_rocprofiler", now.dropped - before.dropped),
        ("lost.without_times", decoder.present.timeless),
        ("lost.in_the_future", decoder.present.future),
        ("lost.broken", counts.broken),
        ("buffers", now.buffers - before.buffers),
        ("clock_jumps", decoder.clock.jumps),
        ("stop_us", stopping.elapsed().as_micros() as u64),
    ];
    remark::counts(recorder, names::AMD, &rows);
    for ((kind, size), count) in &decoder.misfits {
        let key = names::AMD.of_process(format_args!("lost.of_unknown_layout.{kind}.{size}"));
        remark::number(recorder, &key, *count);
    }
}

/// The library ends, and all that HIP is with it: what it has is pushed, then nothing of it is
/// touched again.
pub(crate) fn finalized() {
    FINALIZING.store(true, Ordering::Release);
    AMD.stop(EXIT_TIMEOUT);
    WORKER.kill();
}

/// HIP and rocprofiler-sdk do not survive a fork: nothing of them is touched in the child.
extern "C" fn in_child() {
    calls::disable();
    WORKER.kill();
}
