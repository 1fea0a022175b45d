//! Names of threads and of the process.

use kymograph_protos::StrId;
use kymograph_protos::record::Kind;

use super::draft::Draft;
use crate::control::lifecycle;
use crate::recorder::armed::armed;
#[cfg(feature = "inject")]
use crate::recording;

/// Names the calling thread in the trace of the running recording, and in those that others
/// ask for later ([`crate::control::arm`]); does nothing else. Without this it has the name
/// that the system knows.
pub fn set_thread_name(name: &str) {
    set(Kind::ThreadName, name.as_bytes());
}

/// As [`set_thread_name`], of this process. Without this it is called after its command
/// line.
pub fn set_process_name(name: &str) {
    set(Kind::ProcessName, name.as_bytes());
}

pub(crate) fn set(kind: Kind, name: &[u8]) {
    // Traces that are requested later show it, too.
    if lifecycle::start_if_due() || armed().is_some() {
        Draft::called(kind, StrId::NONE, name).push();
    }
}

/// Names another thread, or this one, in the trace of the running recording. Starts none.
#[cfg(feature = "inject")]
pub(crate) fn rename(tid: u32, name: &[u8]) {
    if recording::is_running() {
        let mut draft = Draft::called(Kind::ThreadName, StrId::NONE, name);
        draft.thread(tid);
        draft.push();
    }
}
