//! One event, its well-known members picked out.

use crate::json::{Element, Kind, Str, Value, nanoseconds};

/// The members of an event. Anything may be missing, and of any type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// The phase: its first byte, 0 when there is none.
    pub(super) ph: u8,
    pub(super) name: Option<Str<'a>>,
    pub(super) cat: Option<Str<'a>>,
    pub(super) pid: Option<Value<'a>>,
    pub(super) tid: Option<Value<'a>>,
    pub(super) ts: Option<Value<'a>>,
    pub(super) dur: Option<Value<'a>>,
    pub(super) id: Option<Value<'a>>,
    /// `s`, the scope of a moment.
    pub(super) scope: Option<Str<'a>>,
    /// `bp`, what the end of an arrow binds to.
    pub(super) bind: Option<Str<'a>>,
    pub(super) args: Option<Value<'a>>,
    /// Whether there are members that are none of these.
    pub(super) others: bool,
    /// Whether a member is not of the type that the hub has for it.
    pub(super) odd: bool,
}

impl<'a> Event<'a> {
    /// `None` when the element is no object.
    #[inline]
    pub(super) fn new(element: Element<'a>) -> Option<Event<'a>> {
        let root = element.root();
        if root.kind() != Kind::Object {
            return None;
        }
        let mut event = Event::default();
        for (key, value) in root.fields() {
            match key.raw() {
                "ph" => event.ph = value.as_str().and_then(first_byte).unwrap_or(0),
                "name" => (event.name, event.odd) = text(value, event.odd),
                "cat" => (event.cat, event.odd) = text(value, event.odd),
                "pid" => event.pid = Some(value),
                "tid" => event.tid = Some(value),
                "ts" => event.ts = Some(value),
                "dur" => event.dur = Some(value),
                "id" => event.id = Some(value),
                "args" => event.args = Some(value),
                "s" => event.scope = value.as_str(),
                "bp" => event.bind = value.as_str(),
                _ => event.others = true,
            }
        }
        Some(event)
    }

    /// Members that this has no field for.
    pub(super) fn others(element: Element<'a>) -> impl Iterator<Item = (Str<'a>, Value<'a>)> {
        const KNOWN: [&str; 11] =
            ["ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "args", "s", "bp"];
        element.root().fields().filter(|(key, _)| !KNOWN.contains(&key.raw()))
    }
}

/// Text, also of what is a number instead. Says whether it is one, or something else was.
#[inline]
fn text(value: Value<'_>, odd: bool) -> (Option<Str<'_>>, bool) {
    match value.as_str() {
        Some(text) => (Some(text), odd),
        None => (value.is_number().then(|| value.as_text()), true),
    }
}

fn first_byte(text: Str<'_>) -> Option<u8> {
    text.raw().bytes().next()
}

/// A time in microseconds, as a number or in quotes, in nanoseconds.
#[inline]
pub(super) fn time(value: Option<Value<'_>>) -> Option<i64> {
    let value = value?;
    match value.kind() {
        Kind::Int | Kind::Float | Kind::String => nanoseconds(value.raw()),
        _ => None,
    }
}
