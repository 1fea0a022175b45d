//! Launches by the driver API, watched only where there may be some.
//!
//! Being called for the driver's share of each launch of the runtime's costs as much as
//! being called for the runtime's (0.7 us on an H200). So a program that launches by the
//! runtime alone is not to pay for it:
//!
//! ```text
//!               it gets something to launch, not in a call of the runtime's
//!   Unwatched ────────────────────────────────────────────────────────────► Watched
//!       │     ◄────────────────────────────────────────────────────────────    │
//!       │               so many launches later, all of them the runtime's      │
//!       └──────────────────────────────► Always ◄──────────────────────────────┘
//!         a kernel ran that no call asked for             it launches by the driver API
//! ```
//! Always, too, if we did not see the program from its beginning. What was launched before a
//! kernel told so is lost as a call, which is counted; its kernels are recorded.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::names;
use super::share;
use super::subscription;
use super::sys::{Cupti, DOMAIN_DRIVER};

const UNWATCHED: u8 = 0;
const WATCHED: u8 = 1;
const ALWAYS: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(ALWAYS);

/// Launches of the runtime's after which nobody expects others.
const ENOUGH: u32 = 10_000;
/// How many there were.
static LAUNCHES: AtomicU32 = AtomicU32::new(0);
/// What gave the program something to launch: its domain and number; 0 if nothing did.
static SINCE: AtomicU64 = AtomicU64::new(0);
/// Whether there were launches that nobody watched.
static MISSED: AtomicBool = AtomicBool::new(false);
/// How often watching ended.
static RESTS: AtomicU32 = AtomicU32::new(0);
/// The functions that launch.
static FUNCTIONS: OnceLock<Box<[u32]>> = OnceLock::new();

/// Calls that asked for work, by the lower half of their correlation id: the upper half
/// plus one.
static ASKED: [AtomicU16; 1 << 16] = [const { AtomicU16::new(0) }; 1 << 16];

/// The numbers of the driver's functions that launch kernels.
pub(crate) fn learn(functions: Box<[u32]>) {
    FUNCTIONS.get_or_init(|| functions);
}

/// A recording begins. `waits`: it sees the program from its beginning, and all calls.
pub(crate) fn begin(waits: bool) {
    SINCE.store(0, Ordering::Relaxed);
    MISSED.store(false, Ordering::Relaxed);
    STATE.store(if waits { UNWATCHED } else { ALWAYS }, Ordering::Release);
}

/// Whether CUPTI is to call us for the driver's launches.
pub(crate) fn is_watched() -> bool {
    STATE.load(Ordering::Acquire) != UNWATCHED
}

/// The program got something that it can launch by the driver API, from this function.
#[cold]
pub(crate) fn possible(domain: c_int, id: u32) {
    LAUNCHES.store(0, Ordering::Relaxed);
    if change(UNWATCHED, WATCHED) {
        SINCE.store((domain as u64) << 32 | u64::from(id), Ordering::Relaxed);
        apply();
    }
}

/// The program launches by the driver API. Returns whether the call can be recorded: its
/// end may not be told if it began while watching ended.
#[inline]
pub(crate) fn seen() -> bool {
    STATE.load(Ordering::Relaxed) == ALWAYS || from_now_on()
}

#[cold]
fn from_now_on() -> bool {
    let before = STATE.swap(ALWAYS, Ordering::AcqRel);
    if before == UNWATCHED {
        apply();
    }
    before != UNWATCHED
}

/// We were called for the driver's share of a launch of the runtime's.
#[inline]
pub(crate) fn called_in_vain() {
    if STATE.load(Ordering::Relaxed) == WATCHED {
        // Some are not counted if threads do this at once.
        let launches = LAUNCHES.load(Ordering::Relaxed) + 1;
        LAUNCHES.store(launches, Ordering::Relaxed);
        if launches >= ENOUGH {
            rest();
        }
    }
}

#[cold]
fn rest() {
    if change(WATCHED, UNWATCHED) {
        RESTS.fetch_add(1, Ordering::Relaxed);
        apply();
    }
}

/// A call may ask for work.
#[inline]
pub(crate) fn asks(correlation: u32) {
    let (place, round) = asked(correlation);
    place.store(round, Ordering::Relaxed);
}

/// A kernel ran for this call. Returns whether we know the call.
pub(crate) fn is_known(correlation: u32) -> bool {
    let (place, round) = asked(correlation);
    // What a later call has overwritten may have been known.
    let known = place.load(Ordering::Relaxed).wrapping_sub(round) as i16 >= 0;
    if !known && !from_now_on() {
        MISSED.store(true, Ordering::Relaxed);
    }
    known
}

/// Whether there were launches that nobody watched: a kernel told so.
pub(crate) fn missed() -> bool {
    MISSED.load(Ordering::Relaxed)
}

fn asked(correlation: u32) -> (&'static AtomicU16, u16) {
    (&ASKED[correlation as u16 as usize], ((correlation >> 16) as u16).wrapping_add(1))
}

fn change(from: u8, to: u8) -> bool {
    STATE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Tells CUPTI what to call us for, which may be done in its callbacks. Who comes while
/// another thread is at it leaves it to that one.
fn apply() {
    static CHANGES: AtomicU32 = AtomicU32::new(0);
    if CHANGES.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    let mut done = 1;
    loop {
        enable(is_watched());
        match CHANGES.compare_exchange(done, 0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(more) => done = more,
        }
    }
}

fn enable(on: bool) {
    let (Some(cupti), Some(ours)) = (share::real(), subscription::ours()) else { return };
    for id in FUNCTIONS.get().into_iter().flatten() {
        if on || !subscription::wants(DOMAIN_DRIVER, *id) {
            // SAFETY: our own subscriber.
            unsafe { (cupti.enable_callback)(on.into(), ours, DOMAIN_DRIVER, *id) };
        }
    }
}

/// Since when launches by the driver API are watched, in words.
pub(crate) fn story(cupti: &Cupti) -> String {
    let since = SINCE.load(Ordering::Relaxed);
    let mut name: *const c_char = ptr::null();
    // SAFETY: stores a pointer to a static C string.
    unsafe { (cupti.callback_name)((since >> 32) as c_int, since as u32, &mut name) };
    let since = match since == 0 || name.is_null() {
        true => "the start".to_owned(),
        // SAFETY: as above.
        false => names::call(&unsafe { CStr::from_ptr(name) }.to_string_lossy()).to_owned(),
    };
    match (STATE.load(Ordering::Acquire), RESTS.load(Ordering::Relaxed)) {
        (UNWATCHED, 0) => "not watched: the program asks for nothing to launch".to_owned(),
        (UNWATCHED, _) => {
            format!("{since}, until {ENOUGH} launches in a row came from the runtime")
        }
        _ => since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_both_halves_of_their_id() {
        // Nobody watches anything: there is no CUPTI.
        begin(true);
        let far = 7 << 16;
        assert!(!is_known(far + 1) && is_watched());
        asks(far + 1);
        assert!(is_known(far + 1) && !is_known(far + 2));
        // The place was taken by a later call.
        assert!(is_known(1));
        asks(1);
        assert!(!is_known(far + 1));
        begin(false);
    }
}
