//! Requests to convert a finished trace to JSON.
//!
//! A traced process writes Perfetto's format and nothing else: the converters belong to the half
//! that is not linked into the program. The process leaves a request in a folder, and the
//! `kymo record --wait` that started it carries it out. A request is a file of its own: the path
//! of the trace, a NUL, and the path of the JSON.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest note: two paths.
const MAX_LENGTH: usize = 2 * libc::PATH_MAX as usize;
/// The end of a note's name while it is written.
const UNFINISHED: &str = "new";

/// A request to convert one trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conversion {
    /// The trace, which is finished.
    pub trace: PathBuf,
    /// Where the JSON goes.
    pub json: PathBuf,
}

impl Conversion {
    /// Notes it in `folder`.
    ///
    /// # Errors
    /// What the system says.
    pub fn note(&self, folder: &Path) -> io::Result<()> {
        static NOTES: AtomicU64 = AtomicU64::new(0);
        let number = NOTES.fetch_add(1, Ordering::Relaxed);
        let name = folder.join(format!("{}-{number}", std::process::id()));
        let text = [self.trace.as_os_str().as_bytes(), b"\0", self.json.as_os_str().as_bytes()];
        let unfinished = name.with_extension(UNFINISHED);
        fs::write(&unfinished, text.concat())?;
        fs::rename(unfinished, name)
    }

    /// Takes all notes out of `folder`.
    pub fn take_all(folder: &Path) -> Vec<Conversion> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let finished = paths.filter(|path| path.extension().is_none());
        finished.filter_map(|path| Conversion::take(&path)).collect()
    }

    fn take(path: &Path) -> Option<Conversion> {
        let text = fs::read(path);
        fs::remove_file(path).ok()?;
        let text = text.ok().filter(|text| text.len() < MAX_LENGTH)?;
        let nul = text.iter().position(|byte| *byte == 0)?;
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        Some(Conversion { trace: path(&text[..nul]), json: path(&text[nul + 1..]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let conversion = |n: u32| Conversion {
            trace: format!("/tmp/{n}=\n.pftrace").into(),
            json: OsStr::from_bytes(b"/tmp/\xff.json").into(),
        };
        conversion(1).note(folder.path()).unwrap();
        conversion(2).note(folder.path()).unwrap();
        fs::write(folder.path().join("nonsense"), "no NUL").unwrap();
        fs::write(folder.path().join("4711-1.new"), "half a no").unwrap();
        let mut taken = Conversion::take_all(folder.path());
        taken.sort_by(|a, b| a.trace.cmp(&b.trace));
        assert_eq!(taken, [conversion(1), conversion(2)]);
        assert_eq!(Conversion::take_all(folder.path()), []);
        assert_eq!(Conversion::take_all(Path::new("/no/such/folder")), []);
        let missing = conversion(3).note(Path::new("/no/such/folder"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
