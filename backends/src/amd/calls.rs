//! Calls of HIP and RCCL, as rocprofiler-sdk reports them while they happen.
//!
//! A call becomes a slice on the thread that makes it, stamped with the recording clock: so
//! it nests in whatever else that thread records. Calls that are not worth a slice are never
//! asked for, so the library does not even wrap them.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use kymograph_protos::device::Vendor;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::arguments::Places;
use super::keys::Keys;
use super::kinds;
use super::launches::{self, Asked};
use super::sys::{CallbackRecord, PHASE_ENTER, PHASE_EXIT, Sdk};
use super::{stream_ids, stream_names, streams};
use crate::annotate::guarded;
use crate::device::args::Args;
use crate::device::names;
use crate::device::sample;

/// A function.
#[derive(Debug)]
struct Call {
    /// None: never recorded.
    site: StrId,
    launches: bool,
    /// Whether it runs on a stream that it says, if it has an argument for it. What has none
    /// runs on the null stream.
    on_stream: bool,
    /// Whether no stream means the thread's own one.
    own_stream: bool,
    /// Bytes in what the function calls a count.
    unit: u64,
    places: OnceLock<Places>,
}

/// The functions of a library, by operation.
struct Domain {
    number: usize,
    category: StrId,
    calls: Box<[Call]>,
}

struct Calls {
    recorder: &'static dyn ColdRecorder,
    sdk: Sdk,
    version: u32,
    keys: Keys,
    /// Ids of [`COPY_KINDS`].
    copy_kinds: [StrId; COPY_KINDS.len()],
    domains: [Domain; DOMAINS],
}

/// What a domain is called where the library passes it back.
pub(crate) const HIP: usize = 0;
pub(crate) const RCCL: usize = 1;
pub(crate) const HSA: usize = 2;
pub(crate) const HSA_AMD: usize = 3;
pub(crate) const DOMAINS: usize = 4;

/// Stands in the invocation's own word while its slice is open ("KYMO").
const MARK: u64 = 0x4b59_4d4f;
/// `hipMemcpyKind` (driver_types.h), and at the end what has no name.
const COPY_KINDS: [&str; 6] = ["HtoH", "HtoD", "DtoH", "DtoD", "Default", "<unknown>"];
/// Operations of a kind at most.
const MAX_CALLS: usize = 1 << 14;

static CALLS: OnceLock<Calls> = OnceLock::new();
/// Whether calls begin slices at the moment. Those that did end them in any case.
static ON: AtomicBool = AtomicBool::new(false);
/// Whether those of a domain are wanted as slices, or only for what they say about device
/// work.
static SLICES: [AtomicBool; DOMAINS] = [const { AtomicBool::new(false) }; DOMAINS];
/// Whether arguments are recorded that the device activity says as well.
static ALL_ARGS: AtomicBool = AtomicBool::new(false);
/// Whether anything was called since this was last read.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether anything was ever called.
static EVER: AtomicBool = AtomicBool::new(false);

/// Learns the functions of all libraries, once. Operations are numbers and names, by domain.
pub(crate) fn learn(
    sdk: &Sdk,
    version: u32,
    recorder: &'static dyn ColdRecorder,
    operations: [&[(c_int, String)]; DOMAINS],
) {
    let [hip, rccl, hsa, hsa_amd] = operations;
    let hsa_matters = kinds::hsa_call_matters;
    CALLS.get_or_init(|| Calls {
        recorder,
        sdk: *sdk,
        version,
        keys: Keys::new(recorder),
        copy_kinds: COPY_KINDS.map(|kind| recorder.intern_or_wait(StrId::NONE, kind.as_bytes())),
        domains: [
            domain(HIP, recorder, b"cuda_runtime", hip, kinds::call_matters),
            domain(RCCL, recorder, b"collective_comm", rccl, |name| name.starts_with("nccl")),
            domain(HSA, recorder, b"hsa_api", hsa, hsa_matters),
            domain(HSA_AMD, recorder, b"hsa_api", hsa_amd, hsa_matters),
        ],
    });
    launches::prepare();
}

fn domain(
    number: usize,
    recorder: &dyn ColdRecorder,
    category: &[u8],
    operations: &[(c_int, String)],
    matters: fn(&str) -> bool,
) -> Domain {
    let category = recorder.intern_or_wait(StrId::NONE, category);
    let mut calls: Vec<Call> = Vec::new();
    for (operation, name) in operations {
        let at = *operation as usize;
        if at >= MAX_CALLS {
            continue;
        }
        while calls.len() <= at {
            let (site, places) = (StrId::NONE, OnceLock::new());
            let (launches, on_stream, own_stream) = (false, false, false);
            calls.push(Call { site, launches, on_stream, own_stream, unit: 1, places });
        }
        if matters(name) {
            calls[at].site = recorder.intern_or_wait(category, name.as_bytes());
            calls[at].launches = kinds::may_launch(name);
            calls[at].on_stream = name.contains("Launch");
            calls[at].own_stream = name.ends_with("_spt");
            calls[at].unit = unit(name);
        }
    }
    Domain { number, category, calls: calls.into() }
}

/// `hipMemsetD16` and its likes count in what they set.
fn unit(name: &str) -> u64 {
    match name {
        _ if name.starts_with("hipMemsetD16") => 2,
        _ if name.starts_with("hipMemsetD32") => 4,
        _ => 1,
    }
}

/// The operations that are asked for.
pub(crate) fn wanted(domain: usize, slices: bool) -> Vec<c_int> {
    let Some(calls) = CALLS.get() else { return Vec::new() };
    let calls = calls.domains[domain].calls.iter().enumerate();
    let wanted = |call: &Call| !call.site.is_none() && (slices || call.launches);
    calls.filter(|(_, call)| wanted(call)).map(|(at, _)| at as c_int).collect()
}

/// Slices begin, of the domains of which they are wanted.
pub(crate) fn enable(slices: [bool; DOMAINS], all_args: bool) {
    for (on, wanted) in SLICES.iter().zip(slices) {
        on.store(wanted, Ordering::Relaxed);
    }
    ALL_ARGS.store(all_args, Ordering::Relaxed);
    ON.store(true, Ordering::Release);
}

/// No more slices begin.
pub(crate) fn disable() {
    ON.store(false, Ordering::Release);
}

/// Whether anything was called since this was last asked.
pub(crate) fn active() -> bool {
    ACTIVE.swap(false, Ordering::Relaxed)
}

/// Whether anything was ever called.
pub(crate) fn ever() -> bool {
    EVER.load(Ordering::Relaxed)
}

/// What the library calls before and after a function.
pub(crate) unsafe extern "C" fn callback(
    record: CallbackRecord,
    user: *mut u64,
    domain: *mut c_void,
) {
    guarded((), || {
        let Some(calls) = CALLS.get() else { return };
        // SAFETY: passed on from the library: the word belongs to the invocation, and
        // outlives it.
        unsafe {
            let Some(word) = user.as_mut() else { return };
            calls.at(&record, word, domain as usize % calls.domains.len());
        }
    });
}

impl Calls {
    /// # Safety
    /// `record` is what the library passed.
    #[inline]
    unsafe fn at(&self, record: &CallbackRecord, word: &mut u64, domain: usize) {
        let domain = &self.domains[domain];
        let parts = record.parts(self.version);
        if parts.phase == PHASE_EXIT {
            if *word == MARK {
                *word = 0;
                let kind = Kind::End as u8;
                let end = Record { time: self.recorder.now(), kind, ..Record::default() };
                self.recorder.push(end, &[]);
            }
            return;
        }
        *word = 0;
        let Some(call) = domain.calls.get(parts.operation as usize) else { return };
        if parts.phase != PHASE_ENTER || call.site.is_none() || !ON.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the caller's promise: a call is beginning.
        unsafe { self.enter(call, domain, record, parts.payload, word) };
    }

    /// # Safety
    /// As for [`Calls::at`]; `payload` is the record's.
    unsafe fn enter(
        &self,
        call: &Call,
        domain: &Domain,
        record: &CallbackRecord,
        payload: *const u8,
        word: &mut u64,
    ) {
        if !ACTIVE.load(Ordering::Relaxed) {
            ACTIVE.store(true, Ordering::Relaxed);
            EVER.store(true, Ordering::Relaxed);
        }
        let wanted = SLICES[domain.number].load(Ordering::Relaxed);
        let sliced = wanted && self.recorder.enabled(domain.category);
        let mut args = Args::new();
        if !payload.is_null() {
            // SAFETY: the caller's promise. The same function has the same arguments.
            unsafe {
                let places = call.places.get_or_init(|| {
                    let (places, seen) = Places::learn(&self.sdk, *record, payload);
                    self.sample(domain, record, seen);
                    places
                });
                if call.launches {
                    let asked = asked(call, places, payload, record.thread);
                    launches::remember(record.correlation, asked);
                }
                if sliced {
                    self.arguments(call, places, payload, record.thread, &mut args);
                    if ALL_ARGS.load(Ordering::Relaxed) {
                        args.unsigned(self.keys.cid, record.parts(self.version).operation);
                        args.unsigned(self.keys.correlation, record.correlation & 0xffff_ffff);
                    }
                }
            }
        }
        if !sliced {
            return;
        }
        let (tag, arg) = match call.launches {
            true => (ArgType::Launch as u8, Vendor::Amd.call(record.correlation)),
            false => (ArgType::None as u8, 0),
        };
        let begin = Record {
            time: self.recorder.now(),
            arg,
            site: call.site,
            kind: Kind::Begin as u8,
            tag,
            ..Record::default()
        };
        if self.recorder.push(begin, args.extras()) {
            *word = MARK;
        }
    }

    /// What the library says of a function's arguments, where samples are kept.
    fn sample(&self, domain: &Domain, record: &CallbackRecord, seen: Option<String>) {
        let Some(seen) = seen else { return };
        let operation = record.parts(self.version).operation;
        let what = format!("arguments.{}.{operation}", domain.number);
        sample::text(self.recorder, names::AMD.key, what, &seen);
    }

    /// # Safety
    /// `payload` is one of a call of the function of which `places` were learned.
    unsafe fn arguments(
        &self,
        call: &Call,
        places: &Places,
        payload: *const u8,
        thread: u64,
        args: &mut Args,
    ) {
        let keys = &self.keys;
        let pointer = |key, value| Extra::new(key, ArgType::Pointer, value);
        // SAFETY: the caller's promise.
        unsafe {
            if places.stream.is_there() {
                match places.stream.read(payload) {
                    0 => {}
                    stream => args.push(pointer(keys.stream, stream)),
                }
            }
            let asked = asked(call, places, payload, thread);
            args.unless_zero(keys.bytes, asked.bytes);
            if places.kind.is_there() {
                let kind = places.kind.read(payload) as usize;
                let kind = self.copy_kinds[kind.min(COPY_KINDS.len() - 1)];
                args.push(Extra::new(keys.kind, ArgType::Str, kind.0.into()));
            }
            for (key, place) in [(keys.peer, places.peer), (keys.root, places.root)] {
                if place.is_there() {
                    args.unsigned(key, place.read(payload));
                }
            }
            if places.count.is_there() && !call.launches {
                args.unsigned(keys.count, places.count.read(payload));
            }
            if !ALL_ARGS.load(Ordering::Relaxed) {
                return;
            }
            if places.grid.is_there() {
                let block = places.block.read(payload);
                let mut grid = places.grid.read(payload);
                if places.work_items {
                    grid = blocks(grid, block);
                }
                for (key, sizes) in [(keys.grid, grid), (keys.block, block)] {
                    args.push(Extra::new(key, ArgType::List, 3));
                    sizes.into_iter().for_each(|size| args.unsigned(StrId::NONE, size));
                }
                args.unsigned(keys.shared, places.shared.read(payload));
            }
            let pointers = [
                (keys.source, places.source),
                (keys.target, places.target),
                (keys.pointer, places.pointer),
            ];
            for (key, place) in pointers {
                if place.is_there() {
                    args.push(pointer(key, place.read(payload)));
                }
            }
        }
    }
}

/// # Safety
/// As for [`Calls::arguments`].
unsafe fn asked(call: &Call, places: &Places, payload: *const u8, thread: u64) -> Asked {
    // SAFETY: the caller's promise.
    let (handle, bytes, count) = unsafe {
        (places.stream.read(payload), places.bytes.read(payload), places.count.read(payload))
    };
    let counted = if call.launches { count.saturating_mul(call.unit) } else { 0 };
    let handle = places.stream.is_there().then_some(handle);
    let numbered = stream_ids::stream();
    let unsaid = call.on_stream && handle.is_none() && numbered.is_none();
    let stream = match unsaid {
        true => streams::UNKNOWN,
        false => streams::key(numbered, handle, call.own_stream, thread),
    };
    if let Some(handle) = handle {
        stream_names::seen(handle, stream);
    }
    Asked { stream, bytes: if bytes == 0 { counted } else { bytes } }
}

/// A grid of work-items in workgroups, the last of which may be smaller.
pub(crate) fn blocks(grid: [u32; 3], block: [u32; 3]) -> [u32; 3] {
    [0, 1, 2].map(|axis| grid[axis].div_ceil(block[axis].max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::notes::Busy;

    #[test]
    fn functions_have_names_though_another_thread_adds_some_too() {
        let recorder = Busy::new();
        let operations = [(1, "hipMalloc".to_owned()), (3, "hipLaunchKernel".to_owned())];
        let domain = domain(HIP, &recorder, b"cuda_runtime", &operations, |_| true);
        let names: Vec<_> = domain.calls.iter().map(|c| recorder.notes.text(c.site)).collect();
        assert_eq!(names, ["", "hipMalloc", "", "hipLaunchKernel"]);
        assert_eq!(recorder.notes.text(domain.category), "cuda_runtime");
    }
}
