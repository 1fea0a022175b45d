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
    pub(super) fn new(element: Element<'a>, members: &mut Members) -> Option<Event<'a>> {
        let root = element.root();
        if root.kind() != Kind::Object {
            return None;
        }
        let mut event = Event::default();
        for (key, value) in root.fields() {
            match members.of(key) {
                Member::Phase => event.ph = value.as_str().and_then(first_byte).unwrap_or(0),
                Member::Name => (event.name, event.odd) = text(value, event.odd),
                Member::Category => (event.cat, event.odd) = text(value, event.odd),
                Member::Pid => event.pid = Some(value),
                Member::Tid => event.tid = Some(value),
                Member::Time => event.ts = Some(value),
                Member::Duration => event.dur = Some(value),
                Member::Id => event.id = Some(value),
                Member::Args => event.args = Some(value),
                Member::Scope => event.scope = value.as_str(),
                Member::Bind => event.bind = value.as_str(),
                Member::Other => event.others = true,
            }
        }
        Some(event)
    }

    /// Members that this has no field for.
    pub(super) fn others(element: Element<'a>) -> impl Iterator<Item = (Str<'a>, Value<'a>)> {
        element.root().fields().filter(|(key, _)| Member::named(key.raw()) == Member::Other)
    }
}

/// A member of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Member {
    Phase,
    Name,
    Category,
    Pid,
    Tid,
    Time,
    Duration,
    Id,
    Args,
    Scope,
    Bind,
    Other,
}

impl Member {
    fn named(name: &str) -> Member {
        match name {
            "ph" => Member::Phase,
            "name" => Member::Name,
            "cat" => Member::Category,
            "pid" => Member::Pid,
            "tid" => Member::Tid,
            "ts" => Member::Time,
            "dur" => Member::Duration,
            "id" => Member::Id,
            "args" => Member::Args,
            "s" => Member::Scope,
            "bp" => Member::Bind,
            _ => Member::Other,
        }
    }
}

/// Members by the numbers of their keys.
#[derive(Debug, Default)]
pub(super) struct Members(Vec<Option<Member>>);

impl Members {
    #[inline]
    fn of(&mut self, key: Str<'_>) -> Member {
        let number = key.key_number();
        match number.and_then(|number| *self.0.get(number)?) {
            Some(member) => member,
            None => self.add(number, key),
        }
    }

    #[cold]
    fn add(&mut self, number: Option<usize>, key: Str<'_>) -> Member {
        let member = Member::named(key.raw());
        if let Some(number) = number {
            self.0.resize(self.0.len().max(number + 1), None);
            self.0[number] = Some(member);
        }
        member
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
