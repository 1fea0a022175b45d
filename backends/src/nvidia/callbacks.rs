//! Calls of the CUDA API, as CUPTI reports them while they happen.
//!
//! A call becomes a slice on the thread that makes it, stamped with the recording clock:
//! so it nests in whatever else that thread records, and its records take no part in
//! CUPTI's buffers. Calls that are not worth a slice are never enabled.
//!
//! A call of the runtime API makes calls of the driver API, with the same correlation id.
//! Only driver calls that come from elsewhere are recorded (Triton, NCCL): otherwise one
//! launch would have two arrows.
//! Its launches are watched only where there may be some: see [`super::direct`].

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use kymograph_protos::record::OPERATOR;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::detach;
use super::direct;
use super::enable;
use super::functions;
use super::kinds::Selection;
use super::names;
use super::relay;
use super::state::STATE;
use super::sync;
use super::sys::{
    API_ENTER, CallbackData, Cupti, DOMAIN_DRIVER, DOMAIN_RESOURCE, DOMAIN_RUNTIME, DOMAIN_STATE,
    RESOURCE_CONTEXT_CREATED, RESOURCE_CONTEXT_DESTROY_STARTING, RESOURCE_CU_INIT_FINISHED,
    ResourceData, SUCCESS, StateData,
};
use crate::annotate::guarded;

/// A function of the API.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// None: never recorded.
    site: StrId,
    launches: bool,
    /// Watched if [`direct`] says so.
    deferred: bool,
    /// Gives the program something to launch.
    gives: bool,
    /// Waits, or records what is waited for.
    waits: Option<sync::Function>,
}

impl Call {
    const NONE: Call =
        Call { site: StrId::NONE, launches: false, deferred: false, gives: false, waits: None };

    /// Whether we are called for it. `slices`: calls of its domain are recorded.
    fn is_watched(self, slices: bool, waits: bool) -> bool {
        let recorded =
            (!self.site.is_none() || self.gives) && (!self.deferred || direct::is_watched());
        slices && recorded || waits && self.waits.is_some()
    }
}

/// The functions of a domain, by CUPTI's number.
struct Domain {
    category: StrId,
    calls: Box<[Call]>,
    /// Written into the invocation's own word while its slice is open. Domains differ,
    /// should a runtime call and its driver call share the word as they share the id.
    mark: u64,
    /// Of `STATE.calls.enabled`.
    bit: u64,
}

struct Calls {
    recorder: &'static dyn ColdRecorder,
    /// What the number of a call is called, where no launch has it.
    correlation: StrId,
    runtime: Domain,
    driver: Domain,
}

static CALLS: OnceLock<Calls> = OnceLock::new();
/// Numbers of functions that are tried: there were 845 in CUDA 13.1.
const MAX_CALLS: u32 = 2048;

thread_local! {
    /// The correlation id of the runtime call that this thread is in, or was in last.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Learns the names of all functions, once.
pub(crate) fn learn(cupti: &Cupti, recorder: &'static dyn ColdRecorder) {
    let calls = CALLS.get_or_init(|| Calls {
        recorder,
        correlation: recorder.intern_or_wait(StrId::NONE, b"correlation"),
        runtime: Domain {
            mark: 0x4b59_4d52 << 32,
            bit: RUNTIME,
            ..domain(
                cupti,
                recorder,
                DOMAIN_RUNTIME,
                b"cuda_runtime",
                functions::runtime_call_matters,
            )
        },
        driver: Domain {
            mark: 0x4b59_4d44 << 32,
            bit: DRIVER,
            ..domain(cupti, recorder, DOMAIN_DRIVER, b"cuda_driver", functions::driver_call_matters)
        },
    });
    let launches = calls.driver.calls.iter().zip(0..).filter(|(call, _)| call.deferred);
    direct::learn(launches.map(|(_, id)| id).collect());
}

fn domain(
    cupti: &Cupti,
    recorder: &dyn ColdRecorder,
    number: c_int,
    category: &[u8],
    matters: fn(&str) -> bool,
) -> Domain {
    let category = recorder.intern_or_wait(StrId::NONE, category);
    let mut calls = vec![Call::NONE];
    for id in 1..MAX_CALLS {
        let mut name: *const c_char = ptr::null();
        // SAFETY: stores a pointer to a static C string.
        let result = unsafe { (cupti.callback_name)(number, id, &mut name) };
        let mut call = Call::NONE;
        if result == SUCCESS && !name.is_null() {
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
            let name = names::call(&name);
            call.gives = functions::gives_kernels(name);
            call.deferred = functions::launches_kernels(name);
            call.waits = sync::function(name);
            if matters(name) {
                call.site = recorder.intern_or_wait(category, name.as_bytes());
                call.launches = functions::may_launch(name);
            }
        }
        calls.push(call);
    }
    let last = calls.iter().rposition(|call| !call.site.is_none() || call.gives).unwrap_or(0);
    calls.truncate(last + 1);
    Domain { category, calls: calls.into(), mark: 0, bit: 0 }
}

/// What was enabled.
const RUNTIME: u64 = 1;
const DRIVER: u64 = 2;
/// Calls of either that wait.
const WAITS: u64 = 4;
const ANYTHING: u64 = 8;

/// Whether a callback is one that we asked for.
pub(crate) fn is_ours(domain: c_int, id: u32) -> bool {
    let Some(calls) = CALLS.get() else { return false };
    let enabled = STATE.calls.enabled.load(Ordering::Acquire);
    let known = |domain: &Domain, bit| {
        let call = domain.calls.get(id as usize);
        call.is_some_and(|call| call.is_watched(enabled & bit != 0, enabled & WAITS != 0))
    };
    match domain {
        DOMAIN_RUNTIME => known(&calls.runtime, RUNTIME),
        DOMAIN_DRIVER => known(&calls.driver, DRIVER),
        DOMAIN_RESOURCE | DOMAIN_STATE => enabled & ANYTHING != 0,
        _ => false,
    }
}

/// Enables what we asked for once more: another user of CUPTI disabled a whole domain.
pub(crate) fn enable_again(cupti: &Cupti, subscriber: *mut c_void) {
    match STATE.calls.enabled.load(Ordering::Acquire) {
        0 => {}
        enabled => {
            ask(cupti, subscriber, enabled);
        }
    }
}

/// Lets CUPTI call us. `from_birth`: the program has not used CUDA before. Returns how many
/// functions CUPTI refused to watch.
pub(crate) fn enable(
    cupti: &Cupti,
    subscriber: *mut c_void,
    selection: Selection,
    from_birth: bool,
) -> u32 {
    direct::begin(from_birth && selection.runtime && selection.driver);
    sync::begin();
    let wanted =
        [(selection.runtime, RUNTIME), (selection.driver, DRIVER), (selection.waits, WAITS)];
    let wanted = wanted.iter().filter(|(wanted, _)| *wanted).map(|(_, bit)| bit);
    let enabled = wanted.fold(ANYTHING, |bits, bit| bits | bit);
    STATE.calls.enabled.store(enabled, Ordering::Release);
    let refused = ask(cupti, subscriber, enabled);
    STATE.calls.on.store(true, Ordering::Release);
    refused
}

fn ask(cupti: &Cupti, subscriber: *mut c_void, enabled: u64) -> u32 {
    let Some(calls) = CALLS.get() else { return 0 };
    let mut refused = 0;
    let mut enable = |domain, id: u32| {
        // SAFETY: a subscriber that was subscribed by the caller.
        let result = unsafe { (cupti.enable_callback)(1, subscriber, domain, id) };
        refused += u32::from(result != SUCCESS);
    };
    let resources =
        [RESOURCE_CONTEXT_CREATED, RESOURCE_CONTEXT_DESTROY_STARTING, RESOURCE_CU_INIT_FINISHED];
    resources.into_iter().for_each(|id| enable(DOMAIN_RESOURCE, id));
    let domains =
        [(DOMAIN_RUNTIME, &calls.runtime, RUNTIME), (DOMAIN_DRIVER, &calls.driver, DRIVER)];
    for (number, domain, bit) in domains {
        let (slices, waits) = (enabled & bit != 0, enabled & WAITS != 0);
        let ids = (0..).zip(&domain.calls).filter(|(_, call)| call.is_watched(slices, waits));
        ids.for_each(|(id, _)| enable(number, id));
    }
    // Appeared in CUDA 12.2; before that it is refused, which is no loss.
    // SAFETY: as above.
    unsafe { (cupti.enable_domain)(1, subscriber, DOMAIN_STATE) };
    refused
}

/// Has us called when calls end, whatever was recorded.
pub(crate) fn watch_ends(cupti: &Cupti, subscriber: *mut c_void) {
    let enabled = RUNTIME | DRIVER | ANYTHING;
    STATE.calls.enabled.store(enabled, Ordering::Release);
    ask(cupti, subscriber, enabled);
}

/// Calls `each` with the functions of the runtime API that are not worth a record.
pub(crate) fn noise(each: &mut dyn FnMut(u32)) {
    if let Some(calls) = CALLS.get() {
        let known = calls.runtime.calls.iter().enumerate().skip(1);
        known.filter(|(_, call)| call.site.is_none()).map(|(id, _)| id as u32).for_each(each);
    }
}

/// No more slices begin.
pub(crate) fn disable() {
    STATE.calls.on.store(false, Ordering::Release);
}

/// Whether any work was asked for since this was last asked.
pub(crate) fn launched() -> bool {
    STATE.calls.launched.swap(false, Ordering::Relaxed)
}

/// Whether a context was made.
pub(crate) fn context_seen() -> bool {
    STATE.calls.context_seen.load(Ordering::Relaxed)
}

/// The contexts that were made and not destroyed while we looked.
pub(crate) fn contexts() -> impl Iterator<Item = *mut c_void> {
    STATE
        .calls
        .contexts
        .iter()
        .map(|c| c.load(Ordering::Acquire))
        .filter(|context| !context.is_null())
}

/// How many errors CUPTI reported about itself, and the first.
pub(crate) fn errors() -> (u64, Option<&'static (c_int, String)>) {
    (STATE.calls.errors.load(Ordering::Relaxed), STATE.calls.first_error.get())
}

/// What CUPTI calls.
pub(crate) unsafe extern "C" fn callback(
    _user: *mut c_void,
    domain: c_int,
    id: u32,
    data: *const c_void,
) {
    guarded((), || {
        // SAFETY: passed on from CUPTI.
        unsafe { relay::pass_on(domain, id, data) };
        let Some(calls) = CALLS.get() else { return };
        // SAFETY: CUPTI passes the struct that belongs to the domain, valid for the call
        // (cupti_callbacks.h: `CUpti_CallbackFunc`).
        unsafe {
            match domain {
                // Of nothing: there is no data.
                DOMAIN_RESOURCE if id == RESOURCE_CU_INIT_FINISHED => {
                    enable::waiting(calls.recorder);
                }
                _ if data.is_null() => {}
                DOMAIN_RUNTIME => api(calls, &calls.runtime, false, id, data.cast()),
                DOMAIN_DRIVER => api(calls, &calls.driver, true, id, data.cast()),
                DOMAIN_RESOURCE => resource(id, data.cast()),
                DOMAIN_STATE => state(data.cast()),
                _ => {}
            }
        }
    });
}

/// # Safety
/// `data` is what CUPTI passed.
#[inline]
unsafe fn api(calls: &Calls, domain: &Domain, driver: bool, id: u32, data: *const CallbackData) {
    // SAFETY: the caller's promise; the invocation's word outlives the callback.
    let (data, word) = unsafe { (&*data, (*data).correlation_data.as_mut()) };
    let (Some(call), Some(word)) = (domain.calls.get(id as usize), word) else { return };
    if data.site != API_ENTER {
        detach::at_end_of_call();
    }
    let correlation = data.correlation_id;
    if call.gives && !(driver && INSIDE.get() == correlation) {
        direct::possible(if driver { DOMAIN_DRIVER } else { DOMAIN_RUNTIME }, id);
    }
    if call.site.is_none() {
        // Enabled by another user of CUPTI, or only to be noticed.
        return;
    }
    let mark = domain.mark | u64::from(correlation);
    if data.site != API_ENTER {
        // Not after the recording: CUPTI, which is asked for streams, may have left just now.
        if let Some(function) = call.waits
            && STATE.calls.on.load(Ordering::Relaxed)
        {
            // SAFETY: the caller's promise.
            unsafe { sync::exit(function, mark, data) };
        }
        if *word == mark {
            *word = 0;
            let end =
                Record { time: calls.recorder.now(), kind: Kind::End as u8, ..Record::default() };
            calls.recorder.push(end, &[]);
        }
        return;
    }
    if driver {
        if INSIDE.get() == correlation {
            if call.deferred {
                direct::called_in_vain();
            }
            return;
        }
        if call.deferred && !direct::seen() {
            return;
        }
    } else {
        INSIDE.set(correlation);
    }
    *word = 0;
    if call.launches {
        direct::asks(correlation);
    }
    if !STATE.calls.on.load(Ordering::Relaxed) {
        return;
    }
    let enabled = STATE.calls.enabled.load(Ordering::Relaxed);
    if call.waits.is_some() && enabled & WAITS != 0 {
        sync::enter(mark);
    }
    if enabled & domain.bit == 0 || !calls.recorder.enabled(domain.category) {
        return;
    }
    let (tag, arg) = if call.launches {
        if !STATE.calls.launched.load(Ordering::Relaxed) {
            STATE.calls.launched.store(true, Ordering::Relaxed);
        }
        (ArgType::Launch as u8 | OPERATOR, u64::from(correlation))
    } else {
        (ArgType::None as u8 | OPERATOR, 0)
    };
    let begin = Record {
        time: calls.recorder.now(),
        arg,
        site: call.site,
        kind: Kind::Begin as u8,
        tag,
        ..Record::default()
    };
    // What waits states the number of the call that recorded the event.
    let number = [Extra::new(calls.correlation, ArgType::U64, correlation.into())];
    let extras = if call.waits.is_some() { &number[..] } else { &[] };
    if calls.recorder.push(begin, extras) {
        *word = mark;
    }
}

/// # Safety
/// `data` is what CUPTI passed.
unsafe fn resource(id: u32, data: *const ResourceData) {
    // SAFETY: the caller's promise.
    let context = unsafe { (*data).context };
    let (from, to) = match id {
        RESOURCE_CONTEXT_CREATED => {
            STATE.calls.context_seen.store(true, Ordering::Relaxed);
            (ptr::null_mut(), context)
        }
        RESOURCE_CONTEXT_DESTROY_STARTING => (context, ptr::null_mut()),
        _ => return,
    };
    let swap = |place: &AtomicPtr<c_void>| {
        place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let _ = STATE.calls.contexts.iter().any(swap);
}

/// CUPTI says that something of it does not work (cupti_callbacks.h: `CUpti_StateData`).
///
/// # Safety
/// `data` is what CUPTI passed.
#[cold]
unsafe fn state(data: *const StateData) {
    STATE.calls.errors.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's promise; the message is null or a C string.
    unsafe {
        let message = (*data).message;
        let text = match message.is_null() {
            true => String::new(),
            false => CStr::from_ptr(message).to_string_lossy().into_owned(),
        };
        let _ = STATE.calls.first_error.set(((*data).result, text));
    }
}
