//! A user of PTI like Kineto: its own buffers, whichever others there are.

use super::devices::Stop;
use super::load::Library;
use std::alloc::{Layout, alloc};
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// `PTI_VIEW_DEVICE_GPU_KERNEL`, copies and sets.
const KERNEL: u32 = 1;
const KINDS: [u32; 3] = [KERNEL, 8, 9];
const BYTES: usize = 1 << 20;

static KERNELS: AtomicU64 = AtomicU64::new(0);
/// `ptiViewGetNextRecord`.
static NEXT: AtomicUsize = AtomicUsize::new(0);

type One = unsafe extern "C" fn(u32) -> c_int;
type Flush = unsafe extern "C" fn() -> c_int;
type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize);
type Complete = unsafe extern "C" fn(*mut u8, usize, usize);
type Set = unsafe extern "C" fn(Request, Complete) -> c_int;

#[derive(Clone, Copy)]
pub(super) struct Client {
    disable: One,
    flush: Flush,
}

/// Where PTI is looked for: in the folder that recordings are told of, then as a program would.
fn names() -> Vec<String> {
    let sonames = ["libpti_view.so.1", "libpti_view.so.0"];
    let folder = std::env::var_os("PTI_PATH").map(PathBuf::from);
    let told = folder.iter().flat_map(|folder| sonames.map(|name| folder.join(name)));
    let told = told.filter(|path| path.exists()).map(|path| path.display().to_string());
    told.chain(sonames.map(str::to_owned)).collect()
}

impl Client {
    /// None: there is no PTI that a program would find.
    pub(super) fn start() -> Result<Option<Client>, Stop> {
        let names = names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let Ok(library) = Library::load(&names) else { return Ok(None) };
        let failed = Stop::Failed;
        // SAFETY: pti_view.h declares them so.
        let (set, enable, client) = unsafe {
            let next: Next = library.function(c"ptiViewGetNextRecord").map_err(failed)?;
            NEXT.store(next as usize, Ordering::Release);
            let set: Set = library.function(c"ptiViewSetCallbacks").map_err(failed)?;
            let enable: One = library.function(c"ptiViewEnable").map_err(failed)?;
            let disable = library.function(c"ptiViewDisable").map_err(failed)?;
            let flush = library.function(c"ptiFlushAllViews").map_err(failed)?;
            (set, enable, Client { disable, flush })
        };
        // SAFETY: functions that live as long as the process, and kinds of records.
        let mut status = unsafe { set(request, complete) };
        for kind in KINDS {
            // SAFETY: as above.
            status |= unsafe { enable(kind) };
        }
        match status {
            0 => Ok(Some(client)),
            error => Err(Stop::Failed(format!("the program's own use of PTI: {error:#x}"))),
        }
    }

    /// How many kernels it was told of.
    pub(super) fn stop(self) -> u64 {
        // SAFETY: kinds that were enabled; all work is done.
        unsafe {
            for kind in KINDS {
                (self.disable)(kind);
            }
            (self.flush)();
        }
        KERNELS.load(Ordering::Acquire)
    }
}

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize) {
    let layout = Layout::from_size_align(BYTES, 8).unwrap_or(Layout::new::<u64>());
    // SAFETY: not of size zero; places for the answer. It is never given back: the process is
    // short.
    unsafe {
        buffer.write(alloc(layout));
        size.write(layout.size());
    }
}

unsafe extern "C" fn complete(buffer: *mut u8, _size: usize, used: usize) {
    let next = ptr::with_exposed_provenance::<c_void>(NEXT.load(Ordering::Acquire));
    // SAFETY: stored from a function of this type, before anything was enabled.
    let next = unsafe { std::mem::transmute::<*const c_void, Next>(next) };
    let mut record = ptr::null_mut();
    // SAFETY: a buffer that was completed; every record begins with its kind.
    unsafe {
        while next(buffer, used, &mut record) == 0 {
            if record.cast::<u32>().read() == KERNEL {
                KERNELS.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}
