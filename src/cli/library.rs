//! Finds the `libkymograph.so` that is injected.

use super::{Failure, carried, elf};
use kymograph::Config;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAME: &str = "libkymograph.so";

/// The library: `KYMOGRAPH_LIBRARY`, else beside `kymo`, else where packages put it, or where
/// cargo leaves it that was asked for the program alone (`cargo run`), else the one that `kymo`
/// carries.
pub(super) fn find(config: &Config) -> Result<PathBuf, Failure> {
    if let Some(path) = &config.library {
        return check(path).map_err(|why| {
            let path = path.display();
            Failure(format!("KYMOGRAPH_LIBRARY={path}: {why}"))
        });
    }
    let folder = folder_of_kymo();
    let places = ["", "../lib", "deps"].map(|place| folder.as_deref().map(|f| f.join(place)));
    let found = places.iter().flatten().map(|place| place.join(NAME)).find(|path| path.exists());
    let path = match found {
        Some(path) => path,
        None => carried::unpacked().unwrap_or_else(|| Err(nowhere(folder.as_deref())))?,
    };
    check(&path).map_err(|why| Failure(format!("{}: {why}", path.display())))
}

fn nowhere(folder: Option<&Path>) -> String {
    let folder = folder.unwrap_or(Path::new("the folder of kymo")).display();
    format!(
        "cannot find {NAME} in {folder}; put it beside kymo, or set KYMOGRAPH_LIBRARY to its path"
    )
}

/// Nothing where `/proc` is missing.
fn folder_of_kymo() -> Option<PathBuf> {
    let kymo = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    kymo.parent().map(Path::to_owned)
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
    carried::in_own_folder(|folder| {
        for old in fs::read_dir(folder)?.flatten() {
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
        Ok(link)
    })
}
