//! As much of NVTX as two functions take: what its header does in a program that includes
//! it (`nvtxInit.h`, `nvtxTypes.h`).

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{load, symbol};

const CALLBACKS: u32 = 1;
const CORE: c_int = 1;
const PUSH_A: usize = 9;
const POP: usize = 11;

static SLOTS: [AtomicPtr<()>; 16] = [const { AtomicPtr::new(ptr::null_mut()) }; 16];

#[repr(C)]
struct Callbacks {
    size: usize,
    module: unsafe extern "C" fn(c_int, *mut *const *const c_void, *mut c_uint) -> c_int,
}

unsafe extern "C" fn module(
    id: c_int,
    table: *mut *const *const c_void,
    size: *mut c_uint,
) -> c_int {
    static TABLE: OnceLock<[usize; 16]> = OnceLock::new();
    if id != CORE {
        return 0;
    }
    let addresses = TABLE.get_or_init(|| {
        std::array::from_fn(|i| if i == 0 { 0 } else { SLOTS[i].as_ptr().expose_provenance() })
    });
    // SAFETY: both are the tool's, for the answer.
    unsafe {
        table.write(addresses.as_ptr().cast());
        size.write(addresses.len() as c_uint);
    }
    1
}

unsafe extern "C" fn export_table(id: u32) -> *const c_void {
    static TABLE: Callbacks = Callbacks { size: size_of::<Callbacks>(), module };
    if id == CALLBACKS { (&raw const TABLE).cast() } else { ptr::null() }
}

fn slot(index: usize) -> Option<*mut ()> {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(initialize);
    let function = SLOTS[index].load(Ordering::Acquire);
    (!function.is_null()).then_some(function)
}

fn initialize() {
    let Some(path) = std::env::var_os("NVTX_INJECTION64_PATH") else {
        return;
    };
    let Some(library) = CString::new(path.into_encoded_bytes()).ok().and_then(|path| load(&path))
    else {
        return;
    };
    type Initialize = unsafe extern "C" fn(unsafe extern "C" fn(u32) -> *const c_void) -> c_int;
    // SAFETY: the tools' side of NVTX declares it so.
    let initialize: Option<Initialize> = unsafe { symbol(library, c"InitializeInjectionNvtx2") };
    if let Some(initialize) = initialize {
        // SAFETY: a function that lives as long as the program.
        unsafe { initialize(export_table) };
    }
}

pub(crate) fn push(name: &CStr) {
    if let Some(function) = slot(PUSH_A) {
        type Push = unsafe extern "C" fn(*const c_char) -> c_int;
        // SAFETY: `nvtxRangePushA`.
        let push = unsafe { std::mem::transmute::<*mut (), Push>(function) };
        // SAFETY: a string.
        unsafe { push(name.as_ptr()) };
    }
}

pub(crate) fn pop() {
    if let Some(function) = slot(POP) {
        // SAFETY: `nvtxRangePop`.
        let pop =
            unsafe { std::mem::transmute::<*mut (), unsafe extern "C" fn() -> c_int>(function) };
        // SAFETY: it takes nothing.
        unsafe { pop() };
    }
}
