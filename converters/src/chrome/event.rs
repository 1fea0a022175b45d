//! One event, its well-known members picked out.

use crate::json::{Element, Kind, Str, Value, nanoseconds_of};

/// The members of an event: where each stands. Anything may be missing, and of any type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    element: Element<'a>,
    places: [u32; Member::COUNT],
    /// The phase: its first byte, 0 when there is none.
    pub(super) ph: u8,
    /// Whether there are members that this has no name for.
    pub(super) others: bool,
    /// Whether a member is not of the type that the hub has for it.
    pub(super) odd: bool,
}

impl<'a> Event<'a> {
    /// An event without members, until [`Event::pick`] is called.
    #[inline]
    pub(super) fn new(element: Element<'a>) -> Event<'a> {
        Event { element, places: [0; Member::COUNT], ph: 0, others: false, odd: false }
    }

    /// Picks the members out; says whether the element is an object. Where the event lies, since
    /// moving what has just been written costs more than all of it.
    #[inline]
    pub(super) fn pick(&mut self, members: &mut Members) -> bool {
        let root = self.element.root();
        if root.kind() != Kind::Object {
            return false;
        }
        for (key, place) in root.places() {
            let member = members.of(key, || self.element.at(place).key());
            self.places[member as usize] = place;
        }
        self.others = self.places[Member::Other as usize] != 0;
        self.ph = self.str(Member::Phase).and_then(first_byte).unwrap_or(0);
        self.odd = [Member::Name, Member::Category]
            .into_iter()
            .any(|member| self.value(member).is_some_and(|value| value.kind() != Kind::String));
        // Of others the hub has no duration.
        let lasts = matches!(self.ph, b'X' | b'i' | b'I' | b'R');
        self.odd |= !lasts && self.dur().is_some();
        true
    }

    #[inline]
    fn value(&self, member: Member) -> Option<Value<'a>> {
        // The first place is that of the event itself.
        match self.places[member as usize] {
            0 => None,
            place => Some(self.element.at(place)),
        }
    }

    #[inline]
    fn str(&self, member: Member) -> Option<Str<'a>> {
        self.value(member)?.as_str()
    }

    #[inline]
    pub(super) fn name(&self) -> Option<Str<'a>> {
        text(self.value(Member::Name)?)
    }

    #[inline]
    pub(super) fn cat(&self) -> Option<Str<'a>> {
        text(self.value(Member::Category)?)
    }

    #[inline]
    pub(super) fn pid(&self) -> Option<Value<'a>> {
        self.value(Member::Pid)
    }

    #[inline]
    pub(super) fn tid(&self) -> Option<Value<'a>> {
        self.value(Member::Tid)
    }

    #[inline]
    pub(super) fn ts(&self) -> Option<Value<'a>> {
        self.value(Member::Time)
    }

    #[inline]
    pub(super) fn dur(&self) -> Option<Value<'a>> {
        self.value(Member::Duration)
    }

    #[inline]
    pub(super) fn id(&self) -> Option<Value<'a>> {
        self.value(Member::Id)
    }

    #[inline]
    pub(super) fn args(&self) -> Option<Value<'a>> {
        self.value(Member::Args)
    }

    /// `s`, the scope of a moment.
    pub(super) fn scope(&self) -> Option<Str<'a>> {
        self.str(Member::Scope)
    }

    /// `bp`, what the end of an arrow binds to.
    pub(super) fn bind(&self) -> Option<Str<'a>> {
        self.str(Member::Bind)
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
    const COUNT: usize = Member::Other as usize + 1;

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
    /// The member of a key with this number, 0 if it has none, which `key` gives.
    #[inline]
    fn of<'a>(&mut self, number: usize, key: impl FnOnce() -> Option<Str<'a>>) -> Member {
        match self.0.get(number) {
            Some(Some(member)) => *member,
            _ => self.add(number, key()),
        }
    }

    #[cold]
    fn add(&mut self, number: usize, key: Option<Str<'_>>) -> Member {
        let member = key.map_or(Member::Other, |key| Member::named(key.raw()));
        if number != 0 {
            self.0.resize(self.0.len().max(number + 1), None);
            self.0[number] = Some(member);
        }
        member
    }
}

/// Text, also of what is a number instead.
#[inline]
fn text(value: Value<'_>) -> Option<Str<'_>> {
    value.as_str().or_else(|| value.is_number().then(|| value.as_text()))
}

fn first_byte(text: Str<'_>) -> Option<u8> {
    text.raw().bytes().next()
}

/// A time in microseconds, as a number or in quotes, in nanoseconds.
#[inline]
pub(super) fn time(value: Option<Value<'_>>) -> Option<i64> {
    let value = value?;
    match value.kind() {
        Kind::Int | Kind::Float | Kind::String => nanoseconds_of(value),
        _ => None,
    }
}
