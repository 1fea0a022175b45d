//! What can go wrong before recording starts, said so that the reader knows what to do.
//!
//! Errors *while* recording are not here: they never reach the host. They are counted
//! and end up in the trace and in the summary.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why recording could not be set up. `Display` gives one line: what failed, on what
/// path, and what to do about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option is unknown or its value makes no sense.
    Option(crate::config::Problem),
    /// The output could not be created or written.
    Output {
        /// The output as it was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The output exists and is something that must not be overwritten in this way.
    Refused {
        /// The output as it was asked for.
        path: PathBuf,
        /// What is wrong with it and what to do, as the end of a sentence.
        why: &'static str,
    },
    /// The `kymo record` that this process was told of cannot be joined, or there is no place
    /// where processes could join it.
    Control {
        /// What was told (`KYMOGRAPH_CONTROL`).
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is one recording at a time in a process.
    AlreadyRecording,
    /// The socket on which the process could be asked for traces cannot be made.
    Socket {
        /// What the system said.
        source: io::Error,
    },
    /// The process is about to end.
    Ending,
    /// The buffers do not fit into memory.
    Memory {
        /// What was asked for, in bytes.
        bytes: u64,
    },
    /// A dump was asked for, of a recording that keeps nothing in memory (or has ended).
    NoFlight,
    /// The writer's thread could not be started.
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Option(problem) => write!(f, "{problem}"),
            Error::Output { path, source } => {
                write!(
                    f,
                    "cannot write the output {}: {}; {}",
                    path.display(),
                    reason(source),
                    advice(source)
                )
            }
            Error::Refused { path, why } => {
                write!(f, "will not write to {}: {why}", path.display())
            }
            Error::AlreadyRecording => {
                write!(f, "this process is being recorded already; stop that recording first")
            }
            Error::Socket { source } => write!(
                f,
                "this process cannot take requests for traces: {}; set SOCKETS to a folder that only \
                 you can enter",
                reason(source)
            ),
            Error::Ending => {
                write!(f, "this process is about to end; start the recording earlier")
            }
            Error::Memory { bytes } => {
                write!(f, "no memory for {bytes} bytes of buffers; set BUFFER to a smaller size")
            }
            Error::NoFlight => f.write_str(
                "there is no flight recorder to dump; record with `kymo record --flight 30s` or \
                 FLIGHT=30s, for example",
            ),
            Error::Thread { source } => write!(
                f,
                "cannot start the writer's thread: {}; raise the limit of threads (ulimit -u)",
                reason(source)
            ),
            Error::Control { path, source } => write!(
                f,
                "cannot join the recording of {}: {}; start the program again under \
                 `kymo record`, or unset KYMOGRAPH_CONTROL",
                path.display(),
                reason(source)
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Output { source, .. }
            | Error::Control { source, .. }
            | Error::Socket { source }
            | Error::Thread { source } => Some(source),
            _ => None,
        }
    }
}

impl From<crate::config::Problem> for Error {
    fn from(problem: crate::config::Problem) -> Self {
        Error::Option(problem)
    }
}

/// The system's message without Rust's "(os error 13)", which does not help the reader.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

/// What to do about a failure to write a file.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => "create its folder first, or choose another path",
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
            "choose a path in a folder that you may write to"
        }
        Some(libc::EISDIR) => "name a file, not a folder",
        Some(libc::ENOSPC | libc::EDQUOT) => "make room, or choose a path on another disk",
        Some(libc::ELOOP) => "with SAFE symbolic links are refused: give the real path",
        Some(libc::EWOULDBLOCK) => {
            "another program is recording into it: stop that one, or choose another path \
             (%p in the path becomes the process id)"
        }
        _ => "choose another path",
    }
}
