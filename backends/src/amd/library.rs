//! Finds rocprofiler-sdk in or for this process.
//!
//! There is one copy in a process: the one that the ROCm runtime hands its tables to, which
//! is also the one that calls us. Where it did not call yet, it is the one that
//! rocprofiler-register would load.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::sys::Entry;
use crate::environment;
use crate::load::Library;

/// Names under which it is loaded, newest first; the first is what rocprofiler-register
/// asks for.
pub(crate) const SONAMES: [&CStr; 3] =
    [c"librocprofiler-sdk.so", c"librocprofiler-sdk.so.1", c"librocprofiler-sdk.so.0"];
/// Libraries of which one is in every process that uses ROCm.
const RUNTIMES: [&CStr; 6] = [
    c"libamdhip64.so.7",
    c"libamdhip64.so.6",
    c"libamdhip64.so",
    c"libhsa-runtime64.so.1",
    c"libhsa-runtime64.so",
    REGISTER,
];
pub(crate) const REGISTER: &CStr = c"librocprofiler-register.so.0";
/// Where ROCm lies by default.
const FOLDER: &str = "/opt/rocm/lib";

/// The library that has this function: the one that called us with it.
pub(crate) fn of_function(function: *const c_void) -> Option<Library> {
    // SAFETY: all zero is a valid value of it: null pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; a place to write to.
    let found = unsafe { libc::dladdr(function, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a C string of the loader's, which stays as long as the library.
    Library::present(unsafe { CStr::from_ptr(info.dli_fname) })
}

/// The copy in this process, if there is one.
pub(crate) fn present() -> Option<Library> {
    SONAMES.into_iter().find_map(Library::present)
}

/// Whether this process has a library that may use an AMD GPU.
pub(crate) fn runtime_is_there() -> bool {
    RUNTIMES.into_iter().any(|name| Library::present(name).is_some())
}

/// The copy in this process, or one that is loaded now.
pub(crate) fn load() -> Option<Library> {
    present().or_else(|| {
        let named = SONAMES.into_iter().find_map(Library::load);
        let beside = || near().into_iter().find_map(|path| Library::load_path(&path));
        named.or_else(beside)
    })
}

/// Where it lies beside what the process has of ROCm, or by default.
fn near() -> Vec<PathBuf> {
    let beside = RUNTIMES.into_iter().filter_map(|name| Library::present(name)?.path());
    let folders = beside.filter_map(|path| Some(path.parent()?.to_owned()));
    let folders = folders.chain([PathBuf::from(FOLDER)]);
    let name = |name: &CStr| name.to_string_lossy().into_owned();
    folders
        .flat_map(|folder| SONAMES.map(|soname| folder.join(name(soname))))
        .filter(|path| path.exists())
        .collect()
}

/// Whether rocprofiler-register, which looks for it in the same places, would find it. If it
/// does not though it sees a tool in the process (our `rocprofiler_configure` makes it see
/// one), it aborts the process (rocprofiler_register.cpp, `rocp_reg_scan_for_tools`).
pub fn can_be_loaded() -> bool {
    const ENTRY: &CStr = c"rocprofiler_set_api_table";
    // SAFETY: a C string; null stands for all that the process shares.
    if !unsafe { libc::dlsym(libc::RTLD_DEFAULT, ENTRY.as_ptr()) }.is_null() {
        return true;
    }
    let configured = environment::variable("ROCPROFILER_REGISTER_LIBRARY");
    let wanted = configured.filter(|path| !path.is_empty());
    let wanted = wanted.map_or_else(|| PathBuf::from("librocprofiler-sdk.so"), PathBuf::from);
    let beside = Library::present(REGISTER).and_then(Library::path);
    let beside = beside.and_then(|path| Some(path.parent()?.join(wanted.file_name()?)));
    let name = CString::new(wanted.as_os_str().as_bytes()).ok();
    let found = name.and_then(|name| Library::present(&name).or_else(|| Library::load(&name)));
    let found = found.or_else(|| beside.and_then(|path| Library::load_path(&path)));
    found.is_some_and(|library| library.symbol(ENTRY).is_some())
}

/// The version, as the library itself writes it.
pub(crate) fn version(entry: &Entry) -> Option<u32> {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: stores three numbers.
    let result = unsafe { (entry.version)(&mut major, &mut minor, &mut patch) };
    (result == 0).then_some(10_000 * major + 100 * minor + patch)
}

/// A version as people write it.
pub(crate) fn shown(version: u32) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// What of the library is shown to people.
pub(crate) fn shown_path(library: Library) -> String {
    let path = library.path();
    path.as_deref().unwrap_or(Path::new("librocprofiler-sdk")).display().to_string()
}
