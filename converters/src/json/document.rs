//! The walk over a whole trace: members and events, one at a time.

use std::io::Read;

use super::batch::Batch;
use super::keys::Keys;
use super::problem::{Error, Limits, RepairKind, Repairs};
use super::repair::{Outcome, Place, Repairer};
use super::source::Source;
use super::tape::{Stop, Tape};
use super::text::boundary;
use super::value::Element;

/// One part of a trace.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// An entry of the array of events; nearly always an object.
    Event(Element<'a>),
    /// A member of the outermost object other than `traceEvents`, escapes in its key decoded.
    Member(&'a str, Element<'a>),
}

/// So many elements that cannot be repaired, and repair is no longer tried: the work it takes is
/// bounded for an element, and this bounds it for the input.
const TRIES: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Members,
    /// In the array of events; `true` when that is the document itself.
    Events(bool),
    /// Events stand one after the other, a line each, and nothing around them.
    Lines,
    End,
}

/// Where the element that was found stands.
#[derive(Clone, Copy, Debug)]
enum Found {
    Event(Text),
    Member(Text),
}

#[derive(Clone, Copy, Debug)]
enum Text {
    /// In the window from this mark on.
    Window(usize),
    Repaired,
}

/// A trace that is being read.
#[derive(Debug)]
pub struct Document<R> {
    source: Source<R>,
    limits: Limits,
    tape: Tape,
    keys: Keys,
    repairer: Repairer,
    repairs: Repairs,
    state: State,
    key: String,
    /// A comma has been read since the last element.
    comma: bool,
    /// Offset of the element that was found last.
    offset: u64,
    /// How often repair failed.
    tries: u64,
    /// There is a list of events.
    list: bool,
}

impl<R: Read> Document<R> {
    /// Begins to read `input`, which is not compressed.
    pub fn new(input: R, limits: Limits) -> Self {
        Self {
            source: Source::new(input),
            limits,
            tape: Tape::default(),
            keys: Keys::default(),
            repairer: Repairer::default(),
            repairs: Repairs::default(),
            state: State::Start,
            key: String::new(),
            comma: true,
            offset: 0,
            tries: 0,
            list: false,
        }
    }

    /// Begins to read events that stand one after the other, a line each (NDJSON).
    pub fn of_lines(input: R, limits: Limits) -> Self {
        Self { state: State::Lines, ..Self::new(input, limits) }
    }

    /// Whether there was a list of events, or an end to it is to come.
    pub fn has_list(&self) -> bool {
        self.list
    }

    /// What has been repaired so far.
    pub fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// Where in the input the last item began, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next member or event; `None` at the end.
    ///
    /// # Errors
    /// When the input is no trace at all, exceeds a limit, or cannot be read. Damage within a
    /// trace is no error; see [`Document::repairs`].
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, Error> {
        Ok(self.next_place()?.map(|(item, _)| item))
    }

    /// The next member or event, and where it stands in the input; `None` at the end.
    ///
    /// # Errors
    /// As [`Document::next_item`].
    pub fn next_place(&mut self) -> Result<Option<(Item<'_>, u64)>, Error> {
        let Some(found) = self.find()? else { return Ok(None) };
        let (Found::Event(text) | Found::Member(text)) = found;
        let text = match text {
            Text::Window(mark) => self.source.at(mark),
            Text::Repaired => &self.repairer.out,
        };
        let element = Element { text, tape: &self.tape };
        let item = match found {
            Found::Event(_) => Item::Event(element),
            Found::Member(_) => Item::Member(&self.key, element),
        };
        Ok(Some((item, self.offset)))
    }

    /// Adds the next member or event to a batch; says whether there was one.
    ///
    /// # Errors
    /// As [`Document::next_item`].
    pub fn next_into(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        let Some(found) = self.find()? else { return Ok(false) };
        let (key, Found::Event(text) | Found::Member(text)) = match found {
            Found::Event(_) => (None, found),
            Found::Member(_) => (Some(self.key.as_str()), found),
        };
        let text = match text {
            Text::Window(mark) => self.source.at(mark),
            Text::Repaired => &self.repairer.out,
        };
        batch.push(text, &mut self.tape, self.offset, key);
        Ok(true)
    }

    fn find(&mut self) -> Result<Option<Found>, Error> {
        loop {
            match self.state {
                State::Start => self.start()?,
                State::Members => {
                    if let Some(text) = self.member()? {
                        return Ok(Some(Found::Member(text)));
                    }
                }
                State::Events(alone) => {
                    if let Some(text) = self.event(alone)? {
                        return Ok(Some(Found::Event(text)));
                    }
                }
                State::Lines => {
                    if let Some(text) = self.line()? {
                        return Ok(Some(Found::Event(text)));
                    }
                }
                State::End => return Ok(None),
            }
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        if self.token()?.is_some() && self.source.rest().starts_with('\u{feff}') {
            self.source.consume('\u{feff}'.len_utf8());
        }
        self.state = match self.token()? {
            Some(b'{') => State::Members,
            Some(b'[') => {
                self.list = true;
                State::Events(true)
            }
            _ => return Err(self.unexpected("`{` or `[`")),
        };
        self.source.consume(1);
        Ok(())
    }

    fn member(&mut self) -> Result<Option<Text>, Error> {
        match self.token()? {
            Some(b',') => {
                self.source.consume(1);
                self.comma = true;
            }
            Some(b'}') => {
                self.source.consume(1);
                self.end()?;
            }
            Some(b'"') => {
                self.comma = false;
                return self.member_value();
            }
            Some(_) => {
                self.repairs.note(RepairKind::Unreadable, self.source.offset(0));
                self.resync(Place::Member)?;
            }
            None => self.missing_end(),
        }
        Ok(None)
    }

    fn member_value(&mut self) -> Result<Option<Text>, Error> {
        let Some(text) = self.element(Place::Key)? else { return Ok(None) };
        // A key is an element that is a string; repair may have taken it, but then it was one.
        let key = match text {
            Text::Window(mark) => Element { text: self.source.at(mark), tape: &self.tape },
            Text::Repaired => Element { text: &self.repairer.out, tape: &self.tape },
        };
        let key = key.root().as_str().map(|key| key.text().into_owned());
        self.key = key.unwrap_or_default();
        if self.token()? != Some(b':') {
            self.repairs.note(RepairKind::Unreadable, self.offset);
            self.resync(Place::Member)?;
            return Ok(None);
        }
        self.source.consume(1);
        if self.token()? == Some(b'[') && self.key == "traceEvents" {
            self.source.consume(1);
            self.state = State::Events(false);
            self.list = true;
            self.comma = true;
            return Ok(None);
        }
        if self.source.rest().is_empty() {
            self.repairs.note(RepairKind::Cut, self.source.offset(0));
            return Ok(None);
        }
        self.element(Place::Member)
    }

    fn event(&mut self, alone: bool) -> Result<Option<Text>, Error> {
        match self.token()? {
            Some(b',') => {
                self.source.consume(1);
                self.comma = true;
            }
            Some(b']') => {
                self.source.consume(1);
                if alone {
                    self.end()?;
                } else {
                    self.state = State::Members;
                }
            }
            Some(_) => {
                if !self.comma {
                    self.repairs.note(RepairKind::MissingComma, self.source.offset(0));
                }
                self.comma = false;
                return self.element(Place::Event);
            }
            None => self.missing_end(),
        }
        Ok(None)
    }

    fn line(&mut self) -> Result<Option<Text>, Error> {
        match self.token()? {
            Some(b',') => self.source.consume(1),
            Some(_) => return self.element(Place::Event),
            None => self.state = State::End,
        }
        Ok(None)
    }

    fn missing_end(&mut self) {
        self.repairs.note(RepairKind::MissingEnd, self.source.offset(0));
        self.state = State::End;
    }

    fn end(&mut self) -> Result<(), Error> {
        self.state = State::End;
        if self.token()?.is_some() {
            self.repairs.note(RepairKind::Trailing, self.source.offset(0));
        }
        Ok(())
    }

    /// The next byte that is not white space, not consumed; `None` at the end of the input.
    #[inline]
    fn token(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let rest = self.source.rest().as_bytes();
            let space = space(rest);
            let byte = rest.get(space).copied();
            self.source.consume(space);
            if byte.is_some() || self.source.ended() {
                return Ok(byte);
            }
            self.source.fill(&self.limits, &mut self.repairs)?;
        }
    }

    /// Puts the element that comes next on the tape and consumes it; `None` when it is lost.
    fn element(&mut self, place: Place) -> Result<Option<Text>, Error> {
        self.offset = self.source.offset(0);
        loop {
            let ended = self.source.ended();
            match self.tape.parse(self.source.rest(), ended, &self.limits, &mut self.keys) {
                Ok(len) => {
                    let next = first_token(&self.source.rest().as_bytes()[len..]);
                    if next.is_none() && !ended {
                        if self.fill_or_skip()? {
                            return Ok(None);
                        }
                        continue;
                    }
                    // An element that is followed by what cannot follow ended too early, at
                    // a quote that was not its end; unless that reading is no better.
                    if !place.follows(next) && self.repaired(place)? {
                        return Ok(Some(Text::Repaired));
                    }
                    let rest = self.source.rest();
                    if !place.follows(next) {
                        // The attempt may have moved the window, and the tape is as it was.
                        let _ = self.tape.parse(
                            rest,
                            self.source.ended(),
                            &self.limits,
                            &mut self.keys,
                        );
                    }
                    for &(kind, at) in &self.tape.notes {
                        self.repairs.note(kind, self.source.offset(at));
                    }
                    let mark = self.source.mark();
                    self.source.consume(len);
                    return Ok(Some(Text::Window(mark)));
                }
                Err(Stop::More) if !ended => {
                    if self.fill_or_skip()? {
                        return Ok(None);
                    }
                }
                Err(Stop::Limit { .. }) => {
                    self.skip()?;
                    return Ok(None);
                }
                Err(Stop::More | Stop::Bad { .. }) => return self.repair(place),
            }
        }
    }

    /// Reads on. An element that is too long for that is lost; says whether it was.
    fn fill_or_skip(&mut self) -> Result<bool, Error> {
        match self.source.fill(&self.limits, &mut self.repairs) {
            Ok(()) => Ok(false),
            Err(Error::Limit { .. }) => self.skip().map(|()| true),
            Err(error) => Err(error),
        }
    }

    /// Passes over an element that is beyond a limit, however long it is: to where its brackets
    /// are closed.
    #[cold]
    fn skip(&mut self) -> Result<(), Error> {
        self.repairs.note(RepairKind::Limit, self.source.offset(0));
        let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
        loop {
            let rest = self.source.rest().as_bytes();
            for (at, byte) in rest.iter().enumerate() {
                let ends = match byte {
                    _ if escaped => {
                        escaped = false;
                        false
                    }
                    b'\\' if in_string => {
                        escaped = true;
                        false
                    }
                    b'"' => {
                        in_string = !in_string;
                        !in_string && depth == 0
                    }
                    _ if in_string => false,
                    b'{' | b'[' => {
                        depth += 1;
                        false
                    }
                    b'}' | b']' => {
                        depth = depth.saturating_sub(1);
                        depth == 0
                    }
                    _ => false,
                };
                if ends {
                    self.source.consume(at + 1);
                    return Ok(());
                }
            }
            let all = rest.len();
            self.source.consume(all);
            if self.source.ended() {
                return Ok(());
            }
            self.source.fill(&self.limits, &mut self.repairs)?;
        }
    }

    #[cold]
    fn repair(&mut self, place: Place) -> Result<Option<Text>, Error> {
        if place != Place::Key && self.repaired(place)? {
            return Ok(Some(Text::Repaired));
        }
        let lost = self.source.offset(0);
        let found = self.resync(place)?;
        // At the end of the input the element was cut off rather than spoilt.
        let kind = if found { RepairKind::Unreadable } else { RepairKind::Cut };
        self.repairs.note(kind, lost);
        Ok(None)
    }

    /// Tries to repair the element that comes next. If that works it is on the tape and
    /// consumed.
    #[cold]
    fn repaired(&mut self, place: Place) -> Result<bool, Error> {
        if self.tries >= TRIES {
            return Ok(false);
        }
        loop {
            let rest = self.source.rest();
            let short = rest.len() <= self.limits.repair_bytes;
            let ended = self.source.ended() && short;
            let window = &rest[..boundary(rest, self.limits.repair_bytes)];
            match self.repairer.repair(window, ended, place) {
                Outcome::Repaired(len) => {
                    let text = &self.repairer.out;
                    if self.tape.parse(text, true, &self.limits, &mut self.keys).is_err() {
                        break;
                    }
                    for &(kind, at) in &self.repairer.notes {
                        self.repairs.note(kind, self.source.offset(at));
                    }
                    self.source.consume(len);
                    return Ok(true);
                }
                Outcome::More if short && !self.source.ended() => {
                    self.source.fill(&self.limits, &mut self.repairs)?;
                }
                Outcome::More | Outcome::Hopeless => break,
            }
        }
        self.tries += 1;
        Ok(false)
    }

    /// Skips to where an element seems to begin again; says whether there is such a place.
    fn resync(&mut self, place: Place) -> Result<bool, Error> {
        loop {
            let rest = self.source.rest();
            if let Some(at) = next_element(rest, place) {
                self.source.consume(at);
                self.comma = false;
                return Ok(true);
            }
            // What may be the beginning of such a place stays.
            let keep = boundary(rest, rest.len().saturating_sub(SEAM));
            let ended = self.source.ended();
            let skip = if ended { rest.len() } else { keep };
            self.source.consume(skip);
            if ended {
                return Ok(false);
            }
            self.source.fill(&self.limits, &mut self.repairs)?;
        }
    }

    fn unexpected(&self, expected: &'static str) -> Error {
        let found = match self.source.rest().chars().next() {
            Some(_) => format!("`{}`", self.source.rest().chars().take(20).collect::<String>()),
            None => "the end".to_owned(),
        };
        Error::Syntax { offset: self.source.offset(0), expected, found }
    }
}

/// How much white space `bytes` begin with.
#[inline]
fn space(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count()
}

#[inline]
fn first_token(bytes: &[u8]) -> Option<u8> {
    bytes.get(space(bytes)).copied()
}

/// How much text is enough to recognise the beginning of an element.
const SEAM: usize = 256;

/// Keys that events begin with.
const FIRST_KEYS: [&str; 10] = [
    "\"ph\"", "\"name\"", "\"cat\"", "\"pid\"", "\"tid\"", "\"ts\"", "\"dur\"", "\"id\"",
    "\"args\"", "\"s\"",
];

/// Where, after the first byte of `text`, the comma or bracket before the next element is.
pub(super) fn next_element(text: &str, place: Place) -> Option<usize> {
    let starts = |text: &str| {
        let Some(text) = text.trim_start().strip_prefix('{') else { return false };
        FIRST_KEYS.iter().any(|key| text.trim_start().starts_with(key))
    };
    let keyed = |text: &str| {
        let name = text.trim_start().strip_prefix('"').unwrap_or("");
        let name = name.split_once('"').filter(|(name, _)| name.len() < SEAM / 2);
        name.is_some_and(|(name, rest)| !name.is_empty() && rest.trim_start().starts_with(':'))
    };
    let mut from = 1;
    loop {
        let at = from + text.get(from..)?.find([',', ']'])?;
        let rest = &text[at + 1..];
        let before = text[..at].trim_end();
        let hit = match (place, text.as_bytes()[at]) {
            (Place::Event, b',') => before.ends_with('}') && starts(rest),
            (Place::Event, _) => {
                let after = rest.trim_start();
                before.ends_with(['}', ','])
                    && after.strip_prefix(',').map_or(after.starts_with('}'), keyed)
            }
            (Place::Member | Place::Key, b',') => keyed(rest),
            (Place::Member | Place::Key, _) => false,
        };
        if hit {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests;
