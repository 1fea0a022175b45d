//! One element, laid out flat: a node for each value and key, in the order of the text.
//!
//! ```text
//! {"ts": 1.5, "args": {"grid": [1, 2]}}
//!  0 Object end=9 ─┐ 1 String ts  2 Float 1.5  3 String args  4 Object end=9
//!                  │ 5 String grid  6 Array end=9  7 Int 1  8 Int 2
//! ```
//!
//! A node holds where its text is and where the next value begins, so that a value is skipped
//! in one step. Numbers and escapes are not decoded here: most are never looked at.
//!
//! A number or string under a key that came before has one node for both: nodes go from one
//! thread to another, and these are most of a trace.

use super::keys::Keys;
use super::lists::Lists;
use super::problem::{Limits, RepairKind};
use super::scan::{is_float, ordinary, plain_number, short_or_plain};
use super::text::escapes_are_valid;
use super::value::Kind;

/// One value or key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Where the text begins in the element; for a string, after its quote.
    pub(super) start: u32,
    /// How long the text is, in bytes.
    pub(super) len: u32,
    /// Index of the node after this value. Of one with its key: how long that is, in the lowest
    /// eight bits, and how far before `start` it begins.
    pub(super) end: u32,
    pub(super) kind: Kind,
    pub(super) form: Form,
    /// Of a key, a value with its key or a list, its number among those that [`Keys`] knows; else
    /// 0.
    pub(super) key: u16,
}

/// What there is to a node besides its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// A string that has escapes in it.
    Escaped,
    /// A number or a string without escapes whose key has no node of its own.
    WithKey,
}

const _: () = assert!(size_of::<Node>() == 16);

impl Node {
    /// Where its key begins and how long it is, if that has no node of its own.
    #[inline]
    pub(super) fn its_key(&self) -> Option<(u32, u32)> {
        let start = self.start.wrapping_sub(self.end >> 8);
        (self.form == Form::WithKey).then_some((start, self.end & 0xff))
    }

    /// The same node of a text that begins so many bytes earlier, on a tape that does so many
    /// nodes earlier.
    #[inline]
    pub(super) fn moved(self, bytes: u32, nodes: u32) -> Node {
        let nodes = if self.form == Form::WithKey { 0 } else { nodes };
        let (start, end) = (self.start.wrapping_add(bytes), self.end.wrapping_add(nodes));
        Node { start, end, ..self }
    }
}

/// Why an element is not on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ends before the element does.
    More,
    /// The text is not JSON.
    Bad { at: usize, expected: &'static str },
    /// Too deep, or too many values.
    Limit { at: usize, what: &'static str },
}

/// The nodes of one element. Kept from one element to the next for its memory.
#[derive(Debug, Default)]
pub struct Tape {
    pub(super) nodes: Vec<Node>,
    open: Vec<u32>,
    /// Small defects that were read over, with their place in the element.
    pub(super) notes: Vec<(RepairKind, usize)>,
    /// Whether a string has an escaped NUL in it.
    pub(super) nul: bool,
}

impl Tape {
    /// Lays out the value that `text` begins with and returns its length in bytes. When
    /// `ended`, nothing follows `text`.
    pub(super) fn parse(
        &mut self,
        text: &str,
        ended: bool,
        limits: &Limits,
        keys: &mut Keys,
    ) -> Result<usize, Stop> {
        self.nodes.clear();
        self.open.clear();
        self.notes.clear();
        self.nul = false;
        // Positions are kept in 32 bits; a window never comes near that.
        let bytes = text.as_bytes();
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        keys.restart();
        let (pos, object) = (0, false);
        let mut parser = Parser { text, bytes, pos, object, ended, tape: self, limits, keys };
        parser.element()?;
        Ok(parser.pos)
    }

    /// Adds the list at `pos`, if it came before, and moves there behind it; says whether it did.
    #[inline]
    fn known_list(
        &mut self,
        lists: &Lists,
        bytes: &[u8],
        pos: &mut usize,
        limits: &Limits,
    ) -> bool {
        let Some(list) = lists.find(&bytes[*pos..]) else { return false };
        let fits = self.nodes.len() + list.nodes.len() <= limits.nodes;
        if !fits || self.open.len() + list.depth > limits.depth {
            return false;
        }
        list.copy(&mut self.nodes, *pos as u32);
        *pos += list.len();
        true
    }
}

/// What comes after some members of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// The value of the last key.
    Value,
    /// The end of the object, or another key.
    End,
    /// The first key, or the end.
    Unknown,
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    /// Whether the innermost open bracket is that of an object.
    object: bool,
    ended: bool,
    tape: &'a mut Tape,
    limits: &'a Limits,
    keys: &'a mut Keys,
}

impl Parser<'_> {
    fn element(&mut self) -> Result<(), Stop> {
        loop {
            match self.token()? {
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                b'{' => {
                    self.open(Kind::Object)?;
                    match self.members(true) {
                        Ahead::Value => continue,
                        Ahead::Unknown if !self.key(false, self.pos)? => continue,
                        Ahead::Unknown => {}
                        Ahead::End if self.after_value()? => return Ok(()),
                        Ahead::End => continue,
                    }
                }
                b'[' => {
                    let Parser { tape, keys, bytes, pos, limits, .. } = self;
                    if !tape.known_list(&keys.lists, bytes, pos, limits) {
                        self.open(Kind::Array)?;
                        if self.token()? != b']' {
                            continue;
                        }
                        self.close();
                    }
                }
                b']' if self.inside(Kind::Array) => {
                    self.tape.notes.push((RepairKind::TrailingComma, self.pos));
                    self.close();
                }
                _ => self.word()?,
            }
            if self.object && self.members(false) == Ahead::Value {
                continue;
            }
            if self.after_value()? {
                return Ok(());
            }
        }
    }

    /// What follows a value: the end of containers, or a comma and then another value. Says
    /// whether the element is complete.
    fn after_value(&mut self) -> Result<bool, Stop> {
        loop {
            if self.tape.open.is_empty() {
                return Ok(true);
            }
            let from = self.pos;
            let byte = self.token()?;
            match byte {
                b',' => {
                    self.pos += 1;
                    if !self.object || !self.key(true, from)? {
                        return Ok(false);
                    }
                }
                b'}' | b']' if self.object == (byte == b'}') => {
                    self.close();
                    if self.object && self.members(false) == Ahead::Value {
                        return Ok(false);
                    }
                }
                _ if self.object => return self.bad("`,` or `}`"),
                _ => return self.bad("`,` or `]`"),
            }
        }
    }

    /// Members of an object whose keys came here before, with all that stands around them; `first`
    /// at its beginning. Takes what most of a trace is: numbers, strings without escapes, lists
    /// that came before.
    fn members(&mut self, mut first: bool) -> Ahead {
        let Parser { bytes, limits, .. } = *self;
        let (tape, keys) = (&mut *self.tape, &mut *self.keys);
        let mut pos = self.pos;
        let ahead = loop {
            let gap = match tape.nodes.len() + 2 <= limits.nodes {
                true => keys.find(bytes, pos, first),
                false => None,
            };
            let Some(gap) = gap else { break if first { Ahead::Unknown } else { Ahead::End } };
            first = false;
            let at = pos + usize::from(gap.key);
            let end = tape.nodes.len() as u32 + 1;
            let (key_len, key) = (u32::from(gap.key_len), gap.number);
            let (kind, form, start) = (Kind::String, Form::Plain, at as u32);
            let node = Node { start, len: key_len, end, kind, form, key };
            pos += usize::from(gap.len);
            let (kind, start, len, next) = match bytes.get(pos) {
                Some(b'0'..=b'9' | b'-') => match short_or_plain(bytes, pos) {
                    Some((kind, next)) => (kind, pos, next - pos, next),
                    None => {
                        tape.nodes.push(node);
                        break Ahead::Value;
                    }
                },
                Some(b'"') => {
                    let start = pos + 1;
                    let next = start + ordinary(&bytes[start..]);
                    if bytes.get(next) != Some(&b'"') {
                        tape.nodes.push(node);
                        break Ahead::Value;
                    }
                    (Kind::String, start, next - start, next + 1)
                }
                byte => {
                    tape.nodes.push(node);
                    match byte {
                        Some(b'[') if tape.known_list(&keys.lists, bytes, &mut pos, limits) => {
                            continue;
                        }
                        _ => break Ahead::Value,
                    }
                }
            };
            let end = ((start - at) as u32) << 8 | key_len;
            let (start, len, form) = (start as u32, len as u32, Form::WithKey);
            tape.nodes.push(Node { start, len, end, kind, form, key });
            pos = next;
        };
        self.pos = pos;
        ahead
    }

    /// A key and its colon, or the end of the object; says whether it was the end. What comes
    /// before the key, the comma at least, begins at `from`.
    fn key(&mut self, after_comma: bool, from: usize) -> Result<bool, Stop> {
        match self.token()? {
            b'"' => {}
            b'}' => {
                if after_comma {
                    self.tape.notes.push((RepairKind::TrailingComma, self.pos));
                }
                self.close();
                return Ok(true);
            }
            _ => return self.bad("a key"),
        }
        let (node, notes) = (self.tape.nodes.len(), self.tape.notes.len());
        self.string()?;
        if self.token()? != b':' {
            return self.bad("`:`");
        }
        self.pos += 1;
        let key = self.tape.nodes[node];
        if key.form != Form::Escaped && notes == self.tape.notes.len() && self.token().is_ok() {
            let start = key.start as usize - from;
            let number =
                self.keys.learn(&self.bytes[from..self.pos], start..start + key.len as usize);
            self.tape.nodes[node].key = number;
        }
        Ok(false)
    }

    fn inside(&self, kind: Kind) -> bool {
        self.tape.open.last().is_some_and(|&top| self.tape.nodes[top as usize].kind == kind)
    }

    fn open(&mut self, kind: Kind) -> Result<(), Stop> {
        if self.tape.open.len() >= self.limits.depth {
            return Err(Stop::Limit { at: self.pos, what: "values nest too deep" });
        }
        self.tape.open.push(self.tape.nodes.len() as u32);
        let start = self.pos;
        self.pos += 1;
        self.object = kind == Kind::Object;
        self.push(kind, start, 0, false, 0)
    }

    /// Closes the innermost container at the bracket that is next.
    fn close(&mut self) {
        self.pos += 1;
        if let Some(top) = self.tape.open.pop() {
            let end = self.tape.nodes.len() as u32;
            let node = &mut self.tape.nodes[top as usize];
            node.end = end;
            node.len = self.pos as u32 - node.start;
            if node.kind == Kind::Array && self.tape.notes.is_empty() {
                let Node { start, len, .. } = *node;
                let nodes = &self.tape.nodes[top as usize..];
                let ahead = &self.bytes[start as usize..];
                let number = self.keys.lists.learn(ahead, len as usize, nodes, top);
                self.tape.nodes[top as usize].key = number;
            }
        }
        self.object = self.inside(Kind::Object);
    }

    #[inline]
    fn push(
        &mut self,
        kind: Kind,
        start: usize,
        len: usize,
        escaped: bool,
        key: u16,
    ) -> Result<(), Stop> {
        let nodes = &mut self.tape.nodes;
        if nodes.len() >= self.limits.nodes {
            return Err(Stop::Limit { at: start, what: "an element has too many values" });
        }
        let end = nodes.len() as u32 + 1;
        let form = if escaped { Form::Escaped } else { Form::Plain };
        nodes.push(Node { start: start as u32, len: len as u32, end, kind, form, key });
        Ok(())
    }

    /// The next byte that is not white space.
    #[inline]
    fn token(&mut self) -> Result<u8, Stop> {
        match self.bytes.get(self.pos) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.later_token(),
        }
    }

    fn later_token(&mut self) -> Result<u8, Stop> {
        // Indentation, in one step.
        if let Some([b'\n', spaces @ ..]) = self.bytes.get(self.pos..)
            && let Some(chunk) = spaces.first_chunk::<8>()
        {
            let others = u64::from_le_bytes(*chunk) ^ u64::from_le_bytes([b' '; 8]);
            self.pos += 1 + others.trailing_zeros() as usize / 8;
        }
        while let Some(&byte) = self.bytes.get(self.pos) {
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.pos += 1;
        }
        Err(Stop::More)
    }

    #[inline]
    fn string(&mut self) -> Result<(), Stop> {
        let start = self.pos + 1;
        let mut at = start;
        let mut escaped = false;
        let mut control = None;
        loop {
            at += ordinary(&self.bytes[at..]);
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                    if at > self.bytes.len() {
                        return Err(Stop::More);
                    }
                }
                Some(_) => {
                    control.get_or_insert(at);
                    at += 1;
                }
                None => return Err(Stop::More),
            }
        }
        self.pos = at + 1;
        if escaped {
            let text = &self.text[start..at];
            if !escapes_are_valid(text) {
                self.tape.notes.push((RepairKind::Escape, start));
            }
            self.tape.nul |= text.contains("\\u0000");
        }
        // One note for a string, however many: notes must not outgrow the nodes.
        if let Some(at) = control {
            self.tape.notes.push((RepairKind::Control, at));
        }
        self.push(Kind::String, start, at - start, escaped, 0)
    }

    #[inline]
    fn number(&mut self) -> Result<(), Stop> {
        let start = self.pos;
        let Some((kind, end)) = plain_number(self.bytes, start) else { return self.other_number() };
        self.pos = end;
        self.push(kind, start, end - start, false, 0)
    }

    /// A number with an exponent or without digits, at the end of the text, or none.
    fn other_number(&mut self) -> Result<(), Stop> {
        let start = self.pos;
        let mut kind = Kind::Int;
        let mut at = start + 1;
        loop {
            match self.bytes.get(at) {
                Some(b'0'..=b'9') => {}
                Some(b'.' | b'e' | b'E' | b'+' | b'-') => kind = Kind::Float,
                Some(b'I' | b'i' | b'n' | b'N') if at == start + 1 => return self.word(),
                Some(_) => break,
                None if self.ended => break,
                None => return Err(Stop::More),
            }
            at += 1;
        }
        let digits = &self.bytes[start..at];
        let good = match kind {
            // Leading zeros are let through: some writers pad, and the value is clear.
            Kind::Int => digits != b"-",
            _ => is_float(digits),
        };
        if !good {
            return self.bad("a number");
        }
        self.pos = at;
        self.push(kind, start, at - start, false, 0)
    }

    #[cold]
    fn word(&mut self) -> Result<(), Stop> {
        const WORDS: [(&str, Kind); 10] = [
            ("true", Kind::True),
            ("false", Kind::False),
            ("null", Kind::Null),
            ("NaN", Kind::Float),
            ("nan", Kind::Float),
            ("-nan", Kind::Float),
            ("Infinity", Kind::Float),
            ("-Infinity", Kind::Float),
            ("inf", Kind::Float),
            ("-inf", Kind::Float),
        ];
        let rest = &self.bytes[self.pos..];
        for (word, kind) in WORDS {
            let word = word.as_bytes();
            let follows = rest.get(word.len());
            if rest.starts_with(word) && !follows.is_some_and(u8::is_ascii_alphanumeric) {
                let start = self.pos;
                if kind == Kind::Float {
                    self.tape.notes.push((RepairKind::NotFinite, start));
                }
                self.pos += word.len();
                return self.push(kind, start, word.len(), false, 0);
            }
            if !self.ended && word.starts_with(rest) {
                return Err(Stop::More);
            }
        }
        self.bad("a value")
    }

    #[cold]
    fn bad<T>(&self, expected: &'static str) -> Result<T, Stop> {
        Err(Stop::Bad { at: self.pos, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, Stop> {
        let mut tape = Tape::default();
        tape.parse(text, false, &Limits::default(), &mut Keys::default())?;
        let kinds = tape.nodes.iter().map(|node| {
            let at = node.start as usize;
            format!("{:?} {}", node.kind, &text[at..at + node.len as usize])
        });
        Ok(kinds.collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn nodes_come_in_the_order_of_the_text() {
        assert_eq!(
            parse(r#"{"a": [1, -2.5e3, {}], "b\"": true} "#).as_deref(),
            Ok(
                r#"Object {"a": [1, -2.5e3, {}], "b\"": true} | String a | Array [1, -2.5e3, {}] | Int 1 | Float -2.5e3 | Object {} | String b\" | True true"#
            )
        );
    }

    #[test]
    fn a_value_shares_its_node_with_a_key_that_came_before() {
        let text = r#"{"ph": "X", "ts": -1.5, "args": {"n": 12, "list": [1], "text": "a\"b"}} "#;
        let text = &format!("{text}{}", " ".repeat(48));
        let (mut tape, mut keys) = (Tape::default(), Keys::default());
        let mut seen = |shared: usize| {
            tape.parse(text, true, &Limits::default(), &mut keys).unwrap();
            let with_key = |node: &&Node| node.form == Form::WithKey;
            assert_eq!(tape.nodes.iter().filter(with_key).count(), shared);
            let root = super::super::Element { text, tape: &tape }.root();
            let mut all = Vec::new();
            super::super::write_value(&mut all, root);
            String::from_utf8(all).unwrap()
        };
        let first = seen(0);
        assert_eq!(seen(3), first, "ph, ts and n, but no list and no text with escapes");
    }

    #[test]
    fn every_prefix_asks_for_more() {
        let text = r#"{"a": [1, -2.5e3, {}, nan], "b\"": true, "c": "x"}"#;
        for cut in 0..text.len() {
            assert_eq!(parse(&text[..cut]), Err(Stop::More), "{}", &text[..cut]);
        }
        assert!(parse(text).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, at, expected) in [
            (r#"{"a" 1}"#, 5, "`:`"),
            (r#"{a: 1}"#, 1, "a key"),
            (r#"[1 2]"#, 3, "`,` or `]`"),
            (r#"{"a": "b"c"}"#, 9, "`,` or `}`"),
            (r#"[1.2.3]"#, 1, "a number"),
            (r#"[-]"#, 1, "a number"),
            (r#"[nul]"#, 1, "a value"),
            (r#"[,]"#, 1, "a value"),
        ] {
            assert_eq!(parse(text), Err(Stop::Bad { at, expected }), "{text}");
        }
    }

    #[test]
    fn depth_is_limited_and_needs_no_stack() {
        let text = "[".repeat(100_000);
        assert!(matches!(parse(&text), Err(Stop::Limit { at: 128, .. })));
    }
}
