//! Finds the `libkymograph.so` that is injected.

use super::Refusal;
use super::elf;
use kymograph::Config;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAME: &str = "libkymograph.so";

/// The library: `KYMOGRAPH_LIBRARY`, else beside `kymo`, else where packages put it, or where
/// cargo leaves it that was asked for the program alone (`cargo run`).
pub(super) fn find(config: &Config) -> Result<PathBuf, Refusal> {
    if let Some(path) = &config.library {
        return check(path).map_err(|why| {
            let path = path.display();
            Refusal(format!("KYMOGRAPH_LIBRARY={path}: {why}"))
        });
    }
    let kymo = std::env::current_exe().and_then(|path| path.canonicalize())?;
    let folder = kymo.parent().unwrap_or(Path::new("/"));
    let places = ["", "../lib", "deps"].map(|place| folder.join(place).join(NAME));
    let found = places.iter().find(|path| path.exists());
    let Some(path) = found else {
        return Err(Refusal(format!(
            "cannot find {NAME} in {}; put it beside kymo, or set KYMOGRAPH_LIBRARY to its path",
            folder.display()
        )));
    };
    check(path).map_err(|why| Refusal(format!("{}: {why}", path.display())))
}

fn check(path: &Path) -> Result<PathBuf, String> {
    let path = path.canonicalize().map_err(|e| e.to_string())?;
    match elf::inspect(&path) {
        Ok(elf::Program::Library) => Ok(path),
        Ok(_) => Err("is not a shared library for this machine; build or install it anew".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// `path` as LD_PRELOAD can say it, which separates by spaces and colons: a link in
/// `folder` if need be.
pub(super) fn preloadable(path: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    if !path.as_os_str().as_bytes().iter().any(|b| b" :\t\n".contains(b)) {
        return Ok(path.to_owned());
    }
    let link = folder.join(NAME);
    std::os::unix::fs::symlink(path, &link)?;
    Ok(link)
}
