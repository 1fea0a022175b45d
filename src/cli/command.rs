//! The command: where it is, and what it is started with.

use super::Failure;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The file that `name` stands for, looked up as `execvp` does.
pub(super) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let shown = name.display();
    if name.as_bytes().contains(&b'/') {
        return match executable(Path::new(name)) {
            Ok(()) => Ok(name.into()),
            Err(why) => Err(Failure(format!("cannot run {shown}: {why}"))),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut found_but = None;
    for folder in std::env::split_paths(&path) {
        // An empty entry is the current folder.
        let candidate = Path::new(".").join(folder).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(why) if candidate.is_file() => found_but = Some((candidate, why)),
            Err(_) => {}
        }
    }
    Err(Failure(match found_but {
        Some((candidate, why)) => format!("cannot run {}: {why}", candidate.display()),
        None if Path::new(name).is_file() => format!(
            "no command {shown} in PATH; for the file in this folder say ./{shown}, or name \
             its interpreter"
        ),
        None if name.is_empty() => "the command is empty; name a program to run".to_owned(),
        None => format!("no command {shown} in PATH; check its spelling, or give its path"),
    }))
}

fn executable(path: &Path) -> Result<(), String> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the path".to_owned(),
        _ => error.to_string(),
    })?;
    if metadata.is_dir() {
        return Err("it is a folder; name a program".to_owned());
    }
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: `name` is a C string that outlives the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(format!(
            "it is not executable; chmod +x {}, or name its interpreter",
            path.display()
        )),
    }
}

/// The environment of the command: that of `kymo`, entry by entry and in its order, with
/// some entries changed and some added at the end.
pub(super) struct Environment {
    entries: Vec<OsString>,
}

impl Environment {
    /// As `kymo` got it, including what is no `NAME=value`.
    pub(super) fn inherited() -> Environment {
        unsafe extern "C" {
            static environ: *const *const libc::c_char;
        }
        let mut entries = Vec::new();
        // SAFETY: `environ` is null or a null-terminated array of C strings, and nothing
        // in this program, which has one thread, changes it.
        unsafe {
            let mut next = environ;
            while !next.is_null() && !(*next).is_null() {
                let entry = std::ffi::CStr::from_ptr(*next).to_bytes();
                entries.push(OsString::from_vec(entry.to_vec()));
                next = next.add(1);
            }
        }
        Environment { entries }
    }

    /// The value of `name`.
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.entries.iter().find_map(|entry| value(entry, name))
    }

    /// Changes or adds `name`.
    pub(super) fn set(&mut self, name: &str, new: impl AsRef<OsStr>) {
        let mut entry = OsString::from(name);
        entry.push("=");
        entry.push(new);
        let old = self.entries.iter_mut().find(|e| value(e, name).is_some());
        match old {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    /// Changes or adds all of `settings`.
    pub(super) fn extend(&mut self, settings: &BTreeMap<&'static str, OsString>) {
        for (name, value) in settings {
            self.set(name, value);
        }
    }

    /// For `exec`.
    pub(super) fn into_c(self) -> Vec<CString> {
        let entries = self.entries.into_iter();
        // No entry has a NUL: they were C strings, or made from arguments, which were.
        entries.filter_map(|e| CString::new(e.into_vec()).ok()).collect()
    }
}

fn value<'e>(entry: &'e OsStr, name: &str) -> Option<&'e OsStr> {
    let rest = entry.as_bytes().strip_prefix(name.as_bytes())?;
    rest.strip_prefix(b"=").map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_places() {
        let mut environment =
            Environment { entries: vec!["B=1".into(), "A=x=y".into(), "odd".into()] };
        environment.set("B", "2");
        environment.set("C", "3");
        assert_eq!(environment.get("A"), Some(OsStr::new("x=y")));
        assert_eq!(environment.get("od"), None);
        assert_eq!(environment.entries, ["B=2", "A=x=y", "odd", "C=3"]);
    }
}
