//! Finds CUPTI and the driver in or for this process.
//!
//! There must be one CUPTI in a process: two copies would both patch the driver's tables.
//! So the copy that the program has (PyTorch links one) comes first, whatever else is
//! configured; then the configured one; then the one that belongs to the CUDA runtime in
//! the process or, failing that, to the driver's version.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::sys::{Code, Cuda, Cupti, SUCCESS};
use crate::device::error::{Error, Result};
use crate::load::Library;

/// Sonames of the versions that are understood, newest first.
const SONAMES: [(u32, &CStr); 3] =
    [(13, c"libcupti.so.13"), (12, c"libcupti.so.12"), (11, c"libcupti.so.11.8")];
const RUNTIMES: [(u32, &CStr); 3] =
    [(13, c"libcudart.so.13"), (12, c"libcudart.so.12"), (11, c"libcudart.so.11.0")];

/// What to do about a CUPTI that cannot be used.
const OTHER: &str = "set KYMOGRAPH_CUPTI_PATH to the folder of one that fits the driver (CUDA \
                     toolkit: extras/CUPTI/lib64, or `pip install nvidia-cuda-cupti`)";

/// CUPTI, as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) cupti: Cupti,
    pub(crate) version: u32,
    pub(crate) path: Option<PathBuf>,
    /// Whether the program had it already.
    pub(crate) shared: bool,
}

/// The driver, if the process has it or may have it (`load`). Nothing of CUPTI is touched
/// without it: from 13.2 on, CUPTI crashes in its first call if there is none.
pub(crate) fn driver(load: bool) -> Option<&'static Cuda> {
    static DRIVER: OnceLock<Cuda> = OnceLock::new();
    if let Some(found) = DRIVER.get() {
        return Some(found);
    }
    const NAME: &CStr = c"libcuda.so.1";
    let library = if load { Library::load(NAME) } else { Library::present(NAME) };
    let found = Cuda::find(library?).ok()?;
    Some(DRIVER.get_or_init(|| found))
}

/// The version of the CUDA runtime in this process, unless it is a part of the program.
pub(crate) fn runtime_version() -> Option<i32> {
    let library = RUNTIMES.iter().find_map(|(_, name)| Library::present(name))?;
    let symbol = library.symbol(c"cudaRuntimeGetVersion")?;
    // SAFETY: cuda_runtime_api.h declares it so.
    let get = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut i32) -> i32>(symbol.as_ptr())
    };
    let mut version = 0;
    // SAFETY: stores a number; initialises nothing.
    (unsafe { get(&mut version) } == 0).then_some(version)
}

static PRESENT: OnceLock<Cupti> = OnceLock::new();

/// The CUPTI that the process has, without asking it anything: for calls that the program
/// makes itself.
pub(crate) fn present() -> Option<&'static Cupti> {
    if let Some(cupti) = PRESENT.get() {
        return Some(cupti);
    }
    let found = Cupti::find(in_process()?).ok()?;
    Some(PRESENT.get_or_init(|| found))
}

fn in_process() -> Option<Library> {
    let names = SONAMES.iter().map(|(_, name)| *name).chain([c"libcupti.so"]);
    names.into_iter().find_map(Library::present).or_else(mapped)
}

/// One of a version that is not understood, or loaded by a path: the program's own calls
/// must reach it all the same.
fn mapped() -> Option<Library> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.rsplit('/').next()?.starts_with("libcupti.so").then_some(path)
    })?;
    Library::present(&CString::new(path).ok()?)
}

/// CUPTI, or why there is none. What was found stays.
pub(crate) fn cupti(cuda: &Cuda, configured: Option<&Path>) -> Result<&'static Found> {
    static FOUND: OnceLock<Found> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let (library, shared) = search(cuda, configured)?;
    let path = library.path();
    let shown = path.as_deref().unwrap_or(Path::new("libcupti")).display().to_string();
    let cupti = Cupti::find(library).map_err(|function| Error::Missing {
        library: shown.clone(),
        function,
        advice: OTHER,
    })?;
    let cupti = *PRESENT.get_or_init(|| cupti);
    let mut version = 0;
    // SAFETY: stores a number.
    let result = unsafe { (cupti.version)(&mut version) };
    if result != SUCCESS {
        let why = format!("{shown} does not work here (cuptiGetVersion: {result}); {OTHER}");
        return Err(why.into());
    }
    if version < 18 {
        return Err(format!("{shown} is older than CUDA 11.8; {OTHER}").into());
    }
    Ok(FOUND.get_or_init(|| Found { cupti, version, path, shared }))
}

/// The library, and whether the process had it.
fn search(cuda: &Cuda, configured: Option<&Path>) -> Result<(Library, bool)> {
    if let Some(library) = in_process() {
        return Ok((library, true));
    }
    if let Some(path) = configured {
        let candidates: Vec<PathBuf> =
            if path.is_dir() { in_folder(path) } else { vec![path.into()] };
        let found = candidates.iter().find_map(|path| Library::load_path(path));
        return found.map(|library| (library, false)).ok_or_else(|| {
            format!("KYMOGRAPH_CUPTI_PATH={}: no CUPTI there; {OTHER}", path.display()).into()
        });
    }
    for major in majors(cuda) {
        let soname = SONAMES.iter().find(|(m, _)| *m == major).map(|(_, name)| *name);
        let Some(soname) = soname else { continue };
        let name = soname.to_string_lossy();
        let beside = runtime_folder(major).into_iter().flat_map(|f| near_runtime(&f));
        let toolkits = ["/usr/local/cuda", &format!("/usr/local/cuda-{major}")].map(PathBuf::from);
        let folders = beside.chain(toolkits.iter().flat_map(|t| in_toolkit(t)));
        let found = folders
            .map(|folder| folder.join(&*name))
            .filter(|path| path.exists())
            .find_map(|path| Library::load_path(&path))
            .or_else(|| Library::load(soname));
        if let Some(library) = found {
            return Ok((library, false));
        }
    }
    Err(format!("no libcupti.so.13, .12 or .11.8 found; {OTHER}").into())
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let names = SONAMES.iter().map(|(_, name)| name.to_string_lossy().into_owned());
    let names = names.chain(["libcupti.so".to_owned()]);
    names.map(|name| folder.join(name)).filter(|path| path.exists()).collect()
}

/// Major versions to try: the runtime's in this process, the driver's, then older ones: a
/// driver runs programs of older toolkits.
fn majors(cuda: &Cuda) -> Vec<u32> {
    let runtime =
        RUNTIMES.iter().find(|(_, name)| Library::present(name).is_some()).map(|(major, _)| *major);
    let driver = runtime.unwrap_or_else(|| {
        let mut version = 0;
        // SAFETY: stores a number; works before cuInit.
        unsafe { (cuda.driver_version)(&mut version) };
        (version / 1000) as u32
    });
    let older = SONAMES.iter().map(|(major, _)| *major).filter(|major| *major <= driver.max(11));
    let mut all: Vec<u32> = runtime.into_iter().chain(older).collect();
    let mut seen = Vec::new();
    all.retain(|major| !seen.contains(major) && (seen.push(*major), true).1);
    all
}

/// The folder of the CUDA runtime in this process.
fn runtime_folder(major: u32) -> Option<PathBuf> {
    let (_, name) = RUNTIMES.iter().find(|(m, _)| *m == major)?;
    Library::present(name)?.path()?.parent().map(Path::to_owned)
}

/// Where CUPTI lies beside a runtime: in the same folder or a sister folder (Python
/// packages), or in the toolkit around it.
fn near_runtime(folder: &Path) -> Vec<PathBuf> {
    let mut places = vec![folder.to_owned(), folder.join("../../cuda_cupti/lib")];
    places.extend(in_toolkit(&folder.join("..")));
    places.extend(in_toolkit(&folder.join("../../..")));
    places
}

fn in_toolkit(root: &Path) -> Vec<PathBuf> {
    let target = if cfg!(target_arch = "aarch64") {
        "targets/sbsa-linux/lib"
    } else {
        "targets/x86_64-linux/lib"
    };
    [target, "extras/CUPTI/lib64"].map(|part| root.join(part)).into()
}

/// Whether a call of CUPTI succeeded, or which one failed and why.
pub(crate) fn check(cupti: &Cupti, function: &'static str, result: Code) -> Result<()> {
    match result {
        SUCCESS => Ok(()),
        _ => Err(Error::call(function, describe(cupti, result))),
    }
}

/// An error of CUPTI's in words.
pub(crate) fn describe(cupti: &Cupti, result: Code) -> String {
    let mut text: *const c_char = std::ptr::null();
    if let Some(string) = cupti.result_string {
        // SAFETY: stores a pointer to a static C string, or leaves it.
        unsafe { string(result, &mut text) };
    }
    if text.is_null() {
        return format!("error {result}");
    }
    // SAFETY: as above.
    format!("{} ({result})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
}
