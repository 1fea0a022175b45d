//! A second reading of an element that is not JSON.
//!
//! Kineto lets quotes through that it should have escaped, so that a string seems to end too
//! early. Read on the assumption that any quote may or may not be the end of its string: take
//! the first one after which the text goes on as JSON must, and when that leads nowhere, come
//! back and take the next. An element is repaired when a reading takes it to its end *and* what
//! follows is the next element. Of several readings the first is taken, except that a string
//! whose brackets do not match is tried last: `["a", "b"]` within quotes is one string.
//!
//! The work on one element is bounded; an element that would take more is given up.

use super::document::next_element;
use super::problem::RepairKind;
use super::text::{boundary, escapes_are_valid};

/// Where an element stands, which says what may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the array of events.
    Event,
    /// Under a key of the outermost object.
    Member,
    /// Such a key.
    Key,
}

impl Place {
    /// Whether an element may be followed by this byte; `None` is the end of the input.
    pub(super) fn follows(self, byte: Option<u8>) -> bool {
        match self {
            Place::Event => matches!(byte, Some(b',' | b']' | b'{') | None),
            Place::Member => matches!(byte, Some(b',' | b'}') | None),
            Place::Key => true,
        }
    }
}

/// How a reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The element took this many bytes; its repaired text and the repairs are in the reader.
    Repaired(usize),
    /// No reading makes sense of it, or none within the bound on work.
    Hopeless,
    /// Readings ran into the end of the text, and more is to come.
    More,
}

/// Bytes looked at for one element before it is given up.
const WORK: usize = 1 << 20;
const DEPTH: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    After,
}

/// A string whose end was a guess, to come back to.
#[derive(Debug)]
struct Guess {
    /// First byte of the string.
    start: usize,
    /// Where to look for another end.
    from: usize,
    /// An end that was passed over, to be tried next.
    passed: Option<usize>,
    key: bool,
    stack: Vec<u8>,
    out: usize,
    notes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Repairer {
    /// The repaired element.
    pub(super) out: String,
    /// What was repaired, with its place in the text.
    pub(super) notes: Vec<(RepairKind, usize)>,
    stack: Vec<u8>,
    guesses: Vec<Guess>,
    work: usize,
    ran_out: bool,
}

/// This reading leads nowhere.
struct DeadEnd;

struct Run<'a> {
    bytes: &'a [u8],
    text: &'a str,
    pos: usize,
    expect: Expect,
    place: Place,
    ended: bool,
    kept: &'a mut Repairer,
}

impl Repairer {
    /// Reads the element that `text` begins with.
    pub(super) fn repair(&mut self, text: &str, ended: bool, place: Place) -> Outcome {
        self.out.clear();
        self.notes.clear();
        self.stack.clear();
        self.guesses.clear();
        self.work = 0;
        self.ran_out = false;
        let bytes = text.as_bytes();
        let mut run = Run { bytes, text, pos: 0, expect: Expect::Value, place, ended, kept: self };
        loop {
            match run.step() {
                Ok(false) if run.kept.work < WORK => {}
                Ok(true) => return Outcome::Repaired(run.pos),
                Err(DeadEnd) if run.kept.work < WORK && run.back() => {}
                _ if run.kept.ran_out && !ended => return Outcome::More,
                _ => return Outcome::Hopeless,
            }
        }
    }
}

impl Run<'_> {
    /// Reads one token; says whether the element is complete.
    fn step(&mut self) -> Result<bool, DeadEnd> {
        self.kept.work += 1;
        self.pos = self.skip_space(self.pos);
        if self.expect == Expect::After && self.kept.stack.is_empty() {
            return if self.may_end(self.pos) { Ok(true) } else { Err(DeadEnd) };
        }
        let Some(&byte) = self.bytes.get(self.pos) else {
            self.kept.ran_out = true;
            return Err(DeadEnd);
        };
        let object = self.kept.stack.last() == Some(&b'{');
        match (self.expect, byte) {
            (Expect::Value | Expect::ValueOrEnd, b'{' | b'[') => {
                if self.kept.stack.len() >= DEPTH {
                    return Err(DeadEnd);
                }
                self.kept.stack.push(byte);
                let after = if byte == b'{' { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
                self.take(byte, after);
            }
            (Expect::Value | Expect::ValueOrEnd, b'"') => {
                return self.string(false, self.pos + 1, self.pos + 1, None);
            }
            (Expect::Key | Expect::KeyOrEnd, b'"') => {
                return self.string(true, self.pos + 1, self.pos + 1, None);
            }
            (Expect::ValueOrEnd | Expect::After, b']') if !object => self.close(byte),
            (Expect::KeyOrEnd | Expect::After, b'}') if object => self.close(byte),
            (Expect::Colon, b':') => self.take(byte, Expect::Value),
            (Expect::After, b',') => {
                let next = self.skip_space(self.pos + 1);
                if matches!(self.bytes.get(next), Some(b']' | b'}')) {
                    self.kept.notes.push((RepairKind::TrailingComma, self.pos));
                    self.pos = next;
                } else {
                    self.take(byte, if object { Expect::Key } else { Expect::Value });
                }
            }
            (Expect::Value | Expect::ValueOrEnd, _) => return self.scalar(),
            _ => return Err(DeadEnd),
        }
        Ok(false)
    }

    fn take(&mut self, byte: u8, expect: Expect) {
        self.kept.out.push(char::from(byte));
        self.pos += 1;
        self.expect = expect;
    }

    fn close(&mut self, byte: u8) {
        self.kept.stack.pop();
        self.take(byte, Expect::After);
    }

    fn scalar(&mut self) -> Result<bool, DeadEnd> {
        let rest = &self.text[self.pos..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
        let Some(len) = end.filter(|&len| len > 0) else { return Err(DeadEnd) };
        let word = &rest[..len];
        match word {
            "true" | "false" | "null" => {}
            "-nan" => self.kept.notes.push((RepairKind::NotFinite, self.pos)),
            _ => match word.parse::<f64>() {
                Ok(number) if word.ends_with(|c: char| c.is_ascii_digit()) => {
                    // A sign is more than JSON allows, and more than the tape does.
                    if !number.is_finite() || word.starts_with('+') {
                        return Err(DeadEnd);
                    }
                }
                Ok(_) if word.starts_with(['N', 'n', 'I', 'i', '-']) => {
                    self.kept.notes.push((RepairKind::NotFinite, self.pos));
                }
                _ => return Err(DeadEnd),
            },
        }
        self.kept.out.push_str(word);
        self.pos += len;
        self.expect = Expect::After;
        Ok(false)
    }

    /// Comes back to the last string whose end was a guess, and takes another end.
    fn back(&mut self) -> bool {
        while let Some(guess) = self.kept.guesses.pop() {
            self.kept.out.truncate(guess.out);
            self.kept.notes.truncate(guess.notes);
            self.kept.stack = guess.stack;
            if self.string(guess.key, guess.start, guess.from, guess.passed).is_ok() {
                return true;
            }
            if self.kept.work >= WORK {
                return false;
            }
        }
        false
    }

    /// Reads the string that begins at `start` up to an end at or after `from`, or at `passed`.
    fn string(
        &mut self,
        key: bool,
        start: usize,
        from: usize,
        passed: Option<usize>,
    ) -> Result<bool, DeadEnd> {
        let (end, from, passed) = match passed {
            Some(end) => (end, from, None),
            None => {
                let first = self.end_from(key, from).ok_or(DeadEnd)?;
                match self.better_end(key, start, first) {
                    Some(better) => (better, better + 1, Some(first)),
                    None => (first, first + 1, None),
                }
            }
        };
        let kept = &mut *self.kept;
        let (stack, out, notes) = (kept.stack.clone(), kept.out.len(), kept.notes.len());
        kept.guesses.push(Guess { start, from, passed, key, stack, out, notes });
        self.copy(start, end);
        self.pos = end + 1;
        self.expect = if key { Expect::Colon } else { Expect::After };
        Ok(false)
    }

    /// The first quote at or after `from` with which the string may end.
    fn end_from(&mut self, key: bool, from: usize) -> Option<usize> {
        let mut at = from;
        // A quote that was passed over makes one wary: the string must not run into what is
        // plainly the next key or the next event.
        let mut wary = self.bytes[from - 1] != b'"' || key;
        loop {
            self.kept.work += 1;
            if self.kept.work >= WORK {
                return None;
            }
            match self.bytes.get(at) {
                Some(b'"') if self.may_end_string(key, at + 1) => return Some(at),
                Some(b'"') => {
                    wary = true;
                    at += 1;
                }
                Some(b',' | b'{' | b'}' | b'\n') if wary && key => return None,
                Some(b'}') if wary && self.next_begins(at) => return None,
                Some(b'\\') if escapes_are_valid(self.text.get(at..at + 2).unwrap_or("")) => {
                    at += 2;
                }
                Some(_) => at += 1,
                None => {
                    self.kept.ran_out = true;
                    return None;
                }
            }
        }
    }

    /// Whether an element ends with the bracket at `at`, and another begins.
    fn next_begins(&self, at: usize) -> bool {
        let end = boundary(self.text, at + 64);
        next_element(&self.text[at..end], self.place).is_some()
    }

    /// When the brackets in the string that ends at `first` do not match: an end with which
    /// they do, not beyond what looks like a key.
    fn better_end(&mut self, key: bool, start: usize, first: usize) -> Option<usize> {
        if key || balanced(&self.bytes[start..first]) {
            return None;
        }
        let mut last = first;
        loop {
            let end = self.end_from(key, last + 1)?;
            let between = &self.bytes[last + 1..end];
            let has_key = between.iter().enumerate().any(|(at, &byte)| {
                byte == b'"' && self.bytes.get(self.skip_space(last + at + 2)) == Some(&b':')
            });
            if has_key || between.contains(&b'\n') {
                return None;
            }
            self.kept.work += end - start;
            if balanced(&self.bytes[start..end]) {
                return Some(end);
            }
            last = end;
        }
    }

    /// Whether a string may end before `at`, going by what is there.
    fn may_end_string(&mut self, key: bool, at: usize) -> bool {
        let at = self.skip_space(at);
        let Some(&byte) = self.bytes.get(at) else {
            self.kept.ran_out = true;
            return false;
        };
        if key {
            return byte == b':';
        }
        let inside = self.kept.stack.last();
        match (byte, inside) {
            (b'}', Some(b'{')) | (b']', Some(b'[')) => true,
            (b',', Some(b'{')) => {
                matches!(self.bytes.get(self.skip_space(at + 1)), Some(b'"' | b'}'))
            }
            (b',', Some(_)) => true,
            (_, None) => self.may_end(at),
            _ => false,
        }
    }

    /// Whether the element may end before `at`.
    fn may_end(&mut self, at: usize) -> bool {
        let Some(&byte) = self.bytes.get(at) else {
            self.kept.ran_out = true;
            return self.ended;
        };
        let next = self.bytes.get(self.skip_space(at + 1));
        match (self.place, byte) {
            (Place::Event, b',') => matches!(next, Some(b'{' | b']') | None),
            (Place::Event, b']' | b'{') => true,
            (Place::Member, b',') => matches!(next, Some(b'"' | b'}') | None),
            (Place::Member, b'}') => true,
            _ => false,
        }
    }

    /// Copies a string, escaping what should have been.
    fn copy(&mut self, start: usize, end: usize) {
        const HEX: [char; 16] =
            ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        let text = &self.text[start..end];
        let kept = &mut *self.kept;
        kept.work += text.len();
        kept.out.push('"');
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    let next = chars.peek().map(|&(_, next)| next);
                    kept.out.push('\\');
                    if let Some(next @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) = next {
                        kept.out.push(next);
                        chars.next();
                    } else if !text[at..].get(..6).is_some_and(escapes_are_valid) {
                        kept.out.push('\\');
                        kept.notes.push((RepairKind::Escape, start + at));
                    }
                }
                '"' => {
                    kept.out.push_str("\\\"");
                    kept.notes.push((RepairKind::Quote, start + at));
                }
                '\0'..='\x1f' => {
                    kept.out.push_str("\\u00");
                    kept.out.push(HEX[c as usize >> 4]);
                    kept.out.push(HEX[c as usize & 15]);
                    kept.notes.push((RepairKind::Control, start + at));
                }
                c => kept.out.push(c),
            }
        }
        kept.out.push('"');
    }

    fn skip_space(&self, mut at: usize) -> usize {
        while matches!(self.bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        at
    }
}

/// Whether every bracket in `text` has its partner.
fn balanced(text: &[u8]) -> bool {
    let mut open = Vec::new();
    for &byte in text {
        match byte {
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            b')' | b']' | b'}' if open.pop() != Some(byte) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> Result<String, Outcome> {
        let mut repairer = Repairer::default();
        match repairer.repair(text, true, Place::Event) {
            Outcome::Repaired(_) => {
                serde_json::from_str::<serde_json::Value>(&repairer.out)
                    .unwrap_or_else(|error| panic!("{error}: {}", repairer.out));
                Ok(repairer.out)
            }
            outcome => Err(outcome),
        }
    }

    #[test]
    fn quotes_are_escaped_where_one_reading_makes_sense() {
        for (text, repaired_to) in [
            (r#"{"a":"f("x")","b":1}]"#, r#"{"a":"f(\"x\")","b":1}"#),
            (r#"{"a":["","/"cubic/""],"b":1},{"#, r#"{"a":["","/\"cubic/\""],"b":1}"#),
            (r#"{"a":["", "["x", "y"]"]},{"#, r#"{"a":["","[\"x\", \"y\"]"]}"#),
            (r#"{"a":"say "hi", twice","b":2}]"#, r#"{"a":"say \"hi\", twice","b":2}"#),
            (r#"{"a":""quoted"","b":2}]"#, r#"{"a":"\"quoted\"","b":2}"#),
            (r#"{"a":"x(", "b":"y" z"}]"#, r#"{"a":"x(","b":"y\" z"}"#),
            (r#"{"a":"{"k": 1, "l": 2}","b":2}]"#, r#"{"a":"{\"k\": 1, \"l\": 2}","b":2}"#),
            (r#"{"a":"C:\x "y" \u00e9\n"}]"#, r#"{"a":"C:\\x \"y\" \u00e9\n"}"#),
            (r#"{"a":"x" y",}, {"#, r#"{"a":"x\" y"}"#),
            (r#"{"a":"x" y","b":NaN,"c":-inf}"#, r#"{"a":"x\" y","b":NaN,"c":-inf}"#),
        ]
        .map(|(text, to)| (text, to.to_owned()))
        {
            let mut repairer = Repairer::default();
            let outcome = repairer.repair(text, true, Place::Event);
            assert!(matches!(outcome, Outcome::Repaired(_)), "{text}");
            assert_eq!(repairer.out, repaired_to, "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_given_up() {
        for text in [r#"{"a" "b"}]"#, "{]", "x", r#"{"a":1}}"#, r#"{"a":"b""#, r#"{"a":"b"#] {
            assert_eq!(repaired(text), Err(Outcome::Hopeless), "{text}");
        }
    }

    #[test]
    fn work_is_bounded() {
        let many = format!(r#"{{"a":[{}}}"#, r#""x"y","#.repeat(20_000));
        assert_eq!(repaired(&many), Err(Outcome::Hopeless));
        let deep = "[".repeat(100_000);
        assert_eq!(repaired(&deep), Err(Outcome::Hopeless));
    }
}
