//! The callback API: one subscriber, who is told of calls, resources and waits.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::seam::{Call, Wait};
use crate::settings;
use crate::status::{INVALID_PARAMETER, MULTIPLE_SUBSCRIBERS, SUCCESS, call};

type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

const DRIVER_DOMAIN: u32 = 1;
const RUNTIME_DOMAIN: u32 = 2;
const RESOURCE_DOMAIN: u32 = 3;
const SYNCHRONIZE_DOMAIN: u32 = 4;
const STATE_DOMAIN: u32 = 6;
/// `CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel`.
const LAUNCH: u64 = 307;

pub(crate) const CONTEXT_CREATED: u32 = 1;
pub(crate) const CONTEXT_DESTROY_STARTING: u32 = 2;
pub(crate) const STREAM_CREATED: u32 = 3;
const CU_INIT_FINISHED: u32 = 5;

/// `CUpti_ApiCallbackSite`.
pub(crate) const ENTER: u32 = 0;
pub(crate) const EXIT: u32 = 1;

struct Subscriber {
    callback: Callback,
    userdata: usize,
    domains: HashSet<u32>,
    functions: HashSet<(u32, u32)>,
}

static SUBSCRIBER: Mutex<Option<Subscriber>> = Mutex::new(None);
/// There is only one handle.
const HANDLE: usize = 0x4b59;

fn with<R>(f: impl FnOnce(&mut Option<Subscriber>) -> R) -> R {
    f(&mut SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner))
}

/// # Safety
/// `handle` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    handle: *mut *mut c_void,
    callback: Option<Callback>,
    userdata: *mut c_void,
) -> c_int {
    call("cuptiSubscribe", || {
        let (Some(callback), false) = (callback, handle.is_null()) else {
            return INVALID_PARAMETER;
        };
        with(|subscriber| {
            if subscriber.is_some() || settings::fault("other-subscriber") {
                return MULTIPLE_SUBSCRIBERS;
            }
            let (domains, functions) = (HashSet::new(), HashSet::new());
            let userdata = userdata.expose_provenance();
            *subscriber = Some(Subscriber { callback, userdata, domains, functions });
            // SAFETY: not null; the caller says the rest.
            unsafe { handle.write(ptr::without_provenance_mut(HANDLE)) };
            SUCCESS
        })
    })
}

/// What the handle's owner wants; an error if it is none.
fn of(handle: *mut c_void, change: impl FnOnce(&mut Subscriber)) -> c_int {
    with(|subscriber| match subscriber {
        Some(subscriber) if handle.addr() == HANDLE => {
            change(subscriber);
            SUCCESS
        }
        _ => INVALID_PARAMETER,
    })
}

pub(crate) fn is_subscribed() -> bool {
    with(|subscriber| subscriber.is_some())
}

pub(crate) fn forget() {
    with(|subscriber| *subscriber = None);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(handle: *mut c_void) -> c_int {
    call("cuptiUnsubscribe", || {
        let status = of(handle, |_| ());
        if status == SUCCESS {
            with(|subscriber| *subscriber = None);
        }
        status
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableDomain(enable: u32, handle: *mut c_void, domain: u32) -> c_int {
    call("cuptiEnableDomain", || {
        // The state domain came with 12.2.
        let last = if settings::toolkit() < 1202 { 5 } else { STATE_DOMAIN };
        if !(1..=last).contains(&domain) {
            return INVALID_PARAMETER;
        }
        of(handle, |subscriber| {
            if enable != 0 {
                subscriber.domains.insert(domain);
            } else {
                subscriber.domains.remove(&domain);
                subscriber.functions.retain(|(of, _)| *of != domain);
            }
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableAllDomains(enable: u32, handle: *mut c_void) -> c_int {
    call("cuptiEnableAllDomains", || {
        of(handle, |subscriber| {
            subscriber.functions.clear();
            subscriber.domains.clear();
            if enable != 0 {
                subscriber.domains.extend(1..=STATE_DOMAIN);
            }
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(
    enable: u32,
    handle: *mut c_void,
    domain: u32,
    cbid: u32,
) -> c_int {
    if domain == DRIVER_DOMAIN
        && enable != 0
        && u64::from(cbid) == settings::fault_every("slow-enable", LAUNCH)
    {
        std::thread::sleep(Duration::from_millis(100));
    }
    call("cuptiEnableCallback", || {
        of(handle, |subscriber| {
            if enable != 0 {
                subscriber.functions.insert((domain, cbid));
            } else {
                subscriber.functions.remove(&(domain, cbid));
            }
        })
    })
}

/// Calls the subscriber, with no lock held.
fn tell(domain: u32, cbid: u32, data: *const c_void) {
    let wanted = with(|subscriber| {
        let found = subscriber.as_ref()?;
        let wants = found.domains.contains(&domain) || found.functions.contains(&(domain, cbid));
        wants.then_some((found.callback, found.userdata))
    });
    if let Some((callback, userdata)) = wanted {
        // SAFETY: the subscriber's function and data.
        unsafe { callback(ptr::with_exposed_provenance_mut(userdata), domain, cbid, data) };
    }
}

/// `CUpti_CallbackData`.
#[repr(C)]
struct ApiData {
    site: u32,
    function: *const c_char,
    params: *const c_void,
    returned: *const c_int,
    symbol: *const c_char,
    context: *const c_void,
    context_id: u32,
    correlation_data: *mut u64,
    correlation: u32,
}

const _: () = assert!(size_of::<ApiData>() == 72);

pub(crate) fn api(call: &Call, site: u32) {
    let data = ApiData {
        site,
        function: call.function.as_ptr(),
        params: call.params.as_ptr().cast(),
        returned: if site == EXIT { &SUCCESS } else { ptr::null() },
        symbol: call.symbol.map_or(ptr::null(), CStr::as_ptr),
        context: ptr::without_provenance(call.context as usize),
        context_id: call.context,
        correlation_data: call.word,
        correlation: call.correlation,
    };
    let domain = if call.domain == 1 { DRIVER_DOMAIN } else { RUNTIME_DOMAIN };
    tell(domain, call.cbid, (&raw const data).cast());
}

/// `CUpti_ResourceData`.
#[repr(C)]
struct ResourceData {
    context: *const c_void,
    handle: *const c_void,
    descriptor: *const c_void,
}

/// Handles are numbers here.
pub(crate) fn resource(cbid: u32, context: u32, stream: u32) {
    let data = ResourceData {
        context: ptr::without_provenance(context as usize),
        handle: ptr::without_provenance(stream as usize),
        descriptor: ptr::null(),
    };
    tell(RESOURCE_DOMAIN, cbid, (&raw const data).cast());
}

/// Has no data, as on an H200 with CUDA 13.0.
pub(crate) fn cu_init_finished() {
    tell(RESOURCE_DOMAIN, CU_INIT_FINISHED, ptr::null());
}

/// `CUpti_SynchronizeData`.
#[repr(C)]
struct SynchronizeData {
    context: *const c_void,
    stream: *const c_void,
}

/// Streams and contexts have callbacks, events have none.
pub(crate) fn synchronized(wait: &Wait) {
    let (cbid, stream) = match wait.kind {
        3 => (1, wait.place.stream),
        4 => (2, 0),
        _ => return,
    };
    let data = SynchronizeData {
        context: ptr::without_provenance(wait.place.context as usize),
        stream: ptr::without_provenance(stream as usize),
    };
    tell(SYNCHRONIZE_DOMAIN, cbid, (&raw const data).cast());
}

/// `CUpti_StateData`.
#[repr(C)]
struct StateData {
    result: c_int,
    message: *const c_char,
}

/// Tells of an error (2) of CUPTI's own.
pub(crate) fn state(result: c_int, message: &CStr) {
    const ERROR: u32 = 2;
    let data = StateData { result, message: message.as_ptr() };
    tell(STATE_DOMAIN, ERROR, (&raw const data).cast());
}
