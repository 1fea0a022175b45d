//! The subscription of another user of CUPTI, fed from ours: see [`super::share`].

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::callbacks;
use super::share::real;
use super::sys::{
    API_ENTER, Callback, CallbackData, Code, DOMAIN_DRIVER, DOMAIN_RUNTIME,
    ERROR_INVALID_PARAMETER, ERROR_MULTIPLE_SUBSCRIBERS, ERROR_NOT_INITIALIZED, SUCCESS,
};

/// Domains, from 1.
const DOMAINS: usize = 8;
/// Numbers of callbacks in a domain.
const CALLBACKS: usize = 2048;

/// What the other subscribed with. The address of this is the handle it has.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static USER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// CUPTI's own handle of the other, if it subscribed before we did.
static DIRECT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Our own subscription.
static OURS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static WHOLE: [AtomicBool; DOMAINS] = [const { AtomicBool::new(false) }; DOMAINS];
static SINGLE: [[AtomicU64; CALLBACKS / 64]; DOMAINS] =
    [const { [const { AtomicU64::new(0) }; CALLBACKS / 64] }; DOMAINS];

/// Calls that a thread may be in at once, one inside the other.
const DEPTH: usize = 16;

thread_local! {
    /// The other's words of the calls that this thread is in, by correlation id and domain:
    /// the real one is in use for ours.
    static WORDS: [(AtomicU64, AtomicU64); DEPTH] =
        const { [const { (AtomicU64::new(0), AtomicU64::new(0)) }; DEPTH] };
    static INNER: Cell<u32> = const { Cell::new(0) };
}

fn handle() -> *mut c_void {
    (&raw const FUNCTION).cast_mut().cast()
}

/// Whether a handle is the other's: the one it got from us, or from CUPTI before.
fn is_theirs(subscriber: *mut c_void) -> bool {
    !subscriber.is_null()
        && (subscriber == handle() || subscriber == DIRECT.load(Ordering::Acquire))
        && !FUNCTION.load(Ordering::Acquire).is_null()
}

/// The function that the other wants called, and its argument.
#[inline]
fn function() -> Option<(Callback, *mut c_void)> {
    // SAFETY: null, or stored from a function of this type.
    let function = unsafe {
        std::mem::transmute::<*mut c_void, Option<Callback>>(FUNCTION.load(Ordering::Relaxed))
    };
    Some((function?, USER.load(Ordering::Acquire)))
}

/// The place of one callback among those that the other enabled.
fn place(domain: c_int, id: u32) -> Option<(&'static AtomicU64, u64)> {
    let word = SINGLE.get(usize::try_from(domain).ok()?)?.get(id as usize / 64)?;
    Some((word, 1 << (id % 64)))
}

/// Whether the other wants to be called for this.
pub(crate) fn wants(domain: c_int, id: u32) -> bool {
    let whole = usize::try_from(domain).ok().and_then(|domain| WHOLE.get(domain));
    whole.is_some_and(|whole| whole.load(Ordering::Relaxed)) || single(domain, id)
}

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
    if !FUNCTION.load(Ordering::Acquire).is_null() {
        return ERROR_MULTIPLE_SUBSCRIBERS;
    }
    if OURS.load(Ordering::Acquire).is_null() {
        // SAFETY: the program's own call.
        let result = unsafe { (real.subscribe)(to, callback, user) };
        if result != SUCCESS {
            return result;
        }
        // SAFETY: stored by CUPTI just now.
        DIRECT.store(unsafe { *to }, Ordering::Release);
    } else {
        // SAFETY: the caller's place.
        unsafe { *to = handle() };
    }
    USER.store(user, Ordering::Release);
    FUNCTION.store(callback as *mut c_void, Ordering::Release);
    SUCCESS
}

/// `cuptiUnsubscribe`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn unsubscribe(subscriber: *mut c_void) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    if is_theirs(subscriber) && !OURS.load(Ordering::Acquire).is_null() {
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
    FUNCTION.store(ptr::null_mut(), Ordering::Release);
    let ours = OURS.load(Ordering::Acquire);
    if let (Some(real), false) = (real(), ours.is_null()) {
        for (domain, whole) in WHOLE.iter().enumerate().skip(1) {
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

/// Whether the other enabled this callback by itself.
fn single(domain: c_int, id: u32) -> bool {
    place(domain, id).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

fn forget() {
    FUNCTION.store(ptr::null_mut(), Ordering::Release);
    DIRECT.store(ptr::null_mut(), Ordering::Release);
    WHOLE.iter().for_each(|whole| whole.store(false, Ordering::Release));
    SINGLE.iter().flatten().for_each(|word| word.store(0, Ordering::Release));
}

/// `cuptiEnableCallback`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn enable_callback(on: u32, subscriber: *mut c_void, domain: c_int, id: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    let ours = OURS.load(Ordering::Acquire);
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
    let ours = OURS.load(Ordering::Acquire);
    let theirs = is_theirs(subscriber);
    if theirs && let Some(at) = usize::try_from(domain).ok().filter(|at| *at < DOMAINS) {
        WHOLE[at].store(on != 0, Ordering::Release);
        if on == 0 {
            SINGLE[at].iter().for_each(|word| word.store(0, Ordering::Release));
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
    let kept = OURS.load(Ordering::Acquire);
    if !kept.is_null() {
        *subscriber = kept;
        return SUCCESS;
    }
    let direct = DIRECT.load(Ordering::Acquire);
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
    OURS.store(*subscriber, Ordering::Release);
    for (domain, whole) in WHOLE.iter().enumerate().skip(1) {
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

/// Our own subscription.
pub(crate) fn ours() -> Option<*mut c_void> {
    Some(OURS.load(Ordering::Acquire)).filter(|ours| !ours.is_null())
}

/// Our subscription ends by other ways.
pub(crate) fn forget_ours() {
    OURS.store(ptr::null_mut(), Ordering::Release);
}

/// Whether somebody else is subscribed.
pub(crate) fn is_used() -> bool {
    !FUNCTION.load(Ordering::Acquire).is_null()
}

/// Unsubscribes us, unless the other is served through us: then the subscription stays.
pub(crate) fn give_up(subscriber: *mut c_void) {
    if !FUNCTION.load(Ordering::Acquire).is_null() {
        return;
    }
    OURS.store(ptr::null_mut(), Ordering::Release);
    if let Some(real) = real() {
        // SAFETY: our own subscriber. Calls that are under way may still come to us; they
        // find that nothing begins any more.
        unsafe { (real.unsubscribe)(subscriber) };
    }
}

/// Passes a callback on to the other, if it wants it.
///
/// # Safety
/// The arguments are what CUPTI passed.
#[inline]
pub(crate) unsafe fn pass_on(domain: c_int, id: u32, data: *const c_void) {
    if let Some((function, user)) = function()
        && wants(domain, id)
    {
        // SAFETY: the caller's promise.
        unsafe {
            match domain {
                DOMAIN_RUNTIME | DOMAIN_DRIVER => pass_call(function, user, domain, id, data),
                _ => function(user, domain, id, data),
            }
        }
    }
}

/// A call of the API: the other gets a word of its own to keep from entry to exit.
unsafe fn pass_call(
    function: Callback,
    user: *mut c_void,
    domain: c_int,
    id: u32,
    data: *const c_void,
) {
    // SAFETY: CUPTI passed this struct.
    let data = unsafe { &*data.cast::<CallbackData>() };
    let key = u64::from(data.correlation_id) << 8 | domain as u64;
    WORDS.with(|words| {
        if data.site == API_ENTER {
            INNER.set(INNER.get().wrapping_add(1));
            let free = &words[INNER.get() as usize % DEPTH];
            free.0.store(key, Ordering::Relaxed);
            free.1.store(0, Ordering::Relaxed);
        }
        let own = words.iter().find(|word| word.0.load(Ordering::Relaxed) == key);
        let spare = AtomicU64::new(0);
        let word = own.map_or(&spare, |word| &word.1);
        let theirs = CallbackData { correlation_data: word.as_ptr(), ..*data };
        // SAFETY: as CUPTI would call it.
        unsafe { function(user, domain, id, (&raw const theirs).cast()) };
        if data.site != API_ENTER {
            INNER.set(INNER.get().wrapping_sub(1));
            if let Some(word) = own {
                word.0.store(0, Ordering::Relaxed);
            }
        }
    });
}

/// In a forked child nobody is subscribed.
pub(crate) fn after_fork() {
    FUNCTION.store(ptr::null_mut(), Ordering::Release);
}
