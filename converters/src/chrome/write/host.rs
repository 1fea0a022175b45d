//! Slices and moments.

use std::io::{self, Write};

use super::Writer;
use crate::chrome::own::Out;
use crate::chrome::places::Row;
use crate::json::write_uint;
use crate::trace::{EventRef, Instant, InstantId, Position, Slice, SliceId, StrId, Value};

impl<W: Write> Writer<'_, W> {
    /// A slice, unless it is `kept` in another way, and the ends of arrows at it.
    pub(super) fn slice(&mut self, id: SliceId, kept: bool) -> io::Result<()> {
        let trace = self.line.trace;
        let event = EventRef::Slice(id);
        if let Some((step, cat)) = self.operators.as_ref().and_then(|all| all.step(id)) {
            return self.plain(id, &step, cat);
        }
        let slice = trace.slices.get(id);
        let position = trace.slices.position(id);
        let mut correlation = 0;
        if position.is_some_and(|position| position.marks != 0) {
            correlation = self.correlation_of(&slice);
        }
        let row = self.places.track(slice.track);
        if let Row::Async(pid) = row {
            let ids = pid.clone();
            if !kept {
                self.overlapping(id, &slice, &ids, b'b', slice.start.0)?;
            }
            if let Some(end) = slice.end()
                && trace.slices.end_position(id).is_none()
            {
                self.overlapping(id, &slice, &ids, b'e', end.0)?;
            }
            return self.arrows(event, position, correlation, (&ids, slice.start.0));
        }
        if !kept {
            self.plain(id, &slice, trace.strings.get(slice.category))?;
        }
        if (correlation != 0 || !self.arrows.at(event).is_empty())
            && let Row::Plain { ids, .. } = self.places.track(slice.track)
        {
            let ids = ids.clone();
            self.arrows(event, position, correlation, (&ids, slice.start.0))?;
        }
        Ok(())
    }

    fn correlation_of(&self, slice: &Slice) -> u64 {
        let args = &self.line.trace.args;
        match self.names.correlation.and_then(|name| args.find(slice.args, name)) {
            Some(Value::I64(n)) => u64::try_from(n).unwrap_or(0),
            Some(Value::U64(n)) => n,
            _ => 0,
        }
    }

    /// A slice that no other crosses: complete, or its beginning where its end is an event of
    /// its own.
    fn plain(&mut self, id: SliceId, slice: &Slice, cat: &str) -> io::Result<()> {
        let Row::Plain { ids, .. } = self.places.track(slice.track) else { return Ok(()) };
        self.out.begin();
        let out = &mut self.out.text;
        let apart = self.line.trace.slices.end_position(id).is_some();
        let complete = slice.dur.is_finished() && !apart;
        self.line.head(out, if complete { b'X' } else { b'B' }, cat, None, slice.name);
        self.line.quotes.write(out, if complete { b'X' } else { b'B' }, ids, false);
        self.line.time(out, slice.start.0);
        if complete {
            out.extend_from_slice(b", \"dur\": ");
            self.line.duration(out, slice.dur.0);
        }
        self.line.members(out, slice.args, &[]);
        let event = EventRef::Slice(id);
        let launched = self.own.as_ref().and_then(|_| self.arrows.launched_at(event));
        let launched = launched.filter(|_| {
            let find = |name| self.line.trace.args.find(slice.args, name);
            self.names.correlation.and_then(find).is_none()
        });
        self.line.args(out, slice.args, |text, first| {
            let mut out = Out { text, first };
            if let Some(operators) = &self.operators {
                operators.slice(self.line.trace, (id, slice.category, slice.args), &mut out);
            }
            if let Some(number) = launched {
                out.put("correlation", |to| write_uint(to, number));
            }
        });
        self.out.end()
    }

    /// The end of a slice, where it is an event of its own.
    pub(super) fn end(&mut self, id: SliceId) -> io::Result<()> {
        let slice = self.line.trace.slices.get(id);
        let Some(end) = slice.end() else { return Ok(()) };
        match self.places.track(slice.track) {
            Row::Async(pid) => {
                let pid = pid.clone();
                self.overlapping(id, &slice, &pid, b'e', end.0)
            }
            Row::Plain { ids, .. } => {
                self.out.begin();
                let out = &mut self.out.text;
                let trace = self.line.trace;
                let position = trace.slices.end_position(id);
                if position.is_some_and(|position| position.marks & Position::BARE != 0) {
                    self.line.head(out, b'E', "", None, StrId::NONE);
                } else {
                    let cat = trace.strings.get(slice.category);
                    self.line.head(out, b'E', cat, None, slice.name);
                }
                out.extend_from_slice(ids.as_bytes());
                self.line.time(out, end.0);
                self.out.end()
            }
        }
    }

    /// The beginning or the end, `ph`, of a slice that others may overlap; an id joins them.
    fn overlapping(
        &mut self,
        id: SliceId,
        slice: &Slice,
        pid: &str,
        ph: u8,
        time: i64,
    ) -> io::Result<()> {
        let said = match self.line.find_foreign(slice.args, "ph") {
            Some(Value::Str(said)) => self.line.trace.strings.get(said),
            _ => "",
        };
        let said = match (said, ph) {
            ("S", b'b') => b'S',
            ("S", b'e') => b'F',
            _ => ph,
        };
        self.async_head(said, slice.category, slice.name, id.index() as u64 + 1, slice.args);
        let out = &mut self.out.text;
        out.extend_from_slice(pid.as_bytes());
        self.line.time(out, time);
        let except: &[&str] = if ph == b'b' { &["id", "args"] } else { &["id", "args", "s"] };
        self.line.members(out, slice.args, except);
        if ph == b'b' {
            self.line.members_only(out, slice.args, "args");
            self.line.args(out, slice.args, |_, _| {});
        }
        self.out.end()
    }

    fn async_head(
        &mut self,
        ph: u8,
        cat: StrId,
        name: StrId,
        id: u64,
        args: Option<crate::trace::ArgsId>,
    ) {
        self.out.begin();
        let out = &mut self.out.text;
        self.line.head(out, ph, self.line.trace.strings.get(cat), None, name);
        if self.line.find_foreign(args, "id2").is_some() {
            return;
        }
        out.extend_from_slice(b"\"id\": ");
        match self.line.find_foreign(args, "id") {
            Some(id) => self.line.value(out, id),
            None => write_uint(out, id),
        }
        out.extend_from_slice(b", ");
    }

    /// A moment, unless it is `kept` in another way, and the ends of arrows at it.
    pub(super) fn instant(&mut self, id: InstantId, kept: bool) -> io::Result<()> {
        let instant: Instant = self.line.trace.instants.get(id);
        let cat = self.line.trace.strings.get(instant.category);
        if kept {
            let (ids, start) = self.whereabouts(EventRef::Instant(id));
            return self.arrows(EventRef::Instant(id), None, 0, (&ids, start));
        }
        let row = self.places.track(instant.track).clone();
        let is_async = matches!(row, Row::Async(_));
        let ids = match row {
            Row::Plain { ids, scope } => {
                self.out.begin();
                let given = match self.line.find_foreign(instant.args, "s") {
                    Some(Value::Str(text)) => self.line.trace.strings.get(text).chars().next(),
                    _ => None,
                };
                let given = given.filter(char::is_ascii_alphanumeric);
                let ph = match self.line.find_foreign(instant.args, "ph") {
                    Some(Value::Str(text)) => self.line.trace.strings.get(text).bytes().next(),
                    _ => None,
                };
                let ph = ph.filter(|ph| matches!(ph, b'I' | b'R')).unwrap_or(b'i');
                let out = &mut self.out.text;
                let natural = (!self.line.bare_moments).then_some(scope);
                self.line.head(out, ph, cat, given.or(natural), instant.name);
                ids
            }
            Row::Async(pid) => {
                let number = id.index() as u64 + 1;
                self.async_head(b'n', instant.category, instant.name, number, instant.args);
                pid
            }
        };
        let out = &mut self.out.text;
        self.line.quotes.write(out, if is_async { b'n' } else { b'i' }, &ids, false);
        self.line.time(out, instant.time.0);
        self.line.members(out, instant.args, if is_async { &["s", "id"] } else { &["s"] });
        self.line.args(out, instant.args, |_, _| {});
        self.out.end()?;
        self.arrows(EventRef::Instant(id), None, 0, (&ids, instant.time.0))
    }
}
