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
//! kernel showed that is lost as a call, which is counted; its kernels are recorded.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering};

use super::library;
use super::names;
use super::relay;
use super::state::{ALWAYS, STATE};
use super::sys::{Cupti, DOMAIN_DRIVER};

const UNWATCHED: u8 = 0;
const WATCHED: u8 = 1;

/// Launches of the runtime's after which no others are expected.
const ENOUGH: u32 = 10_000;

/// The numbers of the driver's functions that launch kernels.
pub(crate) fn learn(functions: Box<[u32]>) {
    STATE.direct.functions.get_or_init(|| functions);
}

/// A recording begins. `waits`: it sees the program from its beginning, and all calls.
pub(crate) fn begin(waits: bool) {
    STATE.direct.since.store(0, Ordering::Relaxed);
    STATE.direct.missed.store(false, Ordering::Relaxed);
    STATE.direct.watched.store(if waits { UNWATCHED } else { ALWAYS }, Ordering::Release);
    STATE.direct.enabled.store(!waits, Ordering::Release);
}

/// Whether CUPTI is to call us for the driver's launches.
pub(crate) fn is_watched() -> bool {
    STATE.direct.watched.load(Ordering::Acquire) != UNWATCHED
}

/// The program got something that it can launch by the driver API, from this function.
#[cold]
pub(crate) fn possible(domain: c_int, id: u32) {
    STATE.direct.launches.store(0, Ordering::Relaxed);
    if change(UNWATCHED, WATCHED) {
        STATE.direct.since.store((domain as u64) << 32 | u64::from(id), Ordering::Relaxed);
        apply();
    } else if !STATE.direct.enabled.load(Ordering::Acquire) {
        // Another thread is at it, and this one may launch before that is done.
        enable(true);
    }
}

/// The program launches by the driver API. Returns whether the call can be recorded: its
/// end may not be told if it began while watching ended.
#[inline]
pub(crate) fn seen() -> bool {
    STATE.direct.watched.load(Ordering::Relaxed) == ALWAYS || from_now_on()
}

#[cold]
fn from_now_on() -> bool {
    let before = STATE.direct.watched.swap(ALWAYS, Ordering::AcqRel);
    if before == UNWATCHED {
        apply();
    }
    before != UNWATCHED
}

/// We were called for the driver's share of a launch of the runtime's.
#[inline]
pub(crate) fn called_in_vain() {
    if STATE.direct.watched.load(Ordering::Relaxed) == WATCHED {
        // Some are not counted if threads do this at once.
        let launches = STATE.direct.launches.load(Ordering::Relaxed) + 1;
        STATE.direct.launches.store(launches, Ordering::Relaxed);
        if launches >= ENOUGH {
            rest();
        }
    }
}

#[cold]
fn rest() {
    if change(WATCHED, UNWATCHED) {
        STATE.direct.rests.fetch_add(1, Ordering::Relaxed);
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
        STATE.direct.missed.store(true, Ordering::Relaxed);
    }
    known
}

/// Whether there were launches that were not watched: a kernel showed it.
pub(crate) fn missed() -> bool {
    STATE.direct.missed.load(Ordering::Relaxed)
}

fn asked(correlation: u32) -> (&'static AtomicU16, u16) {
    (&STATE.direct.asked[correlation as u16 as usize], ((correlation >> 16) as u16).wrapping_add(1))
}

fn change(from: u8, to: u8) -> bool {
    STATE.direct.watched.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Has CUPTI call us for what is watched, which may be asked in its callbacks. A thread that
/// comes while another is at it leaves the last word to that one, without a wait for it.
fn apply() {
    if STATE.direct.changes.fetch_add(1, Ordering::AcqRel) > 0 {
        if is_watched() {
            enable(true);
        }
        return;
    }
    let mut done = 1;
    loop {
        let on = is_watched();
        if !on {
            STATE.direct.enabled.store(false, Ordering::Release);
        }
        enable(on);
        STATE.direct.enabled.store(on, Ordering::Release);
        match STATE.direct.changes.compare_exchange(done, 0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(more) => done = more,
        }
    }
}

fn enable(on: bool) {
    let (Some(cupti), Some(ours)) = (library::present(), relay::ours()) else { return };
    for id in STATE.direct.functions.get().into_iter().flatten() {
        if !on && is_watched() {
            return;
        }
        if on || !relay::wants(DOMAIN_DRIVER, *id) {
            // SAFETY: our own subscriber.
            unsafe { (cupti.enable_callback)(on.into(), ours, DOMAIN_DRIVER, *id) };
        }
    }
}

/// Since when launches by the driver API are watched, in words.
pub(crate) fn story(cupti: &Cupti) -> String {
    let since = STATE.direct.since.load(Ordering::Relaxed);
    let mut name: *const c_char = ptr::null();
    // SAFETY: stores a pointer to a static C string.
    unsafe { (cupti.callback_name)((since >> 32) as c_int, since as u32, &mut name) };
    let since = match since == 0 || name.is_null() {
        true => "the start".to_owned(),
        // SAFETY: as above.
        false => names::call(&unsafe { CStr::from_ptr(name) }.to_string_lossy()).to_owned(),
    };
    match (STATE.direct.watched.load(Ordering::Acquire), STATE.direct.rests.load(Ordering::Relaxed))
    {
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
