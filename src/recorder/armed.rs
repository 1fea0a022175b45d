//! What a process that can be asked for traces remembers for traces that begin later.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::names::Names;
use crate::config::CategoryFilter;

/// See the module.
#[derive(Debug)]
pub(crate) struct Armed {
    /// The categories that a trace has unless its request says otherwise.
    pub categories: CategoryFilter,
    /// The names that the program gives its threads and itself.
    pub names: Names,
}

/// Null, or leaked.
static ARMED: AtomicPtr<Armed> = AtomicPtr::new(ptr::null_mut());

/// What this process remembers, if it can be asked for traces.
pub(crate) fn armed() -> Option<&'static Armed> {
    // SAFETY: null, or leaked.
    unsafe { ARMED.load(Ordering::Acquire).as_ref() }
}

/// This process can be asked for traces from now on, which have these categories unless a request
/// says otherwise.
pub(crate) fn arm(categories: CategoryFilter) {
    let armed = Box::new(Armed { categories, names: Names::default() });
    ARMED.store(Box::into_raw(armed), Ordering::Release);
}

/// This process can no longer be asked: it could not be armed, or it is a forked child. Takes no
/// lock and frees nothing.
pub(crate) fn disarm() {
    ARMED.store(ptr::null_mut(), Ordering::Release);
}
