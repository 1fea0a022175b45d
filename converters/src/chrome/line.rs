//! One event as text.

use super::quotes::Quotes;
use super::{BARE_MOMENTS, FOREIGN, WHOLE_TIMES};
use crate::json::{write_float, write_int, write_micros, write_string, write_uint};
use crate::trace::{ArgsId, StrId, Trace, Value};

/// Writes the parts of events.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) trace: &'a Trace,
    /// What is added to times, in nanoseconds.
    pub(super) shift: i64,
    /// Whether whole microseconds are written without a fraction, in times and in durations.
    pub(super) whole: (bool, bool),
    /// Where numbers of threads are in quotes.
    pub(super) quotes: Quotes,
    /// Whether moments state no scope that their row suggests.
    pub(super) bare_moments: bool,
    /// Names of arguments that are members of the event.
    foreign: Vec<(StrId, &'a str)>,
}

impl<'a> Line<'a> {
    pub(super) fn new(trace: &'a Trace, shift: i64) -> Line<'a> {
        let foreign = |(id, text): (StrId, &'a str)| Some((id, text.strip_prefix(FOREIGN)?));
        let whole = trace.strings.find(WHOLE_TIMES).and_then(|key| trace.facts.get(key));
        let whole = match whole {
            Some(Value::I64(bits)) => (bits & 1 != 0, bits & 2 != 0),
            _ => (false, false),
        };
        Line {
            trace,
            shift,
            whole,
            quotes: Quotes::of(trace),
            bare_moments: trace
                .strings
                .find(BARE_MOMENTS)
                .is_some_and(|key| trace.facts.get(key).is_some()),
            foreign: trace.strings.iter().filter_map(foreign).collect(),
        }
    }

    /// `{"ph": "X", "cat": "c", "name": "n", `
    #[inline]
    pub(super) fn head(
        &self,
        out: &mut Vec<u8>,
        ph: u8,
        cat: &str,
        scope: Option<char>,
        name: StrId,
    ) {
        out.extend_from_slice(b"{\"ph\": \"");
        out.push(ph);
        out.extend_from_slice(b"\", ");
        if !cat.is_empty() {
            out.extend_from_slice(b"\"cat\": ");
            write_string(out, cat);
            out.extend_from_slice(b", ");
        }
        if let Some(scope) = scope {
            out.extend_from_slice(b"\"s\": \"");
            out.push(scope as u8);
            out.extend_from_slice(b"\", ");
        }
        if name != StrId::NONE {
            out.extend_from_slice(b"\"name\": ");
            write_string(out, self.trace.strings.get(name));
            out.extend_from_slice(b", ");
        }
    }

    /// `, "ts": 1.000`
    #[inline]
    pub(super) fn time(&self, out: &mut Vec<u8>, nanos: i64) {
        out.extend_from_slice(b", \"ts\": ");
        self.time_value(out, nanos);
    }

    /// A time of the file's clock.
    #[inline]
    pub(super) fn time_value(&self, out: &mut Vec<u8>, nanos: i64) {
        micros(out, nanos.saturating_add(self.shift), self.whole.0);
    }

    /// A duration.
    #[inline]
    pub(super) fn duration(&self, out: &mut Vec<u8>, nanos: i64) {
        micros(out, nanos, self.whole.1);
    }

    /// The value of an argument that is a member of the event.
    pub(super) fn find_foreign(&self, args: Option<ArgsId>, member: &str) -> Option<Value> {
        let (id, _) = self.foreign.iter().find(|(_, name)| *name == member)?;
        self.trace.args.find(args, *id)
    }

    /// Members of the event that are kept with its arguments, but for those in `except`.
    pub(super) fn members(&self, out: &mut Vec<u8>, args: Option<ArgsId>, except: &[&str]) {
        if self.foreign.is_empty() {
            return;
        }
        for (name, value) in self.trace.args.entries(args) {
            let Some((_, member)) = self.foreign.iter().find(|(id, _)| *id == name) else {
                continue;
            };
            if !except.contains(member) && *member != "ph" {
                out.extend_from_slice(b", ");
                write_string(out, member);
                out.extend_from_slice(b": ");
                self.value(out, value);
            }
        }
    }

    /// One such member, if there is one.
    pub(super) fn members_only(&self, out: &mut Vec<u8>, args: Option<ArgsId>, member: &str) {
        if let Some(value) = self.find_foreign(args, member) {
            out.extend_from_slice(b", ");
            write_string(out, member);
            out.extend_from_slice(b": ");
            self.value(out, value);
        }
    }

    /// Arguments among others.
    #[inline]
    pub(super) fn own(&self, out: &mut Vec<u8>, first: usize, args: Option<ArgsId>) {
        for (name, value) in self.trace.args.entries(args) {
            self.arg(out, first, name, value);
        }
    }

    /// `, "args": {…}`, nothing when there are none. `first` writes those that are not the
    /// event's own; it is told where the first one stands.
    #[inline]
    pub(super) fn args(
        &self,
        out: &mut Vec<u8>,
        args: Option<ArgsId>,
        first: impl FnOnce(&mut Vec<u8>, usize),
    ) {
        let before = out.len();
        out.extend_from_slice(b", \"args\": {");
        let empty = out.len();
        first(out, empty);
        for (name, value) in self.trace.args.entries(args) {
            self.arg(out, empty, name, value);
        }
        if out.len() == empty { out.truncate(before) } else { out.push(b'}') }
    }

    /// One argument, after a comma unless it is the first, which would stand at `first`.
    #[inline]
    pub(super) fn arg(&self, out: &mut Vec<u8>, first: usize, name: StrId, value: Value) {
        if !self.foreign.is_empty() && self.foreign.iter().any(|(id, _)| *id == name) {
            return;
        }
        if out.len() > first {
            out.extend_from_slice(b", ");
        }
        write_string(out, self.trace.strings.get(name));
        out.extend_from_slice(b": ");
        self.value(out, value);
    }

    pub(super) fn value(&self, out: &mut Vec<u8>, value: Value) {
        match value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::I64(n) => write_int(out, n),
            Value::U64(n) => write_uint(out, n),
            Value::F64(x) => write_float(out, x),
            Value::Str(text) => write_string(out, self.trace.strings.get(text)),
            Value::Pointer(address) => {
                out.extend_from_slice(format!("\"{address:#x}\"").as_bytes());
            }
            Value::Json(text) => out.extend_from_slice(self.trace.strings.get(text).as_bytes()),
            Value::List(list) => {
                out.push(b'[');
                for (index, item) in self.trace.args.items(list).enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b", ");
                    }
                    self.value(out, item);
                }
                out.push(b']');
            }
            Value::Dict(dict) => {
                out.push(b'{');
                for (index, (name, value)) in self.trace.args.entries_of(dict).enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b", ");
                    }
                    write_string(out, self.trace.strings.get(name));
                    out.extend_from_slice(b": ");
                    self.value(out, value);
                }
                out.push(b'}');
            }
        }
    }
}

/// Microseconds.
#[inline]
fn micros(out: &mut Vec<u8>, nanos: i64, whole: bool) {
    if whole && nanos % 1000 == 0 {
        write_int(out, nanos / 1000);
    } else {
        write_micros(out, nanos);
    }
}

/// A value as JSON.
pub(crate) fn write_text(trace: &Trace, value: Value) -> String {
    let mut out = Vec::new();
    let (whole, quotes) = ((false, false), Quotes::default());
    let (bare_moments, foreign) = (false, Vec::new());
    Line { trace, shift: 0, whole, quotes, bare_moments, foreign }.value(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}
