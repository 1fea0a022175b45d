//! Kernels by their id, as code objects register them: before the first dispatch, on
//! threads of the program. Never forgotten: records of a kernel may come after its code
//! object was unloaded.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use kymograph_protos::{ColdRecorder, StrId};

use super::sys::KernelSymbol;
use crate::device::kernel::{Name, describe};

/// Kernels at most: a number that lies must not cost memory.
const MAX_KERNELS: usize = 1 << 20;

/// A kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: Name,
    /// Whether it is the runtime's own and fills memory: what HIP makes of a memset.
    pub(crate) fills: bool,
    /// Static LDS, in bytes per workgroup.
    pub(crate) shared: u32,
    /// Vector registers per work-item.
    pub(crate) vgprs: u32,
    pub(crate) accum_vgprs: u32,
    /// Scalar registers per wavefront.
    pub(crate) sgprs: u32,
}

static KERNELS: Mutex<Option<HashMap<u64, Kernel>>> = Mutex::new(None);

/// A code object registers a kernel.
///
/// # Safety
/// `symbol` is what the library passed.
pub(crate) unsafe fn register(symbol: *const KernelSymbol, recorder: &dyn ColdRecorder) {
    // SAFETY: the caller's promise.
    let symbol = unsafe { &*symbol };
    let text = match symbol.name.is_null() {
        true => b"<unknown>".as_slice(),
        // SAFETY: a C string.
        false => unsafe { CStr::from_ptr(symbol.name) }.to_bytes(),
    };
    let text = plain(text);
    let kernel = Kernel {
        name: describe(text, recorder),
        fills: text.starts_with(b"__amd_rocclr_fillBuffer"),
        shared: symbol.group_size,
        vgprs: symbol.vgprs,
        accum_vgprs: symbol.accum_vgprs,
        sgprs: symbol.sgprs,
    };
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    let kernels = kernels.get_or_insert_default();
    if kernels.len() < MAX_KERNELS {
        kernels.insert(symbol.kernel, kernel);
    }
}

/// Symbols of kernel descriptors end in `.kd` (AMDGPU backend of LLVM, "Code Object V3").
fn plain(symbol: &[u8]) -> &[u8] {
    symbol.strip_suffix(b".kd").unwrap_or(symbol)
}

/// The kernels that a reader has met, so that it takes no lock for each.
#[derive(Debug, Default)]
pub(crate) struct Known {
    kernels: HashMap<u64, Kernel>,
    last: Option<(u64, Kernel)>,
}

impl Known {
    /// The kernel of this id, if it was registered.
    pub(crate) fn get(&mut self, id: u64) -> Option<Kernel> {
        if let Some((last, kernel)) = self.last
            && last == id
        {
            return Some(kernel);
        }
        let found = self.kernels.get(&id).copied().or_else(|| {
            let kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
            let found = kernels.as_ref()?.get(&id).copied()?;
            self.kernels.insert(id, found);
            Some(found)
        })?;
        self.last = Some((id, found));
        Some(found)
    }
}

/// The name of a kernel that was not registered.
pub(crate) fn unnamed(recorder: &dyn ColdRecorder) -> Name {
    Name { short: recorder.intern_or_wait(StrId::NONE, b"<unknown>"), ..Name::default() }
}
