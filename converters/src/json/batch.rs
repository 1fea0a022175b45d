//! Elements that go from one thread to another: many at a time, each with its text and its tape.

use super::tape::Tape;
use super::value::Element;
use super::{Item, Kind};

/// See the module. Kept for its memory: a batch that was read is filled again.
#[derive(Debug, Default)]
pub struct Batch {
    text: String,
    tapes: Vec<Tape>,
    places: Vec<Place>,
    keys: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where the text begins.
    start: usize,
    /// Where the element stands in the input.
    offset: u64,
    /// The key of a member.
    key: Option<u32>,
}

/// Bytes of text that make a batch: so many events that handing it over costs nothing, and few
/// enough that it stays in the second-level cache.
const FULL: usize = 128 << 10;

impl Batch {
    /// Whether there is enough in it.
    pub fn is_full(&self) -> bool {
        self.text.len() >= FULL
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Forgets what is in it.
    pub fn clear(&mut self) {
        self.text.clear();
        self.places.clear();
        self.keys.clear();
    }

    /// Adds an element: `text` begins with it, and `tape` has it laid out; that gets another one's
    /// memory in exchange.
    pub(super) fn push(&mut self, text: &str, tape: &mut Tape, offset: u64, key: Option<&str>) {
        let row = self.places.len();
        if self.tapes.len() <= row {
            self.tapes.push(Tape::default());
        }
        std::mem::swap(&mut self.tapes[row], tape);
        let end = self.tapes[row].nodes.first().map_or(0, |root| {
            (root.start + root.len) as usize + usize::from(root.kind == Kind::String)
        });
        let key = key.map(|key| {
            self.keys.push(key.to_owned());
            self.keys.len() as u32 - 1
        });
        self.places.push(Place { start: self.text.len(), offset, key });
        self.text.push_str(&text[..end]);
    }

    /// The elements, and where each stands in the input.
    pub fn items(&self) -> impl Iterator<Item = (Item<'_>, u64)> {
        self.places.iter().zip(&self.tapes).map(|(place, tape)| {
            let element = Element { text: &self.text[place.start..], tape };
            let item = match place.key {
                Some(key) => Item::Member(&self.keys[key as usize], element),
                None => Item::Event(element),
            };
            (item, place.offset)
        })
    }
}
