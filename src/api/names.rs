//! Names of threads and of the process.

use kymograph_protos::record::{Kind, Record};
use kymograph_protos::{Recorder, StrId};

use crate::recorder::PIPELINE;
use crate::recording::Recording;
use crate::{clock, lifecycle};

/// Names the calling thread in the trace. Without this it has the name that the system
/// knows.
pub fn set_thread_name(name: &str) {
    set(Kind::ThreadName, name);
}

/// Names this process in the trace. Without this it is called after its command line.
pub fn set_process_name(name: &str) {
    set(Kind::ProcessName, name);
}

fn set(kind: Kind, name: &str) {
    // In a forked child this may be the first thing that it says.
    lifecycle::before_first_event();
    if Recording::is_running() {
        let site = PIPELINE.intern(StrId::NONE, name.as_bytes());
        let head = Record { time: clock::ticks(), site, kind: kind as u8, ..Record::default() };
        let text: &[u8] = if site.is_none() { name.as_bytes() } else { &[] };
        PIPELINE.push_named(head, &[], text);
    }
}
