//! Synapse, if the process has it.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::sys::Synapse;
use crate::device::error::{Error, Result};
use crate::load::Library;

const NAME: &CStr = c"libSynapse.so";

/// Synapse, or the function that it lacks. `None` if the process does not have it (and may
/// not have it: `load`).
pub(crate) fn synapse(load: bool) -> Option<Result<&'static Synapse>> {
    static FOUND: OnceLock<Synapse> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(Ok(found));
    }
    let library = if load { Library::load(NAME) } else { Library::present(NAME) }?;
    Some(match Synapse::find(library) {
        Ok(found) => Ok(FOUND.get_or_init(|| found)),
        Err(function) => Err(Error::missing("libSynapse.so", function)),
    })
}
