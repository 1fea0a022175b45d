//! External correlation ids: one stack per thread and kind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::status::{self, INVALID_PARAMETER, QUEUE_EMPTY, SUCCESS};

thread_local! {
    static STACKS: RefCell<BTreeMap<u32, Vec<u64>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The innermost id of every kind that has one.
pub(crate) fn tops() -> Vec<(u32, u64)> {
    let top = |(kind, stack): (&u32, &Vec<u64>)| Some((*kind, *stack.last()?));
    STACKS.with_borrow(|stacks| stacks.iter().filter_map(top).collect())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityPushExternalCorrelationId(kind: u32, id: u64) -> c_int {
    status::call("cuptiActivityPushExternalCorrelationId", || {
        if !(1..=5).contains(&kind) {
            return INVALID_PARAMETER;
        }
        STACKS.with_borrow_mut(|stacks| stacks.entry(kind).or_default().push(id));
        SUCCESS
    })
}

/// # Safety
/// `last` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityPopExternalCorrelationId(kind: u32, last: *mut u64) -> c_int {
    status::call("cuptiActivityPopExternalCorrelationId", || {
        if !(1..=5).contains(&kind) {
            return INVALID_PARAMETER;
        }
        let popped = STACKS.with_borrow_mut(|stacks| stacks.entry(kind).or_default().pop());
        let Some(id) = popped else {
            return QUEUE_EMPTY;
        };
        if !last.is_null() {
            // SAFETY: not null; the caller says the rest.
            unsafe { last.write(id) };
        }
        SUCCESS
    })
}
