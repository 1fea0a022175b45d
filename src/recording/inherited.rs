//! In a forked child that has recorded nothing yet: how its parent was recorded.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::clock::Anchor;
use crate::config::Config;

/// A config of the parent's is never freed in a child.
static INHERITED: AtomicPtr<Config> = AtomicPtr::new(ptr::null_mut());
/// When the child was forked, on both clocks.
static FORKED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// This child was forked now, from a process that was recorded like this.
pub(crate) fn inherit(config: &'static Config) {
    let now = Anchor::now();
    FORKED[0].store(now.ticks, Ordering::Relaxed);
    FORKED[1].store(now.nanos, Ordering::Relaxed);
    INHERITED.store(ptr::from_ref(config).cast_mut(), Ordering::Release);
}

/// How the parent was recorded, if this child is to be recorded and is not yet.
pub(crate) fn inherited() -> Option<&'static Config> {
    // SAFETY: null, or a config that is never freed in this process.
    unsafe { INHERITED.load(Ordering::Acquire).as_ref() }
}

/// The same for the one thread that starts the recording, and when the child was forked.
pub(crate) fn take_inherited() -> Option<(&'static Config, Anchor)> {
    if INHERITED.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let config = INHERITED.swap(ptr::null_mut(), Ordering::AcqRel);
    let forked = Anchor {
        ticks: FORKED[0].load(Ordering::Relaxed),
        nanos: FORKED[1].load(Ordering::Relaxed),
    };
    // SAFETY: as in `inherited`.
    unsafe { config.as_ref() }.map(|config| (config, forked))
}

/// A forked child has a recording: the one it inherited is not to be started any more.
pub(super) fn forget_inherited() {
    INHERITED.store(ptr::null_mut(), Ordering::Release);
}
