//! Finds PTI in or for this process.
//!
//! The copy that the program has comes first, whatever else is configured: two would both
//! subscribe to SYCL. Then the configured one, then the one beside SYCL's runtime (Python
//! packages put both in one folder), then wherever the loader looks.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::sys::{Pti, Version};
use crate::device::error::{Error, Result};
use crate::load::Library;

/// Sonames of the versions that are understood, newest first.
const SONAMES: [&CStr; 3] = [c"libpti_view.so.1", c"libpti_view.so.0", c"libpti_view.so"];
/// SYCL's runtime, newest first.
const SYCL: [&CStr; 4] = [c"libsycl.so.9", c"libsycl.so.8", c"libsycl.so.7", c"libsycl.so"];
/// Older versions have other records (pti_view.h of 0.10 and 0.11).
const OLDEST: Version = Version { major: 0, minor: 12, patch: 0 };
/// Whether records of a later one only grew at their ends is not known yet.
const NEWEST_MAJOR: u32 = 1;

/// PTI, as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pti: Pti,
    pub(crate) version: Version,
    pub(crate) path: Option<PathBuf>,
    /// Whether the program had it already.
    pub(crate) shared: bool,
}

/// Whether the process has PTI.
pub(crate) fn is_present() -> bool {
    SONAMES.iter().any(|name| Library::present(name).is_some())
}

/// Whether the process has SYCL's runtime.
pub(crate) fn uses_sycl() -> bool {
    SYCL.iter().any(|name| Library::present(name).is_some())
}

/// PTI, or why there is none. What was found stays. Asks it nothing but its version, which
/// works without a device.
pub(crate) fn pti(configured: Option<&Path>) -> Result<&'static Found> {
    static FOUND: OnceLock<Found> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let (library, shared) = search(configured)?;
    let path = library.path();
    let shown = path.as_deref().unwrap_or(Path::new("libpti_view")).display().to_string();
    let version = version(library).ok_or_else(|| Error::missing(&*shown, c"ptiVersion"))?;
    let Version { major, minor, patch } = version;
    if version < OLDEST {
        return Err(format!(
            "{shown} is PTI {major}.{minor}.{patch}; 0.12 is the oldest one \
                            that can be used: pip install -U intel-pti"
        )
        .into());
    }
    if major > NEWEST_MAJOR {
        return Err(format!(
            "{shown} is PTI {major}.{minor}.{patch}, which is not known yet: \
                            install intel-pti 1"
        )
        .into());
    }
    let pti = Pti::find(library).map_err(|function| Error::missing(shown, function))?;
    Ok(FOUND.get_or_init(|| Found { pti, version, path, shared }))
}

fn version(library: Library) -> Option<Version> {
    let function = library.symbol(c"ptiVersion")?;
    // SAFETY: declared so in pti_version.h; returns a struct of three numbers.
    unsafe {
        let version = std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn() -> Version>(
            function.as_ptr(),
        );
        Some(version())
    }
}

/// The library, and whether the process had it.
fn search(configured: Option<&Path>) -> Result<(Library, bool)> {
    if let Some(library) = SONAMES.iter().find_map(|name| Library::present(name)) {
        return Ok((library, true));
    }
    if let Some(path) = configured {
        let found = if path.is_dir() { in_folder(path) } else { Library::load_path(path) };
        return found
            .map(|library| (library, false))
            .ok_or_else(|| format!("PTI_PATH={}: no libpti_view.so there", path.display()).into());
    }
    let beside = SYCL.iter().find_map(|name| Library::present(name)?.path());
    let folder = beside.as_deref().and_then(Path::parent).and_then(in_folder);
    folder
        .or_else(|| SONAMES.iter().find_map(|name| Library::load(name)))
        .map(|library| (library, false))
        .ok_or_else(|| {
            "no libpti_view.so.1 or .0 found: pip install intel-pti, or set PTI_PATH to its \
             folder"
                .into()
        })
}

fn in_folder(folder: &Path) -> Option<Library> {
    let names = SONAMES.iter().map(|name| folder.join(&*name.to_string_lossy()));
    names.filter(|path| path.exists()).find_map(|path| Library::load_path(&path))
}
