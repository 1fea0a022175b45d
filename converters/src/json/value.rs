//! Looking at an element that is on the tape.

use std::borrow::Cow;

use super::tape::{Form, Node, Tape};
use super::text;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A number without fraction and exponent, of any length.
    Int,
    /// A number with fraction or exponent, or one that is not finite.
    Float,
    /// A string.
    String,
    /// Keys and values.
    Object,
    /// Values.
    Array,
}

/// One element: the text it stands in, and where its parts are.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub(super) text: &'a str,
    pub(super) tape: &'a Tape,
}

impl<'a> Element<'a> {
    /// The outermost value.
    pub fn root(self) -> Value<'a> {
        Value { element: self, index: 0 }
    }

    /// The value at one of the [`Value::places`] of this element.
    #[inline]
    pub(crate) fn at(self, place: u32) -> Value<'a> {
        Value { element: self, index: place }
    }

    /// Whether a string in it has a NUL, which other formats do not allow.
    pub fn has_nul(self) -> bool {
        self.tape.nul
    }
}

/// One value of an element. A copy of it is as cheap as an index.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    element: Element<'a>,
    index: u32,
}

impl<'a> Value<'a> {
    #[inline]
    fn node(self) -> &'a Node {
        &self.element.tape.nodes[self.index as usize]
    }

    /// What it is.
    #[inline]
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// The text of the value as it stands in the input; of a string, without its quotes and
    /// with its escapes.
    #[inline]
    pub fn raw(self) -> &'a str {
        let node = self.node();
        let start = node.start as usize;
        &self.element.text[start..start + node.len as usize]
    }

    /// [`Value::raw`], as bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        let node = self.node();
        let start = node.start as usize;
        &self.element.text.as_bytes()[start..start + node.len as usize]
    }

    /// The eight bytes from where it begins, if there are so many, and its length.
    #[inline]
    pub(super) fn ahead(self) -> Option<(&'a [u8; 8], usize)> {
        let node = self.node();
        let ahead = self.element.text.as_bytes().get(node.start as usize..)?.first_chunk()?;
        Some((ahead, node.len as usize))
    }

    /// Whether it is a number.
    #[inline]
    pub fn is_number(self) -> bool {
        matches!(self.kind(), Kind::Int | Kind::Float)
    }

    /// What stands there as if it were a string.
    pub fn as_text(self) -> Str<'a> {
        Str { escaped: false, ..self.string() }
    }

    /// Of a list, a number that only this text has in this document, if it came before.
    #[inline]
    pub fn list_number(self) -> Option<usize> {
        let node = self.node();
        (node.kind == Kind::Array && node.key != 0).then_some(usize::from(node.key))
    }

    /// The string, when it is one.
    #[inline]
    pub fn as_str(self) -> Option<Str<'a>> {
        (self.kind() == Kind::String).then(|| self.string())
    }

    #[inline]
    fn string(self) -> Str<'a> {
        let Node { start, len, form, .. } = *self.node();
        Str { text: self.element.text, start, len, escaped: form == Form::Escaped, key: 0 }
    }

    /// The keys and values of an object; nothing for any other value.
    #[inline]
    pub fn fields(self) -> Fields<'a> {
        let node = self.node();
        let end = if node.kind == Kind::Object { node.end } else { self.index + 1 };
        Fields { element: self.element, next: self.index + 1, end }
    }

    /// The places of the values of an object, each with the number of its key ([`Str::key_number`]),
    /// 0 if that has none.
    #[inline]
    pub(crate) fn places(self) -> impl Iterator<Item = (usize, u32)> {
        let node = self.node();
        let end = if node.kind == Kind::Object { node.end } else { self.index + 1 };
        let nodes = &self.element.tape.nodes;
        let mut next = self.index + 1;
        std::iter::from_fn(move || {
            let node = nodes.get(next as usize).filter(|_| next < end)?;
            let mut place = next;
            next += 1;
            if node.form != Form::WithKey {
                place = next;
                next = nodes.get(place as usize)?.end;
            }
            Some((usize::from(node.key), place))
        })
    }

    /// The key of a value of an object.
    pub(crate) fn key(self) -> Option<Str<'a>> {
        if let Some((start, len)) = self.node().its_key() {
            let (text, key) = (self.element.text, self.node().key);
            return Some(Str { text, start, len, escaped: false, key });
        }
        let key = Value { index: self.index.checked_sub(1)?, ..self };
        Some(Str { key: key.node().key, ..key.string() })
    }

    /// The values of an array; nothing for any other value.
    #[inline]
    pub fn items(self) -> Items<'a> {
        let node = self.node();
        let end = if node.kind == Kind::Array { node.end } else { self.index + 1 };
        Items { element: self.element, next: self.index + 1, end }
    }

    /// The value under a key of an object.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.fields().find(|(name, _)| name.is(key)).map(|(_, value)| value)
    }
}

/// A string of the input, its escapes not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct Str<'a> {
    /// Of its element. Cut out when it is looked at: most keys are known by their numbers.
    text: &'a str,
    start: u32,
    len: u32,
    escaped: bool,
    key: u16,
}

impl<'a> Str<'a> {
    /// The text. Allocates only where there are escapes.
    #[inline]
    pub fn text(self) -> Cow<'a, str> {
        match self.escaped {
            true => Cow::Owned(text::unescape(self.raw())),
            false => Cow::Borrowed(self.raw()),
        }
    }

    /// Whether it is this text, written without escapes.
    #[inline]
    pub fn is(self, text: &str) -> bool {
        self.raw() == text
    }

    /// The text as it stands in the input.
    #[inline]
    pub fn raw(self) -> &'a str {
        let start = self.start as usize;
        &self.text[start..start + self.len as usize]
    }

    /// Whether there are escapes in it.
    #[inline]
    pub fn escaped(self) -> bool {
        self.escaped
    }

    /// Of a key, a number that only this text has in this document, without escapes; `None` for
    /// keys that came for the first time, and for other strings. Numbers count from 1.
    #[inline]
    pub fn key_number(self) -> Option<usize> {
        (self.key != 0).then_some(usize::from(self.key))
    }
}

/// The keys and values of an object, in the order of the input, repeated keys included.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    element: Element<'a>,
    next: u32,
    end: u32,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Str<'a>, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let first = Value { element: self.element, index: self.next };
        let Node { key: number, .. } = *first.node();
        if let Some((start, len)) = first.node().its_key() {
            self.next += 1;
            let text = self.element.text;
            return Some((Str { text, start, len, escaped: false, key: number }, first));
        }
        let value = Value { element: self.element, index: self.next + 1 };
        self.next = value.node().end;
        Some((Str { key: number, ..first.string() }, value))
    }
}

/// The values of an array.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    element: Element<'a>,
    next: u32,
    end: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let value = Value { element: self.element, index: self.next };
        self.next = value.node().end;
        Some(value)
    }
}
