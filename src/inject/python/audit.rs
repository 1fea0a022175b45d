//! An audit hook of Python's that is added before the interpreter exists, and survives it.
//!
//! Python keeps its hooks in a list, whose entries it allocates with the allocator of the
//! moment (`PyMem_RawMalloc`), and frees them with the one that it has when it ends. These
//! are two for a hook that is added first of all, if the program runs with `-X dev` or
//! `PYTHONMALLOC=debug`: it would crash at its end. So the entry comes from here, and an
//! allocator that leaves it alone takes over for the moment in which it is freed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::find;
use crate::guard::guard;

/// `Py_AuditHookFunction` of Python's sysmodule.h.
pub(super) type Hook = unsafe extern "C" fn(*const c_char, *mut c_void, *mut c_void) -> c_int;

/// `PYMEM_DOMAIN_RAW` of Python's pymem.h.
const RAW: c_int = 0;

/// The event at the end, before the entries are freed.
const CLEAR: &CStr = c"cpython._PySys_ClearAuditHooks";

/// `PyMemAllocatorEx` of Python's pymem.h.
#[derive(Clone, Copy)]
#[repr(C)]
struct Allocator {
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

const _: () = assert!(size_of::<Allocator>() == 40);

// SAFETY: only Python looks behind `context`, with whatever locks it needs.
unsafe impl Send for Allocator {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

type Exchange = unsafe extern "C" fn(c_int, *mut Allocator);

/// Memory for one entry of the list (three words in all versions) and to spare.
type Entry = [u128; 4];

static ENTRY: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());
/// Python's own allocator, while the one of this file stands in for it at the end.
static THEIRS: OnceLock<Allocator> = OnceLock::new();

/// Adds a hook. Nothing is added if the interpreter exists already, or is none.
///
/// # Safety
/// No other thread runs, and `hook` behaves as Python expects of a hook.
pub(super) unsafe fn add(hook: Hook) -> Option<()> {
    // SAFETY: the functions of these names have these types in Python from 3.8 on.
    let (is_initialized, add_hook, get, set) = unsafe {
        (
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(find(&[
                c"Py_IsInitialized",
            ])?),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Hook, *mut c_void) -> c_int>(
                find(&[c"PySys_AddAuditHook"])?,
            ),
            exchange(c"PyMem_GetAllocator")?,
            exchange(c"PyMem_SetAllocator")?,
        )
    };
    // SAFETY: these may be called before the interpreter is initialised, and there is no
    // other thread.
    unsafe {
        if is_initialized() != 0 {
            // We were not preloaded, and do not hold the interpreter's lock.
            return None;
        }
        let mut before = std::mem::MaybeUninit::<Allocator>::uninit();
        get(RAW, before.as_mut_ptr());
        let mut before = before.assume_init();
        ENTRY.store(Box::into_raw(Box::new([0; 4])), Ordering::Release);
        set(RAW, &mut Allocator { malloc: the_entry, ..before });
        let added = add_hook(hook, std::ptr::null_mut());
        set(RAW, &mut before);
        (added == 0).then_some(())
    }
}

/// Adds a hook to an interpreter that runs; none is added if one that is there objects.
///
/// # Safety
/// The interpreter's lock is held, and `hook` behaves as Python expects of a hook.
pub(super) unsafe fn add_late(hook: Hook) -> Option<()> {
    // SAFETY: the functions of these names have these types in Python from 3.8 on, and may be
    // called with the lock.
    unsafe {
        let add_hook = std::mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(Hook, *mut c_void) -> c_int,
        >(find(&[c"PySys_AddAuditHook"])?);
        let clear =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(find(&[c"PyErr_Clear"])?);
        if add_hook(hook, std::ptr::null_mut()) == 0 {
            return Some(());
        }
        clear();
    }
    None
}

/// What the hook has to do at every event.
///
/// # Safety
/// `event` is a C string, and the interpreter's lock is held.
pub(super) unsafe fn observe(event: &CStr) {
    if event != CLEAR || ENTRY.load(Ordering::Acquire).is_null() {
        return;
    }
    let (Some(get), Some(set)) = (exchange(c"PyMem_GetAllocator"), exchange(c"PyMem_SetAllocator"))
    else {
        return;
    };
    // SAFETY: the functions of these names do this. The context stays: another thread that
    // allocates at this moment may see old and new functions mixed, and all of them work
    // with it.
    unsafe {
        let mut theirs = std::mem::MaybeUninit::<Allocator>::uninit();
        get(RAW, theirs.as_mut_ptr());
        let theirs = theirs.assume_init();
        if THEIRS.set(theirs).is_ok() {
            set(RAW, &mut Allocator { free: free_but_the_entry, ..theirs });
        }
    }
}

fn exchange(name: &CStr) -> Option<Exchange> {
    // SAFETY: both functions that this is called for have this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, Exchange>(find(&[name])?) })
}

/// `malloc` for the entry.
unsafe extern "C" fn the_entry(_: *mut c_void, size: usize) -> *mut c_void {
    // Null, "no memory", if an entry is larger than any version's.
    let fits = size <= size_of::<Entry>();
    if fits { ENTRY.load(Ordering::Acquire).cast() } else { std::ptr::null_mut() }
}

/// `free`, when the entries are freed. The entry is never freed, and Python's allocator
/// comes back after it.
unsafe extern "C" fn free_but_the_entry(context: *mut c_void, block: *mut c_void) {
    guard((), || {
        let Some(theirs) = THEIRS.get() else {
            return;
        };
        if block != ENTRY.load(Ordering::Acquire).cast() {
            // SAFETY: the caller's own arguments.
            unsafe { (theirs.free)(context, block) };
        } else if let Some(set) = exchange(c"PyMem_SetAllocator") {
            // SAFETY: as in `observe`.
            unsafe { set(RAW, &mut { *theirs }) };
        }
    });
}
