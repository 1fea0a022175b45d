//! Documents that are one value: of formats whose parts refer to each other, and short ones that
//! stand in other formats.

use std::io::Read;

use super::keys::Keys;
use super::problem::{Error, Limits};
use super::tape::Tape;
use super::value::{Element, Value};
use super::{Document, Item, Kind, Number, number};

/// What a document may be; beyond that it is refused.
const LIMITS: Limits =
    Limits { depth: 128, nodes: 1 << 26, element_bytes: 1 << 30, repair_bytes: 1 << 20 };

/// Reads a document as one value, and hands it to `read`. All of it is in memory then, with 16
/// bytes for each value in it.
///
/// # Errors
/// When it cannot be read, or is beyond the limits.
pub fn whole<T>(input: impl Read, read: impl FnOnce(Value<'_>) -> T) -> Result<T, Error> {
    let mut document = Document::new((&b"["[..]).chain(input), LIMITS);
    if let Some(Item::Event(element)) = document.next_item()? {
        return Ok(read(element.root()));
    }
    let first = document.repairs().first().first();
    let what = first.map_or("an end at once", |repair| repair.kind.phrase());
    Err(Error::NotATrace(format!("JSON of a profile that is damaged or too large ({what})")))
}

/// Reads texts that are one value each. What it learns from one makes the next faster, so numbers of
/// keys and lists are those of all.
#[derive(Debug, Default)]
pub struct Texts {
    tape: Tape,
    keys: Keys,
}

impl Texts {
    /// Hands the value to `read`; `None` if the text is no JSON, or is more than a value.
    pub fn read<T>(&mut self, text: &str, read: impl FnOnce(Value<'_>) -> T) -> Option<T> {
        let Texts { tape, keys } = self;
        let length = tape.parse(text, true, &Limits::default(), keys).ok()?;
        let whole = tape.notes.is_empty() && text[length..].trim_ascii().is_empty();
        whole.then(|| read(Element { text, tape }.root()))
    }
}

impl<'a> Value<'a> {
    /// As an integer, when it is a number that 64 bits hold.
    pub fn int(self) -> Option<i64> {
        match number(self)? {
            Number::Int(n) => Some(n),
            Number::Uint(n) => Some(n as i64),
            Number::Float(x) => Some(x as i64),
            Number::Huge => None,
        }
    }

    /// As floating point, when it is a finite number.
    pub fn float(self) -> Option<f64> {
        let value = match number(self)? {
            Number::Int(n) => n as f64,
            Number::Uint(n) => n as f64,
            Number::Float(x) => x,
            Number::Huge => return None,
        };
        value.is_finite().then_some(value)
    }

    /// The index that it is: none for `null`, and for what is no index.
    pub fn index(self) -> Option<usize> {
        usize::try_from(self.int().filter(|_| self.kind() == Kind::Int)?).ok()
    }

    /// The text under a key of an object.
    pub fn text(self, key: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.get(key)?.as_str().map(|text| text.text())
    }
}
