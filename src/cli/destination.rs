//! Where the output is sent while it is written.

use super::post::{Connection, Server};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A place that takes a trace from its start to its end, and may be lost in between.
#[derive(Debug)]
pub(super) enum Destination {
    /// A trace processor.
    Server(Server),
    /// A pipe somewhere in the file system, or a file.
    File(PathBuf),
}

/// A destination that can be reached.
#[derive(Debug)]
pub(super) enum Reached {
    Server(Connection),
    File(File),
}

impl Destination {
    /// What people call it.
    pub(super) fn name(&self) -> String {
        match self {
            Destination::Server(server) => format!("the trace processor at {}", server.url()),
            Destination::File(path) => path.display().to_string(),
        }
    }

    /// Reaches it. What it may have of an earlier attempt, it forgets.
    pub(super) fn reach(&self) -> io::Result<Reached> {
        match self {
            Destination::Server(server) => {
                let mut connection = server.connect()?;
                // One that did not die finishes what it has; the next byte begins anew.
                connection.post("/notify_eof", &[])?;
                Ok(Reached::Server(connection))
            }
            Destination::File(path) => open(path).map(Reached::File),
        }
    }
}

/// Opens a pipe that has a reader, or truncates a file.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Without a reader a pipe cannot be opened then, instead of waiting for one.
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("no process reads it"),
        _ => error,
    })?;
    // SAFETY: no pointers; a descriptor of our own.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: as above. From here on a slow reader is waited for.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Reached {
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Reached::File(file) => file.write_all(bytes),
            Reached::Server(connection) => {
                let answer = connection.post("/parse", bytes)?;
                complaint(&answer).map_or(Ok(()), |why| Err(io::Error::other(why)))
            }
        }
    }

    /// That was all.
    pub(super) fn end(&mut self) -> io::Result<()> {
        match self {
            Reached::File(_) => Ok(()),
            Reached::Server(connection) => connection.post("/notify_eof", &[]).map(drop),
        }
    }
}

/// The `error` of an `AppendTraceDataResult` (field 2), which a server answers with.
fn complaint(answer: &[u8]) -> Option<String> {
    let mut rest = answer;
    // `total_bytes_parsed` (field 1) is a varint.
    if rest.first() == Some(&0x08) {
        let end = rest[1..].iter().position(|byte| byte & 0x80 == 0)?;
        rest = &rest[end + 2..];
    }
    // Its length, one byte or two; the text goes on to the end.
    let text = rest.strip_prefix(&[0x12])?;
    let start = text.iter().position(|byte| byte & 0x80 == 0)? + 1;
    Some(String::from_utf8_lossy(&text[start..]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn what_a_server_complains_of() {
        assert_eq!(complaint(b""), None);
        assert_eq!(complaint(b"\x08\x90\x4e"), None);
        assert_eq!(complaint(b"\x12\x03bad").as_deref(), Some("bad"));
        assert_eq!(complaint(b"\x08\x90\x4e\x12\x03bad").as_deref(), Some("bad"));
        assert_eq!(complaint(b"\x08\x90"), None);
    }
}
