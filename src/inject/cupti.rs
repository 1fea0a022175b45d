//! What the program itself calls of CUPTI: see `kymograph_backends::nvidia::share`. Dynamic
//! linking finds a function without a version, in an object that was preloaded, for one that
//! is asked for with a version. The functions that take pointers do with them what CUPTI says.
#![allow(non_snake_case, reason = "named as in CUPTI")]

use std::ffi::{c_int, c_void};

use kymograph_backends::nvidia::{
    BufferCompleted, BufferRequested, Callback, Code, TimestampCallback, share, subscription,
};

use crate::guard::guard;

/// `CUPTI_ERROR_UNKNOWN`.
const UNKNOWN: Code = 999;

macro_rules! export {
    ($($name:ident($($arg:ident: $ty:ty),*) => $serve:path;)*) => {
        $(
            /// As in CUPTI.
            ///
            /// # Safety
            /// As in CUPTI.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> Code {
                #[allow(unused_unsafe, reason = "some take no pointers")]
                // SAFETY: the caller's own arguments.
                guard(UNKNOWN, || unsafe { $serve($($arg),*) })
            }
        )*
    };
}

export! {
    cuptiActivityRegisterCallbacks(
        request: Option<BufferRequested>, complete: Option<BufferCompleted>
    ) => share::register_callbacks;
    cuptiActivityEnable(kind: u32) => share::enable;
    cuptiActivityDisable(kind: u32) => share::disable;
    cuptiActivityFlushAll(flag: u32) => share::flush_all;
    cuptiActivityRegisterTimestampCallback(callback: Option<TimestampCallback>)
        => share::register_timestamp;
    cuptiGetTimestamp(to: *mut u64) => share::get_timestamp;
    cuptiFinalize() => share::finalize;
    cuptiSubscribe(to: *mut *mut c_void, callback: Option<Callback>, user: *mut c_void)
        => subscription::subscribe;
    cuptiUnsubscribe(subscriber: *mut c_void) => subscription::unsubscribe;
    cuptiEnableCallback(on: u32, subscriber: *mut c_void, domain: c_int, id: u32)
        => subscription::enable_callback;
    cuptiEnableDomain(on: u32, subscriber: *mut c_void, domain: c_int)
        => subscription::enable_domain;
    cuptiEnableAllDomains(on: u32, subscriber: *mut c_void)
        => subscription::enable_all_domains;
}
