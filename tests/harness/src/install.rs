//! Programs that tests put somewhere, and run.
//!
//! Another process writes them: a file that is open for writing cannot be run, and what this process
//! has open for writing the children of other tests have as well, until they run something else.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Copies a program.
#[track_caller]
pub fn copy(program: &Path, path: &Path) {
    assert!(Command::new("cp").args([program, path]).status().unwrap().success());
}

/// Writes a program, such as a script, that everybody may run.
#[track_caller]
pub fn write(path: &Path, program: impl AsRef<[u8]>) {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("program");
    std::fs::write(&plain, program).unwrap();
    copy(&plain, path);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}
