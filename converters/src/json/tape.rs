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

use super::problem::{Limits, RepairKind};
use super::text::escapes_are_valid;
use super::value::Kind;

/// One value or key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Where the text begins in the element; for a string, after its quote.
    pub(super) start: u32,
    /// How long the text is, in bytes.
    pub(super) len: u32,
    /// Index of the node after this value.
    pub(super) end: u32,
    pub(super) kind: Kind,
    /// A string that has escapes in it.
    pub(super) escaped: bool,
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
    ) -> Result<usize, Stop> {
        self.nodes.clear();
        self.open.clear();
        self.notes.clear();
        self.nul = false;
        // Positions are kept in 32 bits; a window never comes near that.
        let bytes = text.as_bytes();
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        let mut parser = Parser { text, bytes, pos: 0, ended, tape: self, limits };
        parser.element()?;
        Ok(parser.pos)
    }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    ended: bool,
    tape: &'a mut Tape,
    limits: &'a Limits,
}

impl Parser<'_> {
    fn element(&mut self) -> Result<(), Stop> {
        loop {
            let byte = self.token()?;
            let mut closed = false;
            match byte {
                b'"' => self.string()?,
                b'{' => {
                    self.open(Kind::Object)?;
                    closed = self.key(false)?;
                }
                b'[' => {
                    self.open(Kind::Array)?;
                    if self.token()? == b']' {
                        self.close();
                        closed = true;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b']' if self.inside(Kind::Array) => {
                    self.tape.notes.push((RepairKind::TrailingComma, self.pos));
                    self.close();
                    closed = true;
                }
                _ => self.word()?,
            }
            // A container that was opened just now and has something in it: its first value.
            if matches!(byte, b'{' | b'[') && !closed {
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
            let Some(&top) = self.tape.open.last() else { return Ok(true) };
            let object = self.tape.nodes[top as usize].kind == Kind::Object;
            match self.token()? {
                b',' => {
                    self.pos += 1;
                    if !object || !self.key(true)? {
                        return Ok(false);
                    }
                }
                b'}' if object => self.close(),
                b']' if !object => self.close(),
                _ if object => return self.bad("`,` or `}`"),
                _ => return self.bad("`,` or `]`"),
            }
        }
    }

    /// A key and its colon, or the end of the object; says whether it was the end.
    fn key(&mut self, after_comma: bool) -> Result<bool, Stop> {
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
        self.string()?;
        if self.token()? != b':' {
            return self.bad("`:`");
        }
        self.pos += 1;
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
        self.push(kind, start, 0, false)
    }

    /// Closes the innermost container at the bracket that is next.
    fn close(&mut self) {
        self.pos += 1;
        if let Some(top) = self.tape.open.pop() {
            let end = self.tape.nodes.len() as u32;
            let node = &mut self.tape.nodes[top as usize];
            node.end = end;
            node.len = self.pos as u32 - node.start;
        }
    }

    #[inline]
    fn push(&mut self, kind: Kind, start: usize, len: usize, escaped: bool) -> Result<(), Stop> {
        let nodes = &mut self.tape.nodes;
        if nodes.len() >= self.limits.nodes {
            return Err(Stop::Limit { at: start, what: "an element has too many values" });
        }
        let end = nodes.len() as u32 + 1;
        nodes.push(Node { start: start as u32, len: len as u32, end, kind, escaped });
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
        self.push(Kind::String, start, at - start, escaped)
    }

    #[inline]
    fn number(&mut self) -> Result<(), Stop> {
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
        self.push(kind, start, at - start, false)
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
                return self.push(kind, start, word.len(), false);
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

/// Whether these are the digits of a number with a fraction or an exponent; digits on both
/// sides of the point are not insisted on. What it amounts to, most readers never ask.
fn is_float(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    let (fraction, rest) = match &text[whole..] {
        [b'.', rest @ ..] => (digits(rest), &rest[digits(rest)..]),
        rest => (0, rest),
    };
    let exponent = match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            !rest.is_empty() && digits(rest) == rest.len()
        }
        _ => false,
    };
    whole + fraction > 0 && exponent
}

/// How many bytes at the start of `bytes` are neither a quote, a backslash nor a control
/// character. Eight at a time: most strings of a trace are short, and a call to a vectorised
/// search costs more than it saves on them.
#[inline]
pub(super) fn ordinary(bytes: &[u8]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (LOW * b'"' as u64);
        let slash = word ^ (LOW * b'\\' as u64);
        // A byte is zero, or below 0x20, where subtracting borrows; the lowest one found is
        // exact, and only that one is used.
        let found = (quote.wrapping_sub(LOW) & !quote)
            | (slash.wrapping_sub(LOW) & !slash)
            | (word.wrapping_sub(LOW * 0x20) & !word);
        let found = found & HIGH;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, Stop> {
        let mut tape = Tape::default();
        tape.parse(text, false, &Limits::default())?;
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
    fn floats_are_what_the_standard_library_takes_for_floats() {
        for text in [
            "1.5", "-1.5", "1.", ".5", "-.5", "1e5", "1E-5", "1.5e+5", "1.e5", ".", "-", "e5",
            "1e", "1e+", "1.2.3", "1-2", "1e5.0", "--1.0", "-e", ".e1", "1e5e5", "00.5",
        ] {
            assert_eq!(is_float(text.as_bytes()), text.parse::<f64>().is_ok(), "{text}");
        }
    }

    #[test]
    fn depth_is_limited_and_needs_no_stack() {
        let text = "[".repeat(100_000);
        assert!(matches!(parse(&text), Err(Stop::Limit { at: 128, .. })));
    }

    #[test]
    fn the_search_finds_what_a_plain_loop_finds() {
        for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
            for at in 0..40 {
                let mut bytes = [0xc3, b' ', 0x7f, 0x80, 0xff, b'!', b'#', b'['].repeat(5);
                bytes[at] = special;
                assert_eq!(ordinary(&bytes), at);
            }
        }
        assert_eq!(ordinary(&[b'a'; 19]), 19);
    }
}
