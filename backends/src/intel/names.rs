//! Names of kernels, copies, calls and waits, as Kineto writes them.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};

use kymograph_protos::{ColdRecorder, StrId};

use crate::device::kernel;

/// Texts that are remembered by address.
const MAX_NAMES: usize = 1 << 16;

/// Ids of texts by address. The address alone is not enough: another text may be there
/// later.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashMap<usize, (Box<[u8]>, StrId)>);

impl Texts {
    /// The id of a C string, shown as `show` makes it.
    ///
    /// # Safety
    /// `text` is null or a C string.
    pub(crate) unsafe fn id(
        &mut self,
        text: *const c_char,
        recorder: &dyn ColdRecorder,
        show: impl FnOnce(&[u8], &dyn ColdRecorder) -> StrId,
    ) -> StrId {
        if text.is_null() {
            return StrId::NONE;
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        if let Some((known, id)) = self.0.get(&(text as usize))
            && **known == *bytes
        {
            return *id;
        }
        let id = show(bytes, recorder);
        if self.0.len() >= MAX_NAMES {
            self.0.clear();
        }
        if !id.is_none() {
            self.0.insert(text as usize, (bytes.into(), id));
        }
        id
    }
}

/// As it is.
pub(crate) fn plain(text: &[u8], recorder: &dyn ColdRecorder) -> StrId {
    recorder.intern_or_wait(StrId::NONE, text)
}

/// A kernel. SYCL names it by the type of its function object, whose mangled name it may be
/// (`_ZTS` and a type); PTI demangles most.
pub(crate) fn kernel(text: &[u8], recorder: &dyn ColdRecorder) -> StrId {
    match text.strip_prefix(b"_ZTS") {
        Some(ty) => kernel::describe(&[b"_Z", ty].concat(), recorder).short,
        None => kernel::describe(text, recorder).short,
    }
}

/// What PTI calls something, which Kineto calls so, too; the other name if it does not say.
pub(crate) fn by_pti(
    name: Option<unsafe extern "C" fn(u32) -> *const c_char>,
    kind: u32,
    other: impl FnOnce() -> String,
) -> String {
    // SAFETY: returns null or a static C string, for any number.
    let text = name.map_or(std::ptr::null(), |name| unsafe { name(kind) });
    if text.is_null() {
        return other();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// `pti_view_memcpy_type`: 4 memories, from each to each.
pub(crate) fn copy(kind: u32) -> String {
    const MEMORIES: [char; 4] = ['M', 'H', 'D', 'S'];
    match (MEMORIES.get(kind as usize / 4), MEMORIES.get(kind as usize % 4)) {
        (Some(from), Some(to)) => format!("{from}2{to}"),
        _ => "<unknown>".to_owned(),
    }
}

/// `pti_view_memory_type`, as PTI 1.2 calls it.
pub(crate) fn memory(kind: u32) -> String {
    let names = ["Host (User Allocated)", "Host (Driver Allocated)", "Device", "Shared"];
    names.get(kind as usize).copied().unwrap_or("<unknown>").to_owned()
}

/// `pti_view_synchronization_type`.
pub(crate) const WAITS: [&str; 8] = [
    "UNKNOWN",
    "GPU_BARRIER_EXECUTION",
    "GPU_BARRIER_MEMORY",
    "HOST_FENCE",
    "HOST_EVENT",
    "HOST_COMMAND_LIST",
    "HOST_COMMAND_QUEUE",
    "HOST_DEVICE",
];

/// The name of a wait's type.
pub(crate) fn wait(kind: u32) -> &'static str {
    WAITS.get(kind as usize).copied().unwrap_or("UNKNOWN")
}

/// `pti_view_overhead_kind`, named as CUPTI's where that has it.
pub(crate) const OVERHEADS: [(&str, &str); 4] = [
    ("RESOURCE", "Resource"),
    ("BUFFER_FLUSH", "Buffer Flush"),
    ("DRIVER", "Driver"),
    // What Level Zero itself takes.
    ("TIME", "Time"),
];
/// The first of them.
pub(crate) const FIRST_OVERHEAD: u32 = 2;

/// The name of a kind of overhead.
pub(crate) fn overhead(kind: u32) -> &'static str {
    let at = kind.checked_sub(FIRST_OVERHEAD).map(|at| at as usize);
    at.and_then(|at| OVERHEADS.get(at)).map_or("Unknown", |(_, name)| name)
}

/// Whether a call may ask a device for work: it gets an arrow.
pub(crate) fn may_launch(name: &[u8]) -> bool {
    let parts: [&[u8]; 5] = [b"Enqueue", b"Append", b"Execute", b"USMMemcpy", b"USMFill"];
    parts.iter().any(|part| name.windows(part.len()).any(|window| window == *part))
}

/// Whether a call of SYCL always has work that PTI reports.
pub(crate) fn has_work(name: &[u8]) -> bool {
    let parts: [&[u8]; 4] = [b"EnqueueKernelLaunch", b"USMMemcpy", b"USMFill", b"EnqueueMemBuffer"];
    parts.iter().any(|part| name.windows(part.len()).any(|window| window == *part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered_by_their_memories() {
        // pti_view.h: M2M 0, H2D 6, D2H 9, S2S 15.
        assert_eq!([0, 6, 9, 15, 16].map(copy), ["M2M", "H2D", "D2H", "S2S", "<unknown>"]);
        assert_eq!([2, 9].map(memory), ["Device", "<unknown>"]);
    }

    #[test]
    fn calls_that_launch() {
        for name in ["urEnqueueKernelLaunch", "zeCommandListAppendLaunchKernel"] {
            assert!(may_launch(name.as_bytes()), "{name}");
        }
        for name in ["urUSMHostAlloc", "zeEventHostSynchronize"] {
            assert!(!may_launch(name.as_bytes()), "{name}");
        }
    }
}
