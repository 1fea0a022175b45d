//! Lists that came before: shapes of tensors and of kernels, which traces repeat all the time.
//!
//! A list says by itself where it ends. So text that begins like a list which was taken apart
//! before, to its last bracket, is that list, and its nodes need only be copied. It has a number
//! too, by which readers know what they made of it.

use super::tape::{Form, Node};
use super::value::Kind;

/// How long a list may be, and how many nodes it may have.
const LONGEST: usize = 128;
const MOST_NODES: usize = 48;
/// How many are kept, and how many of those that begin alike.
const MOST: usize = 4096;
const ALIKE: usize = 4;
const BEGINNINGS: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lists {
    lists: Vec<List>,
    /// Numbers of lists by how they begin, the latest first; 0 is none.
    places: Vec<[u16; ALIKE]>,
    /// What was seen once: only lists that come again are kept.
    seen: Vec<u32>,
}

/// A list, its nodes as if both it and the tape began there.
#[derive(Debug)]
pub(super) struct List {
    text: Box<[u8]>,
    pub(super) nodes: Box<[Node]>,
    /// How many brackets lie in each other.
    pub(super) depth: usize,
    /// Whether there are nodes that have their keys with them.
    keyed: bool,
}

impl List {
    /// How long its text is.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Adds its nodes to those of a tape, for a list that begins at `start`.
    #[inline]
    pub(super) fn copy(&self, to: &mut Vec<Node>, start: u32) {
        let base = to.len() as u32;
        if self.keyed {
            to.extend(self.nodes.iter().map(|node| node.moved(start, base)));
        } else {
            // The same, without a look at each.
            let moved = |node: &Node| Node {
                start: node.start.wrapping_add(start),
                end: node.end.wrapping_add(base),
                ..*node
            };
            to.extend(self.nodes.iter().map(moved));
        }
    }
}

impl Lists {
    /// The list that `text` begins with, if it came before.
    #[inline]
    pub(super) fn find(&self, text: &[u8]) -> Option<&List> {
        let alike = self.places.get(place(text.first_chunk()?))?;
        for number in alike {
            let list = self.lists.get(usize::from(*number).checked_sub(1)?)?;
            if text.starts_with(&list.text) {
                return Some(list);
            }
        }
        None
    }

    /// Remembers the list `text`, with what follows it at hand in `ahead`; `nodes` are its, the
    /// first of them at `base` of the tape. Gives its number, 0 for none.
    pub(super) fn learn(&mut self, ahead: &[u8], len: usize, nodes: &[Node], base: u32) -> u16 {
        let Some(first) = ahead.first_chunk() else { return 0 };
        let text = &ahead[..len];
        if len > LONGEST || nodes.len() > MOST_NODES || self.lists.len() >= MOST {
            return 0;
        }
        if self.places.is_empty() {
            self.places.resize(BEGINNINGS, [0; ALIKE]);
            self.seen.resize(MOST, 0);
        }
        let is_escaped = |node: &Node| node.form == Form::Escaped;
        let print = fingerprint(text);
        let known = &mut self.seen[print as usize % MOST];
        if std::mem::replace(known, print) != print || nodes.iter().any(is_escaped) {
            return 0;
        }
        let start = nodes.first().map_or(0, |node| node.start);
        let moved = |node: &Node| node.moved(start.wrapping_neg(), base.wrapping_neg());
        let mut nodes: Box<[Node]> = nodes.iter().map(moved).collect();
        let number = self.lists.len() as u16 + 1;
        if let Some(root) = nodes.first_mut() {
            root.key = number;
        }
        let open = |node: &&Node| matches!(node.kind, Kind::Array | Kind::Object);
        let depth = nodes.iter().filter(open).count();
        let keyed = nodes.iter().any(|node| node.form == Form::WithKey);
        self.lists.push(List { text: text.into(), nodes, depth, keyed });
        let alike = &mut self.places[place(first)];
        alike.rotate_right(1);
        alike[0] = number;
        number
    }
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where lists are that begin like this. Short ones are found by what follows them, too, which is
/// the same each time, mostly.
#[inline]
fn place(first: &[u8; 16]) -> usize {
    let (words, _) = first.as_chunks::<8>();
    let [low, high] = [words[0], words[1]].map(u64::from_le_bytes);
    let hash = (low.wrapping_mul(FACTOR).rotate_left(23) ^ high).wrapping_mul(FACTOR);
    (hash >> 54) as usize
}

/// A number that only few texts have in common.
fn fingerprint(text: &[u8]) -> u32 {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |hash: u64, word: &[u8; 8]| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR)
    };
    (words.iter().chain([&last]).fold(text.len() as u64, mix) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::keys::Keys;
    use crate::json::problem::Limits;
    use crate::json::tape::{Stop, Tape};
    use crate::json::value::{Element, Value};

    fn nodes(text: &str, keys: &mut Keys) -> Result<String, Stop> {
        let mut tape = Tape::default();
        tape.parse(text, true, &Limits::default(), keys)?;
        let mut all = String::new();
        print(Element { text, tape: &tape }.root(), &mut all);
        Ok(all)
    }

    /// Everything that a reader sees of a value, but for the numbers.
    fn print(value: Value<'_>, all: &mut String) {
        all.push_str(&format!("{:?} {:?}", value.kind(), value.raw()));
        for (key, value) in value.fields() {
            all.push_str(&format!(" {:?}: ", key.raw()));
            print(value, all);
        }
        for item in value.items() {
            all.push_str(", ");
            print(item, all);
        }
        all.push(';');
    }

    #[test]
    fn a_list_that_came_before_has_the_same_nodes() {
        let mut keys = Keys::default();
        for list in
            ["[[8, 64], [], []]", "[\"a\", {\"b\": [1.5], \"d\": 7}, null]", "[]", "[[[[]]], -1e5]"]
        {
            let text = format!("{{\"a\": 1, \"b\": [2, {list}, 3], \"c\": {list}, \"d\": 2}}");
            let fresh = nodes(&text, &mut Keys::default());
            for round in 0..4 {
                assert_eq!(nodes(&text, &mut keys), fresh, "{text}, {round}");
            }
        }
        assert!(keys.lists.lists.len() >= 4);
    }

    #[test]
    fn a_list_that_is_cut_or_damaged_is_not_known() {
        let mut keys = Keys::default();
        for _ in 0..3 {
            nodes("{\"a\": [[1024, 1], []], \"b\": 1}", &mut keys).unwrap();
        }
        for text in ["{\"a\": [[1024, 1], []", "{\"a\": [[1024, 1], [] \"b\": 1}"] {
            assert_eq!(nodes(text, &mut keys), nodes(text, &mut Keys::default()), "{text}");
        }
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut lists = Lists::default();
        let mut tape = Tape::default();
        let mut learned = 0;
        for n in 0..20_000 {
            let text = format!("[{n}, 1, 1]");
            tape.parse(&text, true, &Limits::default(), &mut Keys::default()).unwrap();
            let ahead = format!("{text}, \"block\": ");
            for _ in 0..2 {
                let number = lists.learn(ahead.as_bytes(), text.len(), &tape.nodes, 0);
                learned += usize::from(number != 0);
            }
        }
        assert_eq!(learned, MOST);
    }
}
