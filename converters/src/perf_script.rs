//! The text of `perf script`.
//!
//! ```text
//! python3  6048/6048  48545.836715:    5000000 cpu-clock:
//!           16d8a7 __memmove_avx512+0xa7 (/usr/lib/libc.so.6)
//!           2b1d70 _PyEval_EvalFrameDefault+0x1f0 (/usr/bin/python3.11)
//!
//! swapper     0 [003] 48545.836800: sched:sched_switch: prev_comm=…
//! ```
//! A heading names command, process and thread, and says when; the lines below are the stack, the
//! innermost function first. Samples of one thread that follow each other become slices; an event
//! that says more than its name, such as a tracepoint's, is a moment. Without process ids (`perf
//! script -F +pid` prints them) each thread is a process of its own.

use crate::order::Order as _;
use std::io::{BufRead, BufReader, Read};

use hashbrown::HashMap;

use crate::builder::Builder;
use crate::stacks::{Frame, Stack, ends};
use crate::trace::{StrId, Trace, Value};

/// A longer line is cut: symbols of C++ can have thousands of letters, but not that many.
const LONGEST: u64 = 1 << 16;
/// So many functions of a stack are kept, from the outermost on.
const DEEPEST: usize = 500;

/// Reads the text.
///
/// # Errors
/// Those of the input, and when no line of it is a heading.
pub(crate) fn read(input: impl Read) -> std::io::Result<Option<Trace>> {
    let mut lines = BufReader::new(input);
    let mut reader = Reader::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LONGEST {
            lines.skip_until(b'\n')?;
        }
        reader.line(&String::from_utf8_lossy(&line));
    }
    Ok(reader.finish())
}

/// Whether a file begins with a heading.
pub(crate) fn is_perf_script(first: &[u8]) -> bool {
    let text = String::from_utf8_lossy(first);
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.next().is_some_and(|line| heading(line).is_some())
}

/// What a heading says.
#[derive(Debug, PartialEq)]
struct Heading<'a> {
    command: &'a str,
    pid: Option<i64>,
    tid: i64,
    time: i64,
    event: &'a str,
    /// What stands behind the event's name.
    rest: &'a str,
}

fn heading(line: &str) -> Option<Heading<'_>> {
    if line.starts_with(char::is_whitespace) && line.trim_start().len() + 16 < line.len() {
        return None;
    }
    // Commands may have blanks in them; so the time, which ends with a colon, is looked for.
    let mut at = 0;
    for word in line.split_inclusive(char::is_whitespace) {
        let text = word.trim_end();
        if let Some(time) = text.strip_suffix(':').and_then(nanoseconds)
            && let Some((command, pid, tid)) = thread(&line[..at])
        {
            let rest = line[at + word.len()..].trim();
            // How often it happened, which may be left out, comes before the name.
            let rest = match rest.split_once(char::is_whitespace) {
                Some((count, rest)) if count.bytes().all(|b| b.is_ascii_digit()) => rest.trim(),
                _ => rest,
            };
            let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
            let event = rest[..end].trim_end_matches(':');
            return Some(Heading { command, pid, tid, time, event, rest: rest[end..].trim() });
        }
        at += word.len();
    }
    None
}

/// `python3  6048/6049 [001]`
fn thread(text: &str) -> Option<(&str, Option<i64>, i64)> {
    let mut text = text.trim();
    if let Some(rest) = text.strip_suffix(']') {
        text = rest[..rest.rfind('[')?].trim_end();
    }
    let at = text.rfind(char::is_whitespace)?;
    let (command, numbers) = (text[..at].trim(), text[at..].trim());
    Some(match numbers.split_once('/') {
        Some((pid, tid)) => (command, Some(pid.parse().ok()?), tid.parse().ok()?),
        None => (command, None, numbers.parse().ok()?),
    })
}

/// Seconds with a fraction.
fn nanoseconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10i64.pow(9 - fraction.len() as u32);
    let seconds: i64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<i64>().ok()? * scale)
}

/// A sample: when, and which of the stacks.
type Sample = (i64, usize);

#[derive(Default)]
struct Reader {
    build: Builder,
    /// The heading that stacks belong to, and whether it is a moment.
    last: Option<((i64, i64), i64)>,
    stack: Vec<Frame>,
    /// Stacks that came before, by their functions.
    stacks: HashMap<Box<[Frame]>, usize>,
    samples: HashMap<(i64, i64), Vec<Sample>>,
    frames: HashMap<Box<str>, Frame>,
    /// In the order of the file.
    threads: Vec<(i64, i64)>,
    headings: u64,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.starts_with('#') {
            return;
        }
        let line = line.trim_end();
        if line.is_empty() {
            return self.end();
        }
        if line.starts_with(char::is_whitespace) && self.last.is_some() {
            self.frame(line.trim());
        } else if let Some(heading) = heading(line) {
            self.end();
            self.begin(&heading);
        } else if self.last.is_none() {
            self.build.trace.facts.warn("line that is not understood, left out", None);
        }
    }

    fn begin(&mut self, heading: &Heading<'_>) {
        self.headings += 1;
        let Heading { command, pid, tid, time, .. } = *heading;
        if pid.is_none() && tid != 0 {
            let what = "heading without a process id, which `perf script -F +pid` prints";
            self.build.trace.facts.warn(what, None);
        }
        let thread = (pid.unwrap_or(tid), tid);
        if !self.samples.contains_key(&thread) {
            self.threads.push(thread);
            self.samples.insert(thread, Vec::new());
            self.build.name_thread(thread.0, thread.1, command);
            if thread.0 == thread.1 {
                self.build.name_process(thread.0, command);
            }
        }
        if heading.rest.is_empty() {
            self.last = Some((thread, time));
            return;
        }
        let track = self.build.thread(thread.0, thread.1);
        let (name, category) = (self.build.text(heading.event), self.build.text("perf"));
        let args = [(self.build.text("text"), self.build.string(heading.rest))];
        self.build.instant(track, time, name, category, &args);
        self.last = None;
    }

    /// `16d8a7 memmove+0xa7 (/usr/lib/libc.so.6)`
    fn frame(&mut self, line: &str) {
        if let Some(&frame) = self.frames.get(line) {
            return self.stack.push(frame);
        }
        let text = line.split_once(char::is_whitespace).map_or(line, |(_, rest)| rest.trim());
        let (symbol, object) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("))
        {
            Some((symbol, object)) => (symbol, Some(object)),
            None => (text, None),
        };
        let symbol = match symbol.rsplit_once("+0x") {
            Some((name, hex)) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => name,
            _ => symbol,
        };
        let name = self.build.text(symbol);
        let mut args = Vec::new();
        if let Some(object) = object {
            args.push((self.build.text("object"), self.build.string(object)));
        }
        let frame = (name, self.build.trace.args.add(&args));
        self.frames.insert(line.into(), frame);
        self.stack.push(frame);
    }

    /// A sample is complete.
    fn end(&mut self) {
        let Some((thread, time)) = self.last.take() else { return self.stack.clear() };
        let deep = self.stack.len().saturating_sub(DEEPEST);
        self.stack.drain(..deep);
        self.stack.reverse();
        let next = self.stacks.len();
        let stack = match self.stacks.get(&self.stack[..]) {
            Some(&stack) => stack,
            None => *self.stacks.entry(self.stack.clone().into()).or_insert(next),
        };
        self.stack.clear();
        if let Some(samples) = self.samples.get_mut(&thread) {
            samples.push((time, stack));
        }
    }

    fn finish(mut self) -> Option<Trace> {
        self.end();
        if self.headings == 0 {
            return None;
        }
        let mut stacks: Vec<(Box<[Frame]>, usize)> = self.stacks.into_iter().collect();
        stacks.sort_unstable_by_key(|(_, number)| *number);
        let category: StrId = self.build.text("sample");
        for thread in self.threads {
            let mut samples = self.samples.remove(&thread).unwrap_or_default();
            // Buffers of several processors come one after the other.
            samples.order_by_numbers(|(time, _)| [*time]);
            let times: Vec<i64> = samples.iter().map(|(time, _)| *time).collect();
            let mut stack = Stack::new(self.build.thread(thread.0, thread.1), category);
            for ((time, number), end) in samples.iter().zip(ends(&times)) {
                let frames = stacks.get(*number).map_or(&[][..], |(frames, _)| frames);
                stack.sample(&mut self.build.trace, (*time, end), frames);
            }
            stack.finish(&mut self.build.trace);
        }
        let clock = self.build.text("perf.clock");
        let value = Value::Str(self.build.text("perf_clock (seconds since the system started)"));
        self.build.trace.facts.metadata.push((clock, value));
        Some(self.build.finish("perf"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_all_layouts() {
        let said = |line| heading(line).map(|h| (h.command, h.pid, h.tid, h.time, h.event, h.rest));
        for (line, wanted) in [
            (
                "python3  6048/6049  48545.836715:    5000000 cpu-clock: ",
                ("python3", Some(6048), 6049, 48_545_836_715_000, "cpu-clock", ""),
            ),
            (
                "a b 12 [003] 1.000000001: cycles:u:",
                ("a b", None, 12, 1_000_000_001, "cycles:u", ""),
            ),
            (
                "swapper     0 [003] 5.5: sched:sched_switch: prev_comm=x 1.0: y",
                ("swapper", None, 0, 5_500_000_000, "sched:sched_switch", "prev_comm=x 1.0: y"),
            ),
        ] {
            assert_eq!(said(line), Some(wanted), "{line}");
        }
        for line in ["", "text", "\t  ff04c [unknown] (/usr/bin/python3.11)", "a: b", "12.5:"] {
            assert_eq!(heading(line), None, "{line}");
        }
    }
}
