//! Where what was typed is remembered.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The file, in a folder that is there, or none. Folders that are made are for their owner alone;
/// the editor makes the file so.
pub fn file() -> Option<PathBuf> {
    let state = state(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))?;
    let folder = state.join("kymograph");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("query_history"))
}

/// Where programs keep what they remember; a path that is not absolute counts as none.
fn state(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    state.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".local/state")))
}
