//! Names of threads and of the process.

use kymograph_protos::StrId;
use kymograph_protos::record::Kind;

use super::draft::Draft;
use crate::recording;

/// Names the calling thread in the trace of the running recording; does nothing while
/// none runs. Without this it has the name that the system knows.
pub fn set_thread_name(name: &str) {
    set(Kind::ThreadName, name.as_bytes());
}

/// Names this process in the trace of the running recording; does nothing while none
/// runs. Without this it is called after its command line.
pub fn set_process_name(name: &str) {
    set(Kind::ProcessName, name.as_bytes());
}

pub(crate) fn set(kind: Kind, name: &[u8]) {
    if recording::is_wanted() {
        Draft::called(kind, StrId::NONE, name).push();
    }
}
