//! Registering with rocprofiler-sdk, once in a process.
//!
//! ```text
//! rocprofiler_configure ──► initialize ──► (recordings start and stop) ──► finalize
//!   are we interested?       contexts,                                       the library
//!                            services                                        ends
//! ```
//! The library calls the first two while HIP or HSA initialises, or inside
//! `rocprofiler_force_configure`. All contexts must be made then; two of them are: one that
//! learns kernels, which is always on since code objects are loaded once, and one that is
//! started and stopped with recordings.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use kymograph_protos::ColdRecorder;

use super::calls::{self, DOMAINS, HIP, HSA, HSA_AMD, RCCL};
use super::collect::{self, refused};
use super::decode::Numbers;
use super::device::Agents;
use super::kernels;
use super::kinds::{Kinds, Selection, operations};
use super::library;
use super::markers;
use super::stream_ids;
use super::sys::{
    CallbackRecord, CallbackTracing, Configure, ConfigureResult, Id, KERNEL_SYMBOL, OLDEST,
    PHASE_ENTER, POLICY_LOSSLESS, SUCCESS, Sdk, Status, client_name_at, describe,
};
use crate::annotate::{guarded, roctx};
use crate::device::error::{Error, Result};
use crate::device::names;
use crate::device::remark;

/// Bytes of a buffer; the library makes two.
const BUFFER_BYTES: usize = 4 << 20;
/// When a buffer is handed over. The headers say bytes, the library compares records
/// (buffer.hpp, `emplace`): this is a sensible number of either.
const WATERMARK: usize = 16 << 10;

/// What was set up in the library.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) sdk: Sdk,
    pub(crate) version: u32,
    pub(crate) path: String,
    /// The context that is started and stopped with recordings.
    pub(crate) context: Id,
    /// None if no kind of records is recorded.
    pub(crate) buffer: Option<Id>,
    pub(crate) agents: Agents,
    pub(crate) numbers: Numbers,
    /// What there will be something of, if it is asked for.
    pub(crate) selection: Selection,
}

static SETUP: OnceLock<Setup> = OnceLock::new();
/// The pipeline, where a recording may be asked for later.
static PREPARED: OnceLock<&'static dyn ColdRecorder> = OnceLock::new();
/// Why nothing was set up, if the library asked for it: it does so once.
static FAILURE: OnceLock<String> = OnceLock::new();
static CONFIGURED: AtomicBool = AtomicBool::new(false);
static VERSION: AtomicU32 = AtomicU32::new(0);

static RESULT: ConfigureResult = ConfigureResult {
    size: size_of::<ConfigureResult>(),
    initialize,
    finalize,
    tool_data: ptr::null_mut(),
};

/// What was set up, if it was.
pub(crate) fn setup() -> Option<&'static Setup> {
    SETUP.get()
}

/// Why nothing was, though the library asked for it.
pub(crate) fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

/// Says that a recording may be asked for later: the library is set up when HIP is first used,
/// for whatever that will be.
pub fn prepare(recorder: &'static dyn ColdRecorder) {
    let _ = PREPARED.set(recorder);
}

/// Whether the library has asked us.
pub(crate) fn is_configured() -> bool {
    CONFIGURED.load(Ordering::Acquire)
}

/// The body of `rocprofiler_configure` (registration.h), when a recording is wanted. Returns
/// null if this library is not one that we understand.
///
/// # Safety
/// Called by rocprofiler-sdk with what it passes.
pub unsafe extern "C" fn configure(
    version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    client: *mut c_void,
) -> *mut ConfigureResult {
    guarded(ptr::null_mut(), || {
        if version < OLDEST {
            let shown = library::shown(version);
            fail(format!(
                "rocprofiler-sdk {shown} is older than 0.5.0; install that of ROCm 6.3 or later"
            ));
            return ptr::null_mut();
        }
        if CONFIGURED.swap(true, Ordering::AcqRel) {
            return ptr::null_mut();
        }
        VERSION.store(version, Ordering::Release);
        if !client.is_null() {
            // SAFETY: the library's struct for this version, to be written to; the name
            // lives for ever.
            unsafe {
                let name = client.cast::<u8>().add(client_name_at(version));
                name.cast::<*const c_char>().write_unaligned(c"kymograph".as_ptr());
            }
        }
        (&raw const RESULT).cast_mut()
    })
}

/// What `rocprofiler_force_configure` takes.
pub(crate) const CONFIGURE: Configure = configure;

unsafe extern "C" fn initialize(finalizer: *const c_void, _data: *mut c_void) -> c_int {
    guarded(-1, || {
        let (recorder, selection) = match (collect::wanted(), PREPARED.get()) {
            (Some((recorder, settings)), _) => {
                (recorder, Selection::parse(&settings.activity_types))
            }
            // What will be asked for is not known yet.
            (None, Some(recorder)) => (*recorder, Selection::CHEAP),
            (None, None) => {
                fail("no recording ran when HIP was first used".to_owned());
                return -1;
            }
        };
        match set_up(finalizer, selection, recorder) {
            Ok(setup) => {
                let _ = SETUP.set(setup);
                collect::go_on();
                0
            }
            Err(why) => {
                fail(why.to_string());
                -1
            }
        }
    })
}

/// Says why nothing is recorded, now and to recordings that follow.
fn fail(why: String) {
    refused(&why);
    let _ = FAILURE.set(why);
}

unsafe extern "C" fn finalize(_data: *mut c_void) {
    guarded((), collect::finalized);
}

fn set_up(
    finalizer: *const c_void,
    selection: Selection,
    recorder: &'static dyn ColdRecorder,
) -> Result<Setup> {
    let version = VERSION.load(Ordering::Acquire);
    let library = library::of_function(finalizer).or_else(library::present);
    let library = library.ok_or("the rocprofiler-sdk that called is not to be found")?;
    let path = library::shown_path(library);
    let sdk = Sdk::find(library).map_err(|function| Error::missing(&*path, function))?;
    let check = Check { sdk: &sdk, recorder };
    let agents = Agents::learn(&sdk)
        .map_err(|error| check.failed("rocprofiler_query_available_agents", error))?;
    if agents.count() == 0 {
        return Err("rocprofiler-sdk sees no AMD GPU: may this user open /dev/kfd?".into());
    }
    let kinds = Kinds::learn(&sdk);
    watch_kernels(&check, &kinds)?;
    let context = check.context()?;
    watch_calls(&check, &kinds, context, version, selection);
    let numbers = Numbers::new(&kinds).of(selection);
    let buffer = watch_work(&check, context, numbers)?;
    let mut valid = 0;
    // SAFETY: stores a number.
    let result = unsafe { (sdk.context_is_valid)(context, &mut valid) };
    if result != SUCCESS || valid == 0 {
        return Err(check.failed("rocprofiler_context_is_valid", result));
    }
    Ok(Setup { sdk, version, path, context, buffer, agents, numbers, selection })
}

/// The library reports kernels when their code objects are loaded.
fn watch_kernels(check: &Check<'_>, kinds: &Kinds) -> Result<()> {
    let context = check.context()?;
    let operations = [KERNEL_SYMBOL as c_int];
    let recorder: &'static dyn ColdRecorder = check.recorder;
    let _ = RECORDER.set(recorder);
    check.callback(kinds, context, "CODE_OBJECT", &operations, on_code_object, 0);
    // SAFETY: a context of ours.
    match unsafe { (check.sdk.start_context)(context) } {
        SUCCESS => Ok(()),
        error => Err(check.failed("rocprofiler_start_context", error)),
    }
}

fn watch_calls(check: &Check<'_>, kinds: &Kinds, context: Id, version: u32, selection: Selection) {
    let all = |name: &str| {
        kinds.callback(name).map(|kind| operations(check.sdk, kind)).unwrap_or_default()
    };
    let names: [&str; DOMAINS] = ["HIP_RUNTIME_API", "RCCL_API", "HSA_CORE_API", "HSA_AMD_EXT_API"];
    let operations = names.map(all);
    calls::learn(check.sdk, version, check.recorder, operations.each_ref().map(Vec::as_slice));
    let watch = |name, operations: Vec<c_int>, callback, domain| {
        !operations.is_empty()
            && check.callback(kinds, context, name, &operations, callback, domain)
    };
    if version >= stream_ids::OLDEST {
        let set = all("HIP_STREAM").into_iter().filter(|(_, name)| name == stream_ids::SET);
        let set = set.map(|(operation, _)| operation).collect();
        watch("HIP_STREAM", set, stream_ids::callback, 0);
    }
    // Also those that are not recorded know the streams of what they launch.
    let hip = calls::wanted(HIP, selection.calls);
    watch("HIP_RUNTIME_API", hip, calls::callback, HIP);
    if selection.collectives {
        watch("RCCL_API", calls::wanted(RCCL, true), calls::callback, RCCL);
    }
    for domain in [HSA, HSA_AMD].into_iter().filter(|_| selection.hsa) {
        watch(names[domain], calls::wanted(domain, true), calls::callback, domain);
    }
    for (kind, name) in markers::KINDS.into_iter().enumerate().skip(1) {
        watch(name, markers::learn(version, kind, &all(name)), markers::callback, kind);
    }
    let marks = markers::learn(version, 0, &all(markers::KINDS[0]));
    if watch(markers::KINDS[0], marks, markers::callback, 0) {
        roctx::initialize(check.recorder);
        roctx::set_reported();
    }
}

/// Records of device work, on a thread of the library that serves only us.
fn watch_work(check: &Check<'_>, context: Id, numbers: Numbers) -> Result<Option<Id>> {
    if numbers.all().next().is_none() {
        return Ok(None);
    }
    let sdk = check.sdk;
    let mut buffer: Id = 0;
    // SAFETY: a context of ours, a function that lives for ever, and a place for the id.
    let result = unsafe {
        let null = ptr::null_mut();
        let done = collect::records;
        (sdk.create_buffer)(
            context,
            BUFFER_BYTES,
            WATERMARK,
            POLICY_LOSSLESS,
            done,
            null,
            &mut buffer,
        )
    };
    if result != SUCCESS {
        return Err(check.failed("rocprofiler_create_buffer", result));
    }
    if let (Some(create), Some(assign)) = (sdk.create_thread, sdk.assign_thread) {
        let mut thread: Id = 0;
        // SAFETY: stores an id, which is used if there is one. Without it the library uses
        // a thread that it has.
        unsafe {
            if create(&mut thread) == SUCCESS {
                assign(buffer, thread);
            }
        }
    }
    for kind in numbers.all() {
        // SAFETY: a context and a buffer of ours; no list means all operations.
        let result = unsafe { (sdk.configure_buffer)(context, kind, ptr::null(), 0, buffer) };
        if result != SUCCESS {
            check.not_recorded(&format!("buffer.{kind}"), result);
        }
    }
    Ok(Some(buffer))
}

/// Calls of the library that may fail.
struct Check<'a> {
    sdk: &'a Sdk,
    recorder: &'static dyn ColdRecorder,
}

impl Check<'_> {
    fn failed(&self, function: &'static str, error: Status) -> Error {
        Error::call(function, describe(error, self.sdk.status_string))
    }

    fn context(&self) -> Result<Id> {
        // Must be 0 before (context.h, since 1.0).
        let mut context: Id = 0;
        // SAFETY: stores an id.
        match unsafe { (self.sdk.create_context)(&mut context) } {
            SUCCESS => Ok(context),
            error => Err(self.failed("rocprofiler_create_context", error)),
        }
    }

    /// Asks for callbacks. Returns whether there will be some; if not, the trace says so.
    fn callback(
        &self,
        kinds: &Kinds,
        context: Id,
        name: &str,
        operations: &[c_int],
        callback: CallbackTracing,
        data: usize,
    ) -> bool {
        let Some(kind) = kinds.callback(name) else { return false };
        let (list, count) = (operations.as_ptr(), operations.len());
        let data = ptr::without_provenance_mut(data);
        // SAFETY: a context of ours, a list that is copied, a function that lives for ever.
        let result =
            unsafe { (self.sdk.configure_callback)(context, kind, list, count, callback, data) };
        if result != SUCCESS {
            self.not_recorded(name, result);
        }
        result == SUCCESS
    }

    fn not_recorded(&self, kind: &str, error: Status) {
        let key = names::AMD.of_process(format_args!("kind_not_recorded.{kind}"));
        remark::fact(self.recorder, &key, &describe(error, self.sdk.status_string));
    }
}

/// For callbacks, which may come at any time.
static RECORDER: OnceLock<&'static dyn ColdRecorder> = OnceLock::new();

unsafe extern "C" fn on_code_object(record: CallbackRecord, _user: *mut u64, _data: *mut c_void) {
    guarded((), || {
        let parts = record.parts(VERSION.load(Ordering::Acquire));
        let registers = parts.operation == KERNEL_SYMBOL && parts.phase == PHASE_ENTER;
        let Some(recorder) = RECORDER.get().filter(|_| registers) else { return };
        if !parts.payload.is_null() {
            // SAFETY: the payload of this operation is such a symbol.
            unsafe { kernels::register(parts.payload.cast(), *recorder) };
        }
    });
}
