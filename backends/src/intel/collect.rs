//! Start and stop.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymograph_protos::ColdRecorder;

use super::buffers::{self, BUFFERS};
use super::decode::Decoder;
use super::layout::Sizes;
use super::levelzero;
use super::library::{self, Found};
use super::selection::Selection;
use super::session::Session;
use super::share;
use super::sys::{
    CLASS_ALL, CLASS_GPU_OPERATION_CORE, Code, GROUP_ALL, LOCAL_PROFILING_NOT_SUPPORTED,
    NOT_IMPLEMENTED, Pti, SUCCESS, Version, kind,
};
use crate::annotate::guarded;
use crate::device::error::{Error, Result};
use crate::device::names;
use crate::device::reader;
use crate::device::realtime::Realtime;
use crate::device::remark::fact;
use crate::device::sample;
use crate::device::worker::{Labels, Worker};
use crate::source::{Settings, Source};

/// The source.
pub static INTEL: Intel = Intel(());

/// Intel GPUs, as a [`Source`].
#[derive(Debug)]
pub struct Intel(());

static WORKER: Worker = Worker::new(Labels {
    names: names::INTEL,
    thread: "kymograph-xpu",
    late: "PTI did not hand over its last records",
});
/// Whether the program has initialised Level Zero, or is about to use it through SYCL.
static INITIALISED: AtomicBool = AtomicBool::new(false);

/// How long the end of the process may be delayed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Says that this process uses Level Zero: it has just initialised it.
pub fn initialised() {
    INITIALISED.store(true, Ordering::Relaxed);
}

/// Whether nothing is recorded, nor about to be: PTI may call the program's `zeInit` while it
/// is being started.
pub fn is_idle() -> bool {
    WORKER.is_idle()
}

/// Loads PTI into a program that links SYCL's runtime: before its `main`, so that SYCL will
/// find what PTI's constructors put into the environment. Returns whether it is there.
pub fn before_main(settings: &Settings) -> bool {
    let wanted = library::uses_sycl() && !Selection::parse(&settings.activity_types).is_empty();
    // What is wrong with it is said when the recording starts.
    wanted && library::pti(settings.pti_path.as_deref()).is_ok()
}

impl Source for Intel {
    fn name(&self) -> &'static str {
        names::INTEL.shown
    }

    fn start(&self, recorder: &'static dyn ColdRecorder, settings: &Settings) {
        sample::keep(settings.samples);
        WORKER.start(recorder, || begin(recorder, settings), reader::run);
    }

    fn flush(&self, timeout: Duration) -> bool {
        WORKER.flush(timeout)
    }

    fn stop(&self, timeout: Duration) -> bool {
        WORKER.stop(timeout)
    }
}

/// Sets PTI up. `None` if there is nothing to record here at the moment.
fn begin(recorder: &'static dyn ColdRecorder, settings: &Settings) -> Result<Option<Session>> {
    let selection = Selection::parse(&settings.activity_types);
    if selection.is_empty() {
        return Ok(None);
    }
    // Nothing is initialised in a program that does not use it.
    let certain = INITIALISED.load(Ordering::Relaxed);
    if !certain && !library::is_present() {
        return Ok(None);
    }
    let Some(zero) = levelzero::loader(certain) else { return Ok(None) };
    let found = library::pti(settings.pti_path.as_deref())?;
    let devices = levelzero::devices(zero)?;
    let pti = &found.pti;
    if let Some(available) = pti.local_available {
        // SAFETY: asks Level Zero, which works, as was just seen.
        match unsafe { available() } {
            LOCAL_PROFILING_NOT_SUPPORTED => {
                let text = "this driver records only what was made after PTI was switched on";
                fact(recorder, &names::INTEL.of_process("limit"), text);
            }
            NOT_IMPLEMENTED => {
                return Err(format!(
                    "libpti.so beside {} cannot be loaded: it needs libxptifw.so (pip install \
                     intel-cmplr-lib-rt) and a libze_loader.so.1 of 1.9 or later",
                    found.path.as_deref().unwrap_or("libpti_view.so".as_ref()).display()
                )
                .into());
            }
            _ => {}
        }
    }
    WORKER.watch_process(in_child, Some(at_exit));
    BUFFERS.prepare(pti.next_record, 0);
    let sizes = Sizes::learn(pti);
    share::reading(true);
    register(pti)?;
    let selection = enable(recorder, pti, selection);
    if selection.is_empty() {
        return Err("PTI refused to record anything".into());
    }
    state_versions(recorder, found);
    for (index, device) in (0..).zip(&devices) {
        levelzero::state(recorder, index, device);
    }
    let mut decoder = Decoder::new(recorder, Realtime::new(), devices, settings.all_args);
    decoder.calls.name_by(pti);
    if [kind::KERNEL, kind::COPY, kind::PEER_COPY, kind::FILL].iter().all(|k| selection.has(*k)) {
        decoder.expect_all_work();
    }
    Ok(Some(Session::new(recorder, found, selection, sizes, decoder)))
}

/// Sets our callbacks, once: from then on the program's own are served by us.
fn register(pti: &Pti) -> Result<()> {
    if !share::registering() {
        return Ok(());
    }
    if share::is_used() {
        // What it gave PTI until now comes back to it.
        // SAFETY: this is not one of PTI's callbacks.
        unsafe { (pti.flush_all)() };
    }
    // SAFETY: the functions live for ever. The first buffer is asked for in here.
    match unsafe { (pti.set_callbacks)(buffers::requested, buffers::completed) } {
        SUCCESS => Ok(()),
        error => {
            share::not_registered();
            Err(Error::call("ptiViewSetCallbacks", describe(pti, error)))
        }
    }
}

/// Switches on what can be; returns that.
fn enable(recorder: &dyn ColdRecorder, pti: &Pti, mut selection: Selection) -> Selection {
    let key = |kind: u32| names::INTEL.of_process(format_args!("kind_not_recorded.{kind}"));
    if selection.has(kind::COMMUNICATION) && !pti_collects_itt() {
        // Its annotations come to us then, and are recorded as those of ITT.
        selection = selection.without(kind::COMMUNICATION);
    }
    for kind in selection.kinds() {
        // SAFETY: a number.
        let result = unsafe { (pti.enable)(kind) };
        let class = if selection.has_whole(kind) { CLASS_ALL } else { CLASS_GPU_OPERATION_CORE };
        let result = if result == SUCCESS { choose_calls(pti, kind, class) } else { result };
        if result == SUCCESS {
            share::enabled(kind);
        } else {
            selection = selection.without(kind);
            fact(recorder, &key(kind), &describe(pti, result));
        }
    }
    selection
}

/// Of the calls, those of a class: usually those that ask a device for work, as all would be very
/// many.
fn choose_calls(pti: &Pti, kind: u32, class: c_int) -> Code {
    let choose = match kind {
        kind::RUNTIME_API => pti.runtime_class,
        kind::DRIVER_API => pti.driver_class,
        _ => return SUCCESS,
    };
    let Some(choose) = choose else { return SUCCESS };
    // SAFETY: numbers.
    match unsafe { choose(1, class, GROUP_ALL) } {
        SUCCESS => SUCCESS,
        error => {
            // SAFETY: a number.
            unsafe { (pti.disable)(kind) };
            error
        }
    }
}

/// Whether ITT's annotations go to PTI, which is an ITT collector itself: oneCCL reports
/// its collectives that way. If they come to us, we record them.
fn pti_collects_itt() -> bool {
    // SAFETY: the value is looked at and not kept.
    unsafe {
        let value = libc::getenv(c"INTEL_LIBITTNOTIFY64".as_ptr());
        !value.is_null() && CStr::from_ptr(value).to_string_lossy().contains("libpti")
    }
}

fn state_versions(recorder: &dyn ColdRecorder, found: &Found) {
    let Version { major, minor, patch } = found.version;
    let path = found.path.as_ref().map_or_else(String::new, |p| p.display().to_string());
    let whose = if found.shared { "the program's" } else { "loaded for the recording" };
    fact(recorder, "xpu.pti", &format!("{major}.{minor}.{patch} ({path}, {whose})"));
}

/// Neither Level Zero nor PTI survives a fork.
extern "C" fn in_child() {
    WORKER.kill();
}

extern "C" fn at_exit() {
    guarded((), || {
        WORKER.stop(EXIT_TIMEOUT);
    });
}

/// A result of PTI's in words.
pub(crate) fn describe(pti: &Pti, result: Code) -> String {
    let text: *const c_char = match pti.result_string {
        // SAFETY: returns a static C string.
        Some(string) => unsafe { string(result) },
        None => std::ptr::null(),
    };
    if text.is_null() {
        return format!("error {result}");
    }
    // SAFETY: as above.
    format!("{} ({result})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
}
