//! Being asked for traces, and iterations.

use std::ffi::c_char;

use super::failure;
use super::header::bytes;
use crate::guard::guard;
use crate::{api, control};

/// # Safety
/// `options` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_arm(options: *const c_char) -> bool {
    guard(false, || {
        // SAFETY: the caller's promise.
        let config = super::config(unsafe { bytes(options) });
        match config.and_then(|config| control::arm(config).map_err(|error| error.to_string())) {
            Ok(()) => true,
            Err(why) => {
                failure::set(why);
                false
            }
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_step() {
    guard((), api::step);
}
