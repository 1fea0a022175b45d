//! Kineto's own configuration file, for those who want the same for Kymograph.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kymograph_backends::environment::is_privileged;

use crate::config::Config;
use crate::session;

/// Takes over what the file that `KINETO_CONFIG` names says. Returns what was wrong with it.
pub(super) fn apply(config: &mut Config) -> Vec<String> {
    let Some(wanted) = &config.kineto_config else {
        return Vec::new();
    };
    let path = path(wanted);
    let shown = path.display().to_string();
    let result = match std::fs::read(&path) {
        Ok(text) => session::apply(&text, config).map_err(|why| why.to_string()),
        Err(error) => Err(crate::error::reason(&error)),
    };
    let problems = result.unwrap_or_else(|why| vec![why]);
    problems.into_iter().map(|problem| format!("{shown}: {problem}")).collect()
}

/// Where Kineto's own configuration is, if `wanted` is `default`.
fn path(wanted: &Path) -> PathBuf {
    if wanted.as_os_str() != "default" {
        return wanted.to_owned();
    }
    // As it was when the program started: another thread may be changing it now.
    let environment = std::fs::read("/proc/self/environ").unwrap_or_default();
    let found = environment.split(|b| *b == 0).find_map(|v| v.strip_prefix(b"KINETO_CONFIG="));
    match found {
        Some(path) if !path.is_empty() && !is_privileged() => {
            PathBuf::from(OsStr::from_bytes(path))
        }
        _ => PathBuf::from("/etc/libkineto.conf"),
    }
}
