//! The vendor's own profiler as a second one, as a program that profiles itself has it: CUPTI or
//! PTI in the process that does the work, rocprofv3's tool beside it.

use super::devices::Stop;
use super::load::Library;
use super::{Vendor, pti};
use std::alloc::{Layout, alloc};
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// rocprofv3's tool, where ROCm is.
const ROCPROF_TOOL: &str = "lib/rocprofiler-sdk/librocprofiler-sdk-tool.so";

fn rocprof_tool() -> Option<PathBuf> {
    let root =
        std::env::var_os("ROCM_PATH").map_or_else(|| PathBuf::from("/opt/rocm"), PathBuf::from);
    Some(root.join(ROCPROF_TOOL)).filter(|path| path.exists())
}

/// Whether there is one that can be used here.
pub(super) fn exists(vendor: Vendor) -> bool {
    match vendor {
        Vendor::Cuda | Vendor::Xpu => true,
        Vendor::Hip => rocprof_tool().is_some(),
        Vendor::Hpu => false,
    }
}

/// Gets a command ready that shall have it.
pub(super) fn prepare(vendor: Vendor, wanted: bool, command: &mut Command) {
    if let (Vendor::Hip, true, Some(tool)) = (vendor, wanted, rocprof_tool()) {
        command.env("ROCP_TOOL_LIBRARIES", tool);
        command.env("ROCPROF_KERNEL_TRACE", "1").env("ROCPROF_OUTPUT_PATH", "/dev/null");
    }
}

/// A user of CUPTI like Kineto: its own buffers, whichever others there are; or one of PTI.
pub(super) enum Client {
    Cupti(Cupti),
    Pti(pti::Client),
}

#[derive(Clone, Copy)]
pub(super) struct Cupti {
    enable: unsafe extern "C" fn(u32) -> c_int,
    disable: unsafe extern "C" fn(u32) -> c_int,
    flush: unsafe extern "C" fn(u32) -> c_int,
}

/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`, copies and sets.
const KERNEL: u32 = 10;
const KINDS: [u32; 3] = [KERNEL, 1, 2];
const BYTES: usize = 1 << 20;

static KERNELS: AtomicU64 = AtomicU64::new(0);
/// `cuptiActivityGetNextRecord`.
static NEXT: AtomicUsize = AtomicUsize::new(0);

type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Where CUPTI is looked for: in the folder that recordings are told of, then as a program
/// would.
fn names() -> Vec<String> {
    let sonames = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"];
    let told = std::env::var_os("KYMOGRAPH_CUPTI_PATH").map(PathBuf::from);
    let folder = told.as_deref().map(|path| if path.is_dir() { path } else { parent(path) });
    let in_folder = folder.into_iter().flat_map(|folder| sonames.map(|name| folder.join(name)));
    let in_folder = in_folder.filter(|path| path.exists()).map(|path| path.display().to_string());
    in_folder.chain(sonames.map(str::to_owned)).collect()
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

impl Client {
    pub(super) fn start(vendor: Vendor) -> Result<Option<Client>, Stop> {
        match vendor {
            Vendor::Cuda => {}
            Vendor::Xpu => return Ok(pti::Client::start()?.map(Client::Pti)),
            Vendor::Hip | Vendor::Hpu => return Ok(None),
        }
        let names = names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let library = Library::load(&names).map_err(Stop::Failed)?;
        let failed = Stop::Failed;
        type Register = unsafe extern "C" fn(Request, Complete) -> c_int;
        // SAFETY: cupti_activity.h declares them so; the functions live as long as the process.
        unsafe {
            let next: Next = library.function(c"cuptiActivityGetNextRecord").map_err(failed)?;
            NEXT.store(next as usize, Ordering::Release);
            let register: Register =
                library.function(c"cuptiActivityRegisterCallbacks").map_err(failed)?;
            let cupti = Cupti {
                enable: library.function(c"cuptiActivityEnable").map_err(failed)?,
                disable: library.function(c"cuptiActivityDisable").map_err(failed)?,
                flush: library.function(c"cuptiActivityFlushAll").map_err(failed)?,
            };
            let mut status = register(request, complete);
            for kind in KINDS {
                status |= (cupti.enable)(kind);
            }
            match status {
                0 => Ok(Some(Client::Cupti(cupti))),
                error => Err(Stop::Failed(format!("the program's own use of CUPTI: {error}"))),
            }
        }
    }

    /// How many kernels it was told of.
    pub(super) fn stop(self) -> u64 {
        let cupti = match self {
            Client::Cupti(cupti) => cupti,
            Client::Pti(pti) => return pti.stop(),
        };
        for kind in KINDS {
            // SAFETY: a kind that was enabled.
            unsafe { (cupti.disable)(kind) };
        }
        // SAFETY: this is none of CUPTI's callbacks; all work is done.
        unsafe { (cupti.flush)(1) };
        KERNELS.load(Ordering::Acquire)
    }
}

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let layout = Layout::from_size_align(BYTES, 8).unwrap_or(Layout::new::<u64>());
    // SAFETY: not of size zero; places for the answer. It is never given back: the process is
    // short.
    unsafe {
        buffer.write(alloc(layout));
        size.write(layout.size());
        most.write(0);
    }
}

unsafe extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let next = ptr::with_exposed_provenance::<c_void>(NEXT.load(Ordering::Acquire));
    // SAFETY: stored from a function of this type, before anything was enabled.
    let next = unsafe { std::mem::transmute::<*const c_void, Next>(next) };
    let mut record = ptr::null_mut();
    // SAFETY: a buffer that was completed; every record begins with its kind.
    unsafe {
        while next(buffer, valid, &mut record) == 0 {
            if record.cast::<u32>().read() == KERNEL {
                KERNELS.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}
