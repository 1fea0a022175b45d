//! The subscription of another user of CUPTI: what it wants to be called for, and the callbacks
//! that are passed on to it. See [`super::share`].

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::library;
use super::state::STATE;
use super::sys::{API_ENTER, Callback, CallbackData, DOMAIN_DRIVER, DOMAIN_RUNTIME};

/// Calls that a thread may be in at once, one inside the other.
const DEPTH: usize = 16;

thread_local! {
    /// The other's words of the calls that this thread is in, by correlation id and domain:
    /// the real one is in use for ours.
    static WORDS: [(AtomicU64, AtomicU64); DEPTH] =
        const { [const { (AtomicU64::new(0), AtomicU64::new(0)) }; DEPTH] };
    static INNER: Cell<u32> = const { Cell::new(0) };
}

/// The handle that the other has of us.
pub(crate) fn handle() -> *mut c_void {
    (&raw const STATE.subscriptions.function).cast_mut().cast()
}

/// Whether a handle is the other's: the one it got from us, or from CUPTI before.
pub(crate) fn is_theirs(subscriber: *mut c_void) -> bool {
    !subscriber.is_null()
        && (subscriber == handle()
            || subscriber == STATE.subscriptions.direct.load(Ordering::Acquire))
        && !STATE.subscriptions.function.load(Ordering::Acquire).is_null()
}

/// The function that the other wants called, and its argument.
#[inline]
fn function() -> Option<(Callback, *mut c_void)> {
    // SAFETY: null, or stored from a function of this type.
    let function = unsafe {
        std::mem::transmute::<*mut c_void, Option<Callback>>(
            STATE.subscriptions.function.load(Ordering::Relaxed),
        )
    };
    Some((function?, STATE.subscriptions.user.load(Ordering::Acquire)))
}

/// The place of one callback among those that the other enabled.
pub(crate) fn place(domain: c_int, id: u32) -> Option<(&'static AtomicU64, u64)> {
    let word =
        STATE.subscriptions.single.get(usize::try_from(domain).ok()?)?.get(id as usize / 64)?;
    Some((word, 1 << (id % 64)))
}

/// Whether the other wants to be called for this.
pub(crate) fn wants(domain: c_int, id: u32) -> bool {
    let whole =
        usize::try_from(domain).ok().and_then(|domain| STATE.subscriptions.whole.get(domain));
    whole.is_some_and(|whole| whole.load(Ordering::Relaxed)) || single(domain, id)
}

/// Whether the other enabled this callback by itself.
pub(crate) fn single(domain: c_int, id: u32) -> bool {
    place(domain, id).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// Our own subscription.
pub(crate) fn ours() -> Option<*mut c_void> {
    Some(STATE.subscriptions.ours.load(Ordering::Acquire)).filter(|ours| !ours.is_null())
}

/// Our subscription ends by other ways.
pub(crate) fn forget_ours() {
    STATE.subscriptions.ours.store(ptr::null_mut(), Ordering::Release);
}

/// Whether another user is subscribed.
pub(crate) fn is_used() -> bool {
    !STATE.subscriptions.function.load(Ordering::Acquire).is_null()
}

/// Unsubscribes us, unless the other is served through us: then the subscription stays.
pub(crate) fn give_up(subscriber: *mut c_void) {
    if !STATE.subscriptions.function.load(Ordering::Acquire).is_null() {
        return;
    }
    STATE.subscriptions.ours.store(ptr::null_mut(), Ordering::Release);
    if let Some(real) = library::present() {
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
