//! Start and stop.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kymograph_protos::device::Vendor;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::clock;
use super::library;
use super::session::{Running, Session, check, prefix};
use super::sys::{SUCCESS, Synapse, TRACE_ALL, TRACE_DEVICE, TRACE_HOST};
use crate::annotate::guarded;
use crate::device::error::{Error, Result};
use crate::device::names;
use crate::device::reader;
use crate::device::remark::{fact, note};
use crate::device::sample;
use crate::device::selection::wants;
use crate::device::worker::{Labels, Worker};
use crate::source::{Settings, Source};

/// The source.
pub static GAUDI: Gaudi = Gaudi(());

/// Intel Gaudi, as a [`Source`].
#[derive(Debug)]
pub struct Gaudi(());

static WORKER: Worker = Worker::new(Labels {
    names: names::GAUDI,
    thread: "kymograph-hpu",
    late: "Synapse did not hand over its trace",
});
/// Devices that the program has, a bit each.
static DEVICES: AtomicU64 = AtomicU64::new(0);
/// Whether `HABANA_PROFILE` was not set when Synapse read it.
static TOO_LATE: AtomicBool = AtomicBool::new(false);
/// Devices that are profiled.
static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());
/// What is recorded of them, as a `synTraceType`.
static WHAT: AtomicI32 = AtomicI32::new(TRACE_ALL);

/// How long the end of the process, or of a device, may be delayed: the whole trace is
/// fetched then.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Switches Synapse's profiler on.
const PROFILE: &CStr = c"HABANA_PROFILE";
/// Switches it off in spite of that.
const DISABLE: &CStr = c"HABANA_SHIM_DISABLE";

/// Says that Synapse is about to be initialised: it reads its environment then.
pub fn opening() {
    if DEVICES.load(Ordering::Acquire) == 0 {
        TOO_LATE.store(!is_on(), Ordering::Release);
    }
}

/// Says that the program has this device now. One that joins a recording is profiled at
/// once.
pub fn acquired(device: u32) {
    let bit = 1 << (device % 64);
    let known = DEVICES.fetch_or(bit, Ordering::AcqRel) & bit != 0;
    let Some(recorder) = WORKER.recorder().filter(|_| !known && WORKER.is_running()) else {
        return;
    };
    if let Some(Ok(synapse)) = library::synapse(false)
        && let Err(why) = profile(recorder, synapse, device, WHAT.load(Ordering::Acquire))
    {
        refuse(recorder, &why.to_string());
    }
}

/// The devices that are profiled, to be asked for their traces.
pub(crate) fn take_running() -> Vec<Running> {
    std::mem::take(&mut *RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Says that the program is about to give a device back, or all of them: takes their traces
/// before.
pub fn released(device: Option<u32>) {
    WORKER.stop(END_TIMEOUT);
    let gone = device.map_or(u64::MAX, |device| 1 << (device % 64));
    DEVICES.fetch_and(!gone, Ordering::AcqRel);
}

/// Whether nothing is recorded, nor about to be.
pub fn is_idle() -> bool {
    WORKER.is_idle()
}

/// Whether Synapse's profiler is switched on in this process's environment.
fn is_on() -> bool {
    let value = |name: &CStr| {
        // SAFETY: the value is copied at once.
        unsafe {
            let value = libc::getenv(name.as_ptr());
            (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes().to_vec())
        }
    };
    let off = value(DISABLE).is_some_and(|value| value == b"1");
    value(PROFILE).is_some_and(|value| !value.is_empty() && value != b"0") && !off
}

impl Source for Gaudi {
    fn name(&self) -> &'static str {
        names::GAUDI.shown
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

/// Starts the profiler. `None` if there is nothing to record here at the moment.
fn begin(recorder: &'static dyn ColdRecorder, settings: &Settings) -> Result<Option<Session>> {
    let Some(what) = selection(&settings.activity_types) else { return Ok(None) };
    let devices = DEVICES.load(Ordering::Acquire);
    if devices == 0 {
        return Ok(None);
    }
    let Some(synapse) = library::synapse(false) else { return Ok(None) };
    let synapse = synapse?;
    if !is_on() || TOO_LATE.load(Ordering::Acquire) {
        return Err("HABANA_PROFILE was not set when the device was opened; set \
                    HABANA_PROFILE=profile_api_light before the program starts, as kymo record \
                    does"
            .into());
    }
    WORKER.watch_process(in_child, Some(at_exit));
    WHAT.store(what, Ordering::Release);
    let all = (0..64).filter(|device| devices >> device & 1 != 0);
    let (started, refused): (Vec<_>, Vec<_>) =
        all.map(|device| profile(recorder, synapse, device, what)).partition(Result::is_ok);
    let refused: Vec<_> = refused.into_iter().filter_map(Result::err).collect();
    if started.is_empty() {
        let all: Vec<_> = refused.iter().map(Error::to_string).collect();
        return Err(all.join("; ").into());
    }
    refused.iter().for_each(|why| refuse(recorder, &why.to_string()));
    Ok(Some(Session::new(recorder, synapse, settings.all_args)))
}

/// What is wanted, as a `synTraceType`, by Kineto's names of activities
/// (include/ActivityType.h).
fn selection(list: &str) -> Option<c_int> {
    let names =
        ["kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "collective_comm", "hpu_op"];
    let device = wants(list, &names, true);
    let host = wants(list, &["privateuse1_runtime"], true);
    match (host, device) {
        (true, true) => Some(TRACE_ALL),
        (true, false) => Some(TRACE_HOST),
        (false, true) => Some(TRACE_DEVICE),
        (false, false) => None,
    }
}

/// Starts the profiler of one device.
fn profile(recorder: &dyn ColdRecorder, synapse: &Synapse, device: u32, what: c_int) -> Result<()> {
    let start = || {
        // It may do without, or have got some before.
        let memory = provide_memory(synapse, device);
        let start = clock::compare(synapse);
        let start = start.ok_or(Error::from("synProfilerGetCurrentTimeNS does not work"));
        let started = start.and_then(|start| {
            // SAFETY: numbers.
            check("synProfilerStart", unsafe { (synapse.start)(what, device) })?;
            Ok(Running { device, what, start })
        });
        match (memory, started) {
            (Ok(()), started) => started,
            (Err(why), Ok(running)) => {
                let text = format!("device {device}: {why}; the profiler started without");
                fact(recorder, &format!("{}.limit", prefix()), &text);
                Ok(running)
            }
            (Err(memory), Err(why)) => Err(format!("{memory} ({why})").into()),
        }
    };
    let running = start().map_err(|why: Error| why.on_device(device))?;
    state(recorder, synapse, device);
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(running);
    Ok(())
}

/// Says that a device is not recorded, while others are.
fn refuse(recorder: &dyn ColdRecorder, why: &str) {
    note(recorder, &format!("Gaudi is not recorded: {why}"));
    fact(recorder, &format!("{}.error", prefix()), why);
}

/// The profiler's records lie in the device's memory, which has to be given to it: once, as
/// it keeps it.
fn provide_memory(synapse: &Synapse, device: u32) -> Result<()> {
    static PROVIDED: AtomicU64 = AtomicU64::new(0);
    let (Some(required), Some(give), Some(malloc)) =
        (synapse.required_memory, synapse.user_buffer, synapse.malloc)
    else {
        return Ok(());
    };
    if PROVIDED.load(Ordering::Acquire) >> device & 1 != 0 {
        return Ok(());
    }
    let (mut bytes, mut buffer) = (0, 0);
    // SAFETY: stores a number.
    check("synProfilerQueryRequiredMemory", unsafe { required(device, &mut bytes) })?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: numbers, of which the last is stored: an address on the device.
    let got = check("synDeviceMalloc", unsafe { malloc(device, bytes.into(), 0, 0, &mut buffer) });
    got.map_err(|why| -> Error {
        format!(
            "{why}: the profiler needs {} MiB of the device's memory, which the program has taken; \
             record from its start on, or have it leave so much free",
            bytes.div_ceil(1 << 20)
        )
        .into()
    })?;
    let buffer = std::ptr::without_provenance_mut(buffer as usize);
    // SAFETY: an address on the device, which it may use from now on.
    check("synProfilerSetUserBuffer", unsafe { give(device, buffer) })?;
    PROVIDED.fetch_or(1 << device, Ordering::AcqRel);
    Ok(())
}

/// Puts a device into the inventory.
fn state(recorder: &dyn ColdRecorder, synapse: &Synapse, device: u32) {
    let key = |name: &str| recorder.intern_or_wait(StrId::NONE, name.as_bytes());
    let mut name = [0_u8; 256];
    if let Some(get) = synapse.name {
        // SAFETY: writes a C string of at most this length.
        unsafe { get(name.as_mut_ptr().cast(), name.len() as c_int - 1, device) };
    }
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
    let name = if name.is_empty() { "Intel Gaudi".into() } else { name };
    let vendor = u64::from(key("Intel (Habana)").0);
    let mut facts = vec![Extra::new(key("vendor"), ArgType::Str, vendor)];
    let (mut free, mut total) = (0, 0);
    // SAFETY: stores two numbers.
    if synapse.memory.is_some_and(|get| unsafe { get(device, &mut free, &mut total) } == SUCCESS) {
        facts.push(Extra::new(key("memory_bytes"), ArgType::U64, total));
    }
    let head = Record {
        other: Vendor::Gaudi.gpu(device).into(),
        site: key(&name),
        kind: Kind::Gpu as u8,
        ..Record::default()
    };
    recorder.push(head, &facts);
}

/// Devices do not survive a fork.
extern "C" fn in_child() {
    WORKER.kill();
}

extern "C" fn at_exit() {
    guarded((), || {
        WORKER.stop(END_TIMEOUT);
    });
}
