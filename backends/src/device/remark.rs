//! What a backend says about the recording itself: facts, and why something is missing.

use super::names::Names;
use kymograph_protos::{ArgType, ColdRecorder, Kind, Record, StrId};

/// Reports that the activities of a vendor are not recorded: on this thread's track, in the
/// trace's metadata (`KEY.PID.not_recorded`), and to `kymo`.
pub(crate) fn not_recorded(recorder: &dyn ColdRecorder, names: Names, why: &str) {
    instant(recorder, Kind::Note, &format!("{} is not recorded: {why}", names.shown));
    fact(recorder, &names.of_process("not_recorded"), why);
}

/// Something that a reader of the trace should know, on this thread's track.
pub(crate) fn note(recorder: &dyn ColdRecorder, text: &str) {
    instant(recorder, Kind::Instant, text);
}

/// The same, which `kymo` prints as well.
pub(crate) fn tell(recorder: &dyn ColdRecorder, text: &str) {
    instant(recorder, Kind::Note, text);
}

fn instant(recorder: &dyn ColdRecorder, kind: Kind, text: &str) {
    let head = Record {
        time: recorder.now(),
        site: recorder.intern_or_wait(StrId::NONE, text.as_bytes()),
        kind: kind as u8,
        ..Record::default()
    };
    recorder.push(head, &[]);
}

/// A fact about the recording, as text.
pub(crate) fn fact(recorder: &dyn ColdRecorder, key: &str, text: &str) {
    let value = recorder.intern_or_wait(StrId::NONE, text.as_bytes());
    state(recorder, key, ArgType::Str, value.0.into());
}

/// A fact about the recording, as a number.
pub(crate) fn number(recorder: &dyn ColdRecorder, key: &str, value: u64) {
    state(recorder, key, ArgType::U64, value);
}

/// What came of a recording of this process: `KEY.PID.` and a name each.
pub(crate) fn counts(recorder: &dyn ColdRecorder, names: Names, rows: &[(&str, u64)]) {
    for (name, value) in rows {
        number(recorder, &names.of_process(name), *value);
    }
}

fn state(recorder: &dyn ColdRecorder, key: &str, ty: ArgType, arg: u64) {
    let head = Record {
        time: recorder.now(),
        arg,
        site: recorder.intern_or_wait(StrId::NONE, key.as_bytes()),
        kind: Kind::Fact as u8,
        tag: ty as u8,
        ..Record::default()
    };
    recorder.push(head, &[]);
}
