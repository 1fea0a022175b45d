//! Numbers of threads in quotes, as Kineto wrote them until 2022: `"tid": "25738"`, and
//! `"tid": "stream 7"` on devices. Tools take the text for the name of the stream.

use super::QUOTED_TIDS;
use super::rows::{Id, STREAM};
use crate::json::{self, Kind, write_string};
use crate::trace::{Trace, Value};

/// The bit of events that are written alike.
fn bit(ph: u8) -> u8 {
    match ph {
        b'X' => 1,
        b's' | b't' => 2,
        b'f' => 4,
        b'i' | b'I' | b'R' => 8,
        _ => 0,
    }
}

/// How numbers of threads are written in a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quotes {
    quoted: u8,
    plain: u8,
}

impl Quotes {
    /// Notes how the `tid` of an event is written; `device` if it is work of a device.
    #[inline]
    pub(super) fn note(&mut self, ph: u8, written: Option<json::Value<'_>>, tid: Id, device: bool) {
        let bit = bit(ph);
        let text = written.filter(|written| written.kind() == Kind::String);
        match text {
            None => self.plain |= bit,
            Some(_) if !matches!(tid, Id::Int(_)) => {}
            // Arrows are said to be at a stream when they are at its work; others as it is said.
            Some(text)
                if matches!(ph, b's' | b't' | b'f') || text.raw().starts_with(STREAM) == device =>
            {
                self.quoted |= bit;
            }
            Some(_) => self.plain |= bit,
        }
    }

    /// What is noted in the trace.
    pub(super) fn finish(self, trace: &mut Trace) {
        let bits = self.quoted & !self.plain;
        if bits != 0 {
            let key = trace.strings.intern(QUOTED_TIDS);
            trace.facts.metadata.push((key, Value::I64(bits.into())));
        }
    }

    /// What was noted.
    pub(super) fn of(trace: &Trace) -> Quotes {
        let fact = trace.strings.find(QUOTED_TIDS).and_then(|key| trace.facts.get(key));
        let Some(Value::I64(bits)) = fact else { return Quotes::default() };
        Quotes { quoted: bits as u8, plain: 0 }
    }

    /// Writes the ids of an event, `"pid": 1, "tid": 2`, as they were; `device` if they are those
    /// of a stream.
    #[inline]
    pub(super) fn write(self, out: &mut Vec<u8>, ph: u8, ids: &str, device: bool) {
        match self.quoted & bit(ph) {
            0 => out.extend_from_slice(ids.as_bytes()),
            _ => quote(out, ids, device),
        }
    }
}

#[cold]
fn quote(out: &mut Vec<u8>, ids: &str, device: bool) {
    const TID: &str = "\"tid\": ";
    let tid =
        ids.rsplit_once(TID).and_then(|(before, tid)| Some((before, tid.parse::<i64>().ok()?)));
    let Some((before, tid)) = tid else { return out.extend_from_slice(ids.as_bytes()) };
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(TID.as_bytes());
    write_string(out, &if device { format!("{STREAM}{tid}") } else { tid.to_string() });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back(events: &[&str]) -> Vec<String> {
        let json = format!("[{}]", events.join(","));
        let trace = crate::chrome::read(json.as_bytes(), &json::Limits::default()).unwrap();
        let mut packets = Vec::new();
        crate::perfetto::write(&trace, &mut packets).unwrap();
        let limits = crate::packed::Limits::default();
        let trace = crate::perfetto::read(&packets[..], limits).unwrap();
        let mut out = Vec::new();
        crate::chrome::write(&trace, &mut out).unwrap();
        let tid =
            |line: &str| Some(line.split_once("\"tid\": ")?.1.split_once(", \"ts\"")?.0.to_owned());
        String::from_utf8(out).unwrap().lines().filter_map(tid).collect()
    }

    #[test]
    fn quotes_come_back_in_events_that_all_have_them() {
        let thread = r#"{"ph": "X", "cat": "Operator", "name": "a", "pid": 1, "tid": "5", "ts": 1, "dur": 9}"#;
        let moment = r#"{"ph": "i", "s": "t", "name": "m", "pid": 1, "tid": 5, "ts": 2}"#;
        let kernel = r#"{"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 3, "dur": 1}"#;
        assert_eq!(comes_back(&[thread, moment, kernel]), ["\"5\"", "5", "\"stream 7\""]);
        let other =
            r#"{"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": 7, "ts": 3, "dur": 1}"#;
        assert_eq!(
            comes_back(&[thread, other, kernel]),
            ["5", "7", "7"],
            "numbers where they differ"
        );
    }
}
