//! Names of kernels, copies and waits, as Kineto writes them.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};

use kymograph_protos::{ColdRecorder, StrId};

use super::sync::Action;
use crate::device::kernel::{Name, describe};

/// Kernels that are remembered by address.
const KERNELS: usize = 1 << 16;

/// Names by address. The address alone is not enough: until CUDA 13.4 the text behind it
/// may be another one after a module was loaded anew.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    by_address: HashMap<usize, (Box<[u8]>, Name)>,
}

impl Kernels {
    /// The name of a kernel from its record.
    ///
    /// # Safety
    /// `name` is null or a C string.
    pub(crate) unsafe fn name(&mut self, name: *const c_char, recorder: &dyn ColdRecorder) -> Name {
        if name.is_null() {
            return unnamed(recorder);
        }
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(name) }.to_bytes();
        if let Some((known, found)) = self.by_address.get(&(name as usize))
            && **known == *text
        {
            return *found;
        }
        let found = describe(text, recorder);
        if self.by_address.len() >= KERNELS {
            self.by_address.clear();
        }
        if !found.short.is_none() {
            self.by_address.insert(name as usize, (text.into(), found));
        }
        found
    }
}

fn unnamed(recorder: &dyn ColdRecorder) -> Name {
    Name { short: recorder.intern_or_wait(StrId::NONE, b"<unknown>"), ..Name::default() }
}

/// A call as Kineto names it: without the version at its end (`_v7000`).
pub(crate) fn call(name: &str) -> &str {
    match name.rfind("_v") {
        Some(at) if name.len() >= at + 6 && name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => {
            &name[..at]
        }
        _ => name,
    }
}

/// `CUpti_ActivityMemcpyKind`.
pub(crate) fn memcpy_kind(kind: u8) -> &'static str {
    const KINDS: [&str; 11] = [
        "<unknown>",
        "HtoD",
        "DtoH",
        "HtoA",
        "AtoH",
        "AtoA",
        "AtoD",
        "DtoA",
        "DtoD",
        "HtoH",
        "PtoP",
    ];
    KINDS.get(usize::from(kind)).copied().unwrap_or("<unknown>")
}

/// `CUpti_ActivityMemoryKind`.
pub(crate) fn memory_kind(kind: u16) -> &'static str {
    const KINDS: [&str; 8] = [
        "Unknown",
        "Pageable",
        "Pinned",
        "Device",
        "Array",
        "Managed",
        "Device Static",
        "Managed Static",
    ];
    KINDS.get(usize::from(kind)).copied().unwrap_or("Unrecognized")
}

/// A call that waits.
pub(crate) fn wait(action: Action) -> &'static str {
    match action {
        Action::Record => "Record",
        Action::Event => "Event Sync",
        Action::StreamWaitsEvent => "Stream Wait Event",
        Action::Stream => "Stream Sync",
        Action::Context => "Context Sync",
    }
}

/// `CUpti_ActivityOverheadKind`.
pub(crate) fn overhead(kind: u32) -> &'static str {
    match kind {
        0 => "Unknown",
        1 => "Driver Compiler",
        0x1_0000 => "Buffer Flush",
        0x2_0000 => "Instrumentation",
        0x3_0000 => "Resource",
        0x4_0000 => "Runtime Triggered Module Loading",
        0x5_0000 => "Lazy Function Loading",
        0x6_0000 => "Command Buffer Full",
        0x7_0000 => "Activity Buffer Request",
        0x8_0000 => "UVM Activity Init",
        _ => "Unrecognized",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_lose_their_version() {
        assert_eq!(call("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(call("cudaLaunchKernelExC_ptsz_v11060"), "cudaLaunchKernelExC_ptsz");
        assert_eq!(call("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync_v2");
        assert_eq!(call("cuLaunchKernel"), "cuLaunchKernel");
    }
}
