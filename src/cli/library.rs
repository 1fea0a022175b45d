//! Finds the `libkymograph.so` that is injected.

use super::Failure;
use super::elf;
use kymograph::Config;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const NAME: &str = "libkymograph.so";

/// The library: `KYMOGRAPH_LIBRARY`, else beside `kymo`, else where packages put it, or where
/// cargo leaves it that was asked for the program alone (`cargo run`).
pub(super) fn find(config: &Config) -> Result<PathBuf, Failure> {
    if let Some(path) = &config.library {
        return check(path).map_err(|why| {
            let path = path.display();
            Failure(format!("KYMOGRAPH_LIBRARY={path}: {why}"))
        });
    }
    let kymo = std::env::current_exe().and_then(|path| path.canonicalize())?;
    let folder = kymo.parent().unwrap_or(Path::new("/"));
    let places = ["", "../lib", "deps"].map(|place| folder.join(place).join(NAME));
    let found = places.iter().find(|path| path.exists());
    let Some(path) = found else {
        return Err(Failure(format!(
            "cannot find {NAME} in {}; put it beside kymo, or set KYMOGRAPH_LIBRARY to its path",
            folder.display()
        )));
    };
    check(path).map_err(|why| Failure(format!("{}: {why}", path.display())))
}

fn check(path: &Path) -> Result<PathBuf, String> {
    let path = path.canonicalize().map_err(|e| e.to_string())?;
    match elf::inspect(&path) {
        Ok(elf::Program::Library) => Ok(path),
        Ok(_) => Err("is not a shared library for this machine; build or install it anew".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// `path` as LD_PRELOAD can say it, so that only the C library that it is for finds it.
///
/// glibc replaces `$ORIGIN` by the folder of the program that it starts, from where enough
/// steps up lead to the root. For musl, which would end the program over a library that it
/// cannot link, that is the name of a folder that does not exist, which it does not mind.
pub(super) fn preloadable(path: &Path) -> std::io::Result<OsString> {
    // Folders around a program, at most; one step too many does no harm.
    const DEEPEST: usize = 64;
    // LD_PRELOAD separates by spaces and colons, and knows no quotes.
    let plain = !path.as_os_str().as_bytes().iter().any(|b| b" :\t\n$".contains(b));
    let path = if plain { path.to_owned() } else { link(path)? };
    let mut value = OsString::from("$ORIGIN");
    value.push("/..".repeat(DEEPEST));
    value.push(path);
    Ok(value)
}

/// A link to the library in a folder that stays, as there may be children that outlive
/// `kymo`, and that programs of other users can enter, too.
fn link(path: &Path) -> std::io::Result<PathBuf> {
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    let mut refused = std::io::ErrorKind::PermissionDenied.into();
    for parent in ["/tmp", "/var/tmp", "/dev/shm"] {
        let folder = Path::new(parent).join(format!("kymograph-library-{me}"));
        if let Err(error) = fs::DirBuilder::new().mode(0o755).create(&folder)
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            refused = error;
            continue;
        }
        // Somebody else may have made it, to have us load something else.
        let ours = |m: fs::Metadata| m.is_dir() && m.uid() == me && m.mode() & 0o022 == 0;
        if !folder.symlink_metadata().is_ok_and(ours) {
            continue;
        }
        for old in fs::read_dir(&folder)?.flatten() {
            if !old.path().exists() {
                let _ = fs::remove_file(old.path());
            }
        }
        let name = format!("libkymograph-{:08x}.so", crc32fast::hash(path.as_os_str().as_bytes()));
        let link = folder.join(name);
        if fs::read_link(&link).is_ok_and(|to| to == path) {
            return Ok(link);
        }
        let new = folder.join(format!("new-{}", std::process::id()));
        std::os::unix::fs::symlink(path, &new)?;
        fs::rename(&new, &link)?;
        return Ok(link);
    }
    Err(refused)
}
