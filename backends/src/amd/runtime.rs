//! What is asked of the ROCm runtime in the process: whether it was used, and to finish.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem;
use std::time::Duration;

use super::library::REGISTER;
use crate::guard::without_signals;
use crate::load::{Library, functions};

/// How long devices may take to finish what they do when a recording stops.
const SYNC_TIMEOUT: Duration = Duration::from_secs(1);
/// `hipStreamCaptureModeRelaxed`.
const CAPTURE_MODE_RELAXED: c_int = 2;

functions! {
    /// libamdhip64.
    Hip
    required {
        device_count = c"hipGetDeviceCount": fn(*mut c_int) -> c_int;
        set_device = c"hipSetDevice": fn(c_int) -> c_int;
        synchronize = c"hipDeviceSynchronize": fn() -> c_int;
        primary_state = c"hipDevicePrimaryCtxGetState":
            fn(c_int, *mut c_uint, *mut c_int) -> c_int;
    }
    optional {
        exchange_capture_mode = c"hipThreadExchangeStreamCaptureMode": fn(*mut c_int) -> c_int;
    }
}

/// How librocprofiler-register hands tables over once more (rocprofiler_register.cpp).
const AGAIN: &CStr = c"rocprofiler_register_invoke_all_registrations";
/// How it tells what was handed over; older ones cannot.
const EACH: &CStr = c"rocprofiler_register_iterate_registration_info";

/// Whether a library of ROCm has handed its tables over already: without a tool then, if no
/// tool was there. None if that cannot be found out.
pub(crate) fn is_registered() -> Option<bool> {
    type Each = unsafe extern "C" fn(
        unsafe extern "C" fn(*const c_void, *mut c_void) -> c_int,
        *mut c_void,
    ) -> c_int;
    let Some(register) = Library::present(REGISTER) else { return Some(false) };
    let each = register.symbol(EACH)?.as_ptr();
    let mut count = 0_u32;
    // SAFETY: rocprofiler-register.h declares it so; called back within the call, with the
    // number it is given.
    unsafe { mem::transmute::<*mut c_void, Each>(each)(one_more, (&raw mut count).cast()) };
    Some(count > 0)
}

/// Whether rocprofiler-sdk can be configured after HIP was used: whether it asks for the tables
/// once more, and is given them. Its version does not tell: 1.3.0 is that of ROCm 7.13, which
/// does, and of ROCm 7.2.4, which does not.
pub(crate) fn can_start_late(sdk: Library) -> bool {
    let given = Library::present(REGISTER).is_some_and(|library| library.symbol(AGAIN).is_some());
    given && sdk.mentions(AGAIN)
}

/// # Safety
/// `count` is the number that was passed with it.
unsafe extern "C" fn one_more(_info: *const c_void, count: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *count.cast::<u32>() += 1 };
    0
}

/// Lets the devices finish what they do: records come at the end of work. On a thread of its
/// own, since what runs may never end.
pub(crate) fn synchronise() {
    const NAMES: [&std::ffi::CStr; 3] =
        [c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so"];
    let library = NAMES.into_iter().find_map(Library::present);
    let Some(hip) = library.and_then(|library| Hip::find(library).ok()) else { return };
    let (sender, receiver) = std::sync::mpsc::channel();
    let body = move || {
        wait_for_devices(&hip);
        let _ = sender.send(());
    };
    let builder = std::thread::Builder::new().name("kymograph-sync".into());
    if without_signals(|| builder.spawn(body)).is_ok() {
        let _ = receiver.recv_timeout(SYNC_TIMEOUT);
    }
}

/// Waits for the devices that the program uses.
fn wait_for_devices(hip: &Hip) {
    let mut count = 0;
    // SAFETY: each call stores what its type says. The device of a thread is the thread's.
    unsafe {
        if let Some(exchange) = hip.exchange_capture_mode {
            let mut mode = CAPTURE_MODE_RELAXED;
            // A wait must not break a capture that another thread is in the middle of.
            exchange(&mut mode);
        }
        if (hip.device_count)(&mut count) != 0 {
            return;
        }
        for device in 0..count.clamp(0, 1024) {
            let (mut flags, mut active) = (0, 0);
            let used = (hip.primary_state)(device, &mut flags, &mut active) == 0 && active != 0;
            if used && (hip.set_device)(device) == 0 {
                (hip.synchronize)();
            }
        }
    }
}
