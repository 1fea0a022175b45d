//! Ranges around the work, by what a vendor's users annotate with: NVTX with CUDA, ROCTX with
//! HIP, and Kymograph's own scopes elsewhere. Where nothing listens, they do nothing.

use super::Vendor;
use super::load::Library;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;
type OwnPush = unsafe extern "C" fn(u32, *const c_char, *const c_void, usize);
type OwnPop = unsafe extern "C" fn();

/// How ranges begin and end.
pub(super) enum Annotate {
    /// NVTX's and ROCTX's functions, which have the same types.
    Vendors(Push, Pop),
    /// Kymograph's, with a category.
    Own(u32, OwnPush, OwnPop),
    Nobody,
}

impl Annotate {
    pub(super) fn find(vendor: Vendor) -> Annotate {
        let found = match vendor {
            Vendor::Cuda => nvtx(),
            Vendor::Hip => roctx(),
            Vendor::Xpu | Vendor::Hpu => own(),
        };
        found.unwrap_or(Annotate::Nobody)
    }

    pub(super) fn push(&self, name: &str) {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a C string, and no arguments.
        unsafe {
            match self {
                Annotate::Vendors(push, _) => {
                    push(name.as_ptr());
                }
                Annotate::Own(category, push, _) => push(*category, name.as_ptr(), ptr::null(), 0),
                Annotate::Nobody => {}
            }
        }
    }

    pub(super) fn pop(&self) {
        // SAFETY: takes nothing; something was pushed.
        unsafe {
            match self {
                Annotate::Vendors(_, pop) => {
                    pop();
                }
                Annotate::Own(_, _, pop) => pop(),
                Annotate::Nobody => {}
            }
        }
    }
}

fn own() -> Option<Annotate> {
    let process = Library::of_process();
    // SAFETY: kymograph.h declares them so.
    unsafe {
        type Category = unsafe extern "C" fn(*const c_char) -> u32;
        let category: Category = process.function(c"kymo_category_register").ok()?;
        let push = process.function(c"kymo_push_str").ok()?;
        let pop = process.function(c"kymo_pop").ok()?;
        Some(Annotate::Own(category(c"selftest".as_ptr()), push, pop))
    }
}

fn roctx() -> Option<Annotate> {
    let names = ["librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so", "libroctx64.so.4"];
    // Without one of them it may be there all the same, preloaded.
    let library = Library::load(&names).unwrap_or(Library::of_process());
    // SAFETY: roctx.h declares them so.
    unsafe {
        let push = library.function(c"roctxRangePushA").ok()?;
        let pop = library.function(c"roctxRangePop").ok()?;
        Some(Annotate::Vendors(push, pop))
    }
}

/// `NVTX_CB_MODULE_CORE`, and where its functions lie in the table.
const CORE: c_int = 1;
const PUSH: usize = 9;
const POP: usize = 11;
const SLOTS: usize = 16;
/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS: u32 = 1;

/// What a tool puts its functions into.
static TABLE: [AtomicPtr<()>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    table: unsafe extern "C" fn(c_int, *mut *const *const c_void, *mut c_uint) -> c_int,
}

/// NVTX has no library: what its header does in a program that includes it.
fn nvtx() -> Option<Annotate> {
    let path = std::env::var("NVTX_INJECTION64_PATH").ok()?;
    let library = Library::load(&[&path]).ok()?;
    type Export = unsafe extern "C" fn(u32) -> *const c_void;
    type Initialize = unsafe extern "C" fn(Export) -> c_int;
    // SAFETY: nvtxDetail/nvtxTypes.h declares it so, and the functions that it stores.
    unsafe {
        let initialize: Initialize = library.function(c"InitializeInjectionNvtx2").ok()?;
        initialize(export);
        let at = |slot: usize| {
            let function = TABLE[slot].load(Ordering::Acquire);
            (!function.is_null()).then_some(function)
        };
        let push = std::mem::transmute::<*mut (), Push>(at(PUSH)?);
        let pop = std::mem::transmute::<*mut (), Pop>(at(POP)?);
        Some(Annotate::Vendors(push, pop))
    }
}

unsafe extern "C" fn export(id: u32) -> *const c_void {
    static EXPORTED: Callbacks = Callbacks { size: size_of::<Callbacks>(), table };
    if id == CALLBACKS { (&raw const EXPORTED).cast() } else { ptr::null() }
}

unsafe extern "C" fn table(
    module: c_int,
    to: *mut *const *const c_void,
    size: *mut c_uint,
) -> c_int {
    static PLACES: OnceLock<[usize; SLOTS]> = OnceLock::new();
    if module != CORE {
        return 0;
    }
    // The first is none.
    let place = |slot: usize| if slot == 0 { 0 } else { TABLE[slot].as_ptr().expose_provenance() };
    let places = PLACES.get_or_init(|| std::array::from_fn(place));
    // SAFETY: two places for the answer.
    unsafe {
        to.write(places.as_ptr().cast());
        size.write(places.len() as c_uint);
    }
    1
}
