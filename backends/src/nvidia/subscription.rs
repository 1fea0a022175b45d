//! The subscription of another user of CUPTI, fed from ours: see [`super::share`].

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

use super::callbacks;
use super::library::present as real;
use super::relay::{handle, is_theirs, place, single};
use super::state::{CALLBACKS, DOMAINS, STATE};
use super::sys::{
    Callback, Code, ERROR_INVALID_PARAMETER, ERROR_MULTIPLE_SUBSCRIBERS, ERROR_NOT_INITIALIZED,
    SUCCESS,
};

/// `cuptiSubscribe`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn subscribe(
    to: *mut *mut c_void,
    callback: Option<Callback>,
    user: *mut c_void,
) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    let Some(callback) = callback.filter(|_| !to.is_null()) else {
        return ERROR_INVALID_PARAMETER;
    };
    if !STATE.subscriptions.function.load(Ordering::Acquire).is_null() {
        return ERROR_MULTIPLE_SUBSCRIBERS;
    }
    if STATE.subscriptions.ours.load(Ordering::Acquire).is_null() {
        // SAFETY: the program's own call.
        let result = unsafe { (real.subscribe)(to, callback, user) };
        if result != SUCCESS {
            return result;
        }
        // SAFETY: stored by CUPTI just now.
        STATE.subscriptions.direct.store(unsafe { *to }, Ordering::Release);
    } else {
        // SAFETY: the caller's place.
        unsafe { *to = handle() };
    }
    STATE.subscriptions.user.store(user, Ordering::Release);
    STATE.subscriptions.function.store(callback as *mut c_void, Ordering::Release);
    SUCCESS
}

/// `cuptiUnsubscribe`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn unsubscribe(subscriber: *mut c_void) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    if is_theirs(subscriber) && !STATE.subscriptions.ours.load(Ordering::Acquire).is_null() {
        end();
        return SUCCESS;
    }
    if is_theirs(subscriber) {
        forget();
    }
    // SAFETY: the program's own call.
    unsafe { (real.unsubscribe)(subscriber) }
}

/// The other's subscription is over; ours goes on.
pub(crate) fn end() {
    STATE.subscriptions.function.store(ptr::null_mut(), Ordering::Release);
    let ours = STATE.subscriptions.ours.load(Ordering::Acquire);
    if let (Some(real), false) = (real(), ours.is_null()) {
        for (domain, whole) in STATE.subscriptions.whole.iter().enumerate().skip(1) {
            let domain = domain as c_int;
            if whole.load(Ordering::Acquire) {
                // SAFETY: our own subscriber.
                unsafe { (real.enable_domain)(0, ours, domain) };
                callbacks::enable_again(real, ours);
            }
            let theirs = (0..CALLBACKS as u32).filter(|id| single(domain, *id));
            for id in theirs.filter(|id| !callbacks::is_ours(domain, *id)) {
                // SAFETY: as above.
                unsafe { (real.enable_callback)(0, ours, domain, id) };
            }
        }
    }
    forget();
}

fn forget() {
    STATE.subscriptions.function.store(ptr::null_mut(), Ordering::Release);
    STATE.subscriptions.direct.store(ptr::null_mut(), Ordering::Release);
    STATE.subscriptions.whole.iter().for_each(|whole| whole.store(false, Ordering::Release));
    STATE.subscriptions.single.iter().flatten().for_each(|word| word.store(0, Ordering::Release));
}

/// `cuptiEnableCallback`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn enable_callback(on: u32, subscriber: *mut c_void, domain: c_int, id: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    let ours = STATE.subscriptions.ours.load(Ordering::Acquire);
    let theirs = is_theirs(subscriber);
    if theirs && let Some((word, bit)) = place(domain, id) {
        match on {
            0 => word.fetch_and(!bit, Ordering::AcqRel),
            _ => word.fetch_or(bit, Ordering::AcqRel),
        };
    }
    if !theirs || ours.is_null() {
        // SAFETY: the program's own call.
        return unsafe { (real.enable_callback)(on, subscriber, domain, id) };
    }
    if on == 0 && callbacks::is_ours(domain, id) {
        return SUCCESS;
    }
    // SAFETY: our own subscriber.
    unsafe { (real.enable_callback)(on, ours, domain, id) }
}

/// `cuptiEnableDomain`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn enable_domain(on: u32, subscriber: *mut c_void, domain: c_int) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    let ours = STATE.subscriptions.ours.load(Ordering::Acquire);
    let theirs = is_theirs(subscriber);
    if theirs && let Some(at) = usize::try_from(domain).ok().filter(|at| *at < DOMAINS) {
        STATE.subscriptions.whole[at].store(on != 0, Ordering::Release);
        if on == 0 {
            STATE.subscriptions.single[at].iter().for_each(|word| word.store(0, Ordering::Release));
        }
    }
    if !theirs || ours.is_null() {
        // SAFETY: the program's own call.
        return unsafe { (real.enable_domain)(on, subscriber, domain) };
    }
    // SAFETY: our own subscriber.
    let result = unsafe { (real.enable_domain)(on, ours, domain) };
    if on == 0 {
        callbacks::enable_again(real, ours);
    }
    result
}

/// `cuptiEnableAllDomains`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn enable_all_domains(on: u32, subscriber: *mut c_void) -> Code {
    // SAFETY: the caller's promise. Domains that this version does not have are refused,
    // which is no error of the caller's.
    (1..DOMAINS as c_int).for_each(|domain| unsafe {
        enable_domain(on, subscriber, domain);
    });
    SUCCESS
}

/// Subscribes us. If the other has subscribed already (through us), its place is taken and
/// it is served from here.
pub(crate) fn take(subscriber: &mut *mut c_void) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    let kept = STATE.subscriptions.ours.load(Ordering::Acquire);
    if !kept.is_null() {
        *subscriber = kept;
        return SUCCESS;
    }
    let direct = STATE.subscriptions.direct.load(Ordering::Acquire);
    // SAFETY: handles of CUPTI's; the callback lives for ever.
    unsafe {
        if !direct.is_null() {
            (real.unsubscribe)(direct);
        }
        let result = (real.subscribe)(subscriber, callbacks::callback, ptr::null_mut());
        if result != SUCCESS {
            return result;
        }
    }
    STATE.subscriptions.ours.store(*subscriber, Ordering::Release);
    for (domain, whole) in STATE.subscriptions.whole.iter().enumerate().skip(1) {
        if whole.load(Ordering::Acquire) {
            // SAFETY: our own subscriber.
            unsafe { (real.enable_domain)(1, *subscriber, domain as c_int) };
        }
        let ids = (0..CALLBACKS as u32).filter(|id| single(domain as c_int, *id));
        // SAFETY: as above.
        ids.for_each(|id| unsafe {
            (real.enable_callback)(1, *subscriber, domain as c_int, id);
        });
    }
    SUCCESS
}

/// A forked child has no subscription.
pub(crate) fn after_fork() {
    STATE.subscriptions.function.store(ptr::null_mut(), Ordering::Release);
}
