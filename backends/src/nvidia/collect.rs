//! Start, stop, and the thread in between.
//!
//! CUPTI is set up on the thread that starts (inside `cuInit`, if the driver loaded us),
//! so that the first launch is seen. Everything after that happens on one thread of ours:
//! decoding, flushing, and taking CUPTI down. No call of CUPTI is made under a lock.
//!
//! After a recording CUPTI leaves, if nothing else uses it ([`super::detach`]).

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kymograph_protos::ColdRecorder;

use super::buffers;
use super::callbacks;
use super::clock::{self, Clock};
use super::detach;
use super::enable;
use super::kinds::Selection;
use super::layout::Sizes;
use super::library::{self, Found, check};
use super::other;
use super::relay;
use super::session::Session;
use super::state::STATE;
use super::subscription;
use super::sys::{ERROR_MULTIPLE_SUBSCRIBERS, SUCCESS};
use crate::annotate::guarded;
use crate::device::error::Result;
use crate::device::names;
use crate::device::reader;
use crate::device::remark;
use crate::device::sample;
use crate::device::worker::{Labels, Worker};
use crate::source::{Settings, Source};

/// The source.
pub static NVIDIA: Nvidia = Nvidia(());

/// NVIDIA GPUs, as a [`Source`].
#[derive(Debug)]
pub struct Nvidia(());

static WORKER: Worker = Worker::new(Labels {
    names: names::NVIDIA,
    thread: "kymograph-gpu",
    late: "CUPTI did not hand over its last records in time; let the program wait for its \
           devices before it ends",
});
/// How long the end of the process may be delayed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Says that the driver initialises in this process and called us
/// (`CUDA_INJECTION64_PATH`): it will be there, though it cannot be asked yet. `start` is
/// what is started for it.
pub fn injected(start: impl FnOnce()) {
    STATE.setup.injected.store(true, Ordering::Relaxed);
    STATE.setup.initialises.store(true, Ordering::Relaxed);
    start();
    STATE.setup.initialises.store(false, Ordering::Relaxed);
}

impl Source for Nvidia {
    fn name(&self) -> &'static str {
        names::NVIDIA.shown
    }

    fn start(&self, recorder: &'static dyn ColdRecorder, settings: &Settings) {
        sample::keep(settings.samples);
        WORKER.start(recorder, || begin(recorder, settings), reader::run);
    }

    fn flush(&self, timeout: Duration) -> bool {
        WORKER.flush(timeout)
    }

    fn stop(&self, timeout: Duration) -> bool {
        if WORKER.is_running() {
            callbacks::disable();
        }
        WORKER.stop(timeout)
    }
}

/// Sets CUPTI up. `None` if there is nothing to record here at the moment.
fn begin(recorder: &'static dyn ColdRecorder, settings: &Settings) -> Result<Option<Session>> {
    let selection = Selection::parse(&settings.activity_types);
    if selection.is_empty() {
        return Ok(None);
    }
    let Some(cuda) = library::driver(false) else { return Ok(None) };
    if !STATE.setup.injected.load(Ordering::Relaxed) {
        let mut count = 0;
        // SAFETY: stores a number; says so if the driver is not initialised.
        if unsafe { (cuda.device_count)(&mut count) } != 0 {
            return Ok(None);
        }
    }
    let found = library::cupti(cuda, settings.cupti_path.as_deref())?;
    // The end comes to us while the program's CUDA libraries are still whole.
    WORKER.watch_process(in_child, Some(at_exit));
    detach::stay();
    prepare(found);
    let cupti = &found.cupti;
    let mut subscriber: *mut c_void = ptr::null_mut();
    // Before anything that a tool that is there already could notice.
    let result = subscription::take(&mut subscriber);
    if result == ERROR_MULTIPLE_SUBSCRIBERS {
        let tool = other_tool().unwrap_or("another tool");
        let why =
            format!("{tool} uses CUPTI in this process, which serves one tool; record without it");
        return Err(why.into());
    }
    check(cupti, "cuptiSubscribe", result)?;
    callbacks::learn(cupti, recorder);
    other::registering();
    // SAFETY: the functions live for ever.
    let result = unsafe { (cupti.register_callbacks)(buffers::requested, buffers::completed) };
    let registered = check(cupti, "cuptiActivityRegisterCallbacks", result);
    if let Err(why) = registered {
        relay::give_up(subscriber);
        return Err(why);
    }
    let sizes = Sizes::learn(cupti, found.version);
    let clock = other::their_clock().map_or_else(Clock::own, Clock::foreign);
    enable::all(
        cupti,
        recorder,
        selection,
        STATE.setup.initialises.load(Ordering::Relaxed),
        callbacks::noise,
    );
    let from_birth = STATE.setup.injected.load(Ordering::Relaxed)
        && !STATE.setup.begun.swap(true, Ordering::Relaxed);
    let refused = callbacks::enable(cupti, subscriber, selection, from_birth);
    if refused > 0 {
        let key = names::NVIDIA.of_process("calls_not_watched");
        remark::fact(recorder, &key, &refused.to_string());
    }
    Ok(Some(Session::new(recorder, cuda, found, subscriber, selection, sizes, clock, settings)))
}

/// What is set once in a process, before any kind is enabled.
fn prepare(found: &Found) {
    if !STATE.setup.prepared.swap(true, Ordering::AcqRel) {
        let cupti = &found.cupti;
        // Not "zeroed buffers", which would save a memset: it is said for the process, and
        // buffers of another user of CUPTI would not be zeroed.
        buffers::prepare(cupti.next_record, found.version);
        // Never again, and not at all if another user has: records of a session whose clock
        // was set anew have wrong times.
        if clock::can_be_chosen(found.version)
            && other::their_clock().is_none()
            && let Some(register) = cupti.register_timestamp
        {
            // SAFETY: the function lives for ever.
            let result = unsafe { register(clock::boottime) };
            if result == SUCCESS {
                clock::choose();
            }
        }
    }
}

/// CUDA and CUPTI do not survive a fork: nothing of them is touched in the child.
extern "C" fn in_child() {
    callbacks::disable();
    subscription::after_fork();
    detach::after_fork();
    WORKER.kill();
}

extern "C" fn at_exit() {
    guarded((), || {
        NVIDIA.stop(EXIT_TIMEOUT);
    });
}

/// Which tool may have subscribed, by the libraries in the process.
pub(crate) fn other_tool() -> Option<&'static str> {
    const TOOLS: [(&str, &str); 5] = [
        ("libToolsInjection", "Nsight Systems"),
        ("libcuda-injection", "Nsight Compute"),
        ("libInterceptorInjectionTarget", "an Nsight tool"),
        ("libsanitizer", "Compute Sanitizer"),
        ("libparcagpucupti", "parca-agent"),
    ];
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    TOOLS.iter().find(|(library, _)| maps.contains(library)).map(|(_, tool)| *tool)
}
