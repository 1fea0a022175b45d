//! The thread that takes samples.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use kymograph_protos::record::{ArgType, Extra, Kind, Record, THREAD_TRACK};
use kymograph_protos::{ColdRecorder, Recorder, StrId};

use super::stack::Reader;
use super::{RUNS_IN, wanted};
use crate::clock;
use crate::process::identity::{is_alone, mix};
use crate::recorder::PIPELINE;

/// Of a processor's time the thread takes one part in this many.
const SHARE: u64 = 100;
/// How often the thread looks whether it is the last one of the process.
const LOOK: u64 = 1_500_000_000;
/// Stacks that are named once and referred to; others are written out with each sample.
const MAX_STACKS: usize = 1 << 12;
/// Bytes of a stack; the outermost functions of a longer one are left out.
const MAX_BYTES: usize = 6 << 10;

/// The category of samples, and the name of the rows that they are in.
const CATEGORY: &[u8] = b"python_sample";
const ROW: &[u8] = b"Python stacks";

/// Starts the thread; false if there is none.
pub(super) fn spawn(reader: Reader) -> bool {
    let key = |text: &[u8]| PIPELINE.intern_or_wait(StrId::NONE, text);
    let category = key(CATEGORY);
    let mut sampler = Sampler {
        reader,
        category,
        row: key(ROW),
        stack: key(b"Stack"),
        rows: HashSet::new(),
        stacks: HashSet::new(),
    };
    let process = std::process::id();
    crate::recording::spawn(move || {
        let _ = catch_unwind(AssertUnwindSafe(|| sampler.run()));
        // Another one may be started.
        let _ = RUNS_IN.compare_exchange(process, 0, Ordering::Relaxed, Ordering::Relaxed);
    })
    .is_ok()
}

struct Sampler {
    reader: Reader,
    category: StrId,
    row: StrId,
    stack: StrId,
    /// Threads that have a row.
    rows: HashSet<u32>,
    /// Stacks that have an id.
    stacks: HashSet<Vec<u8>>,
}

impl Sampler {
    fn run(&mut self) {
        let now = || clock::system(libc::CLOCK_MONOTONIC);
        let (mut due, mut look) = (now(), now() + LOOK);
        loop {
            let hertz = wanted();
            if hertz == 0 {
                return;
            }
            let began = clock::system(libc::CLOCK_THREAD_CPUTIME_ID);
            if PIPELINE.enabled(self.category) {
                self.sample();
            } else {
                self.rows.clear();
            }
            if now() >= look {
                look = now() + LOOK;
                if is_alone() {
                    // As the system does when the last thread ends.
                    // SAFETY: no locks are held.
                    unsafe { libc::exit(0) };
                }
            }
            let took = clock::system(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(began);
            let period = 1_000_000_000 / u64::from(hertz);
            // One that is late does not catch up.
            due = (due + period.max(took * SHARE)).max(now());
            std::thread::sleep(Duration::from_nanos(due - now().min(due)));
        }
    }

    /// Takes the stacks of all threads.
    fn sample(&mut self) {
        for thread in self.reader.threads() {
            let Some(number) = self.reader.number(thread) else { continue };
            let time = PIPELINE.now();
            match self.reader.stack(thread) {
                Some(stack) if stack.is_empty() => {}
                Some(stack) => self.record(number, time, &stack),
                None => PIPELINE.lost(1),
            }
        }
    }

    fn record(&mut self, thread: u32, time: u64, stack: &[usize]) {
        let Some(names) = self.reader.names(stack) else { return PIPELINE.lost(1) };
        let name = names.first().map_or(Vec::new(), |name| name.to_vec());
        let text = collapsed(&names);
        let track = mix(&[u64::from(thread), 0x7374_6163_6b73]) & !THREAD_TRACK;
        if self.rows.insert(thread) {
            let arg = THREAD_TRACK | u64::from(thread);
            let (site, kind) = (self.row, Kind::Track as u8);
            PIPELINE.push(Record { other: track, arg, site, kind, ..Record::default() }, &[]);
        }
        let site = PIPELINE.intern_or_wait(self.category, &name);
        if site.is_none() {
            return PIPELINE.lost(1);
        }
        let kind = Kind::Instant as u8;
        let head = Record { time, site, kind, ..Record::default() };
        let mut extras = [Extra::new(StrId::NONE, ArgType::Track, track), Extra::default()];
        let known = self.stacks.contains(&text)
            || self.stacks.len() < MAX_STACKS && self.stacks.insert(text.clone());
        let id = if known { PIPELINE.intern_or_wait(StrId::NONE, &text) } else { StrId::NONE };
        if id.is_none() {
            extras[1] = Extra::new(self.stack, ArgType::Bytes, text.len() as u64);
            PIPELINE.push_named(head, &extras, &text);
        } else {
            extras[1] = Extra::new(self.stack, ArgType::Str, id.0.into());
            PIPELINE.push(head, &extras);
        }
    }
}

/// A stack as flame graphs take it: names with `;` between them, the outermost first.
fn collapsed(names: &[&[u8]]) -> Vec<u8> {
    let mut length = 0;
    let fits = names.iter().take_while(|name| {
        length += name.len() + 1;
        length <= MAX_BYTES
    });
    let kept: Vec<_> = fits.collect();
    let mut text = Vec::with_capacity(length);
    if kept.len() < names.len() {
        text.extend_from_slice("…;".as_bytes());
    }
    for (place, name) in kept.iter().rev().enumerate() {
        if place > 0 {
            text.push(b';');
        }
        text.extend(name.iter().map(|byte| if *byte == b';' { b',' } else { *byte }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_with_the_outermost() {
        assert_eq!(collapsed(&[b"c;", b"b", b"a"]), b"a;b;c,");
        let long = vec![b'x'; MAX_BYTES - 8];
        assert!(collapsed(&[b"inner", &long]).starts_with(&long[..9]));
        let cut = collapsed(&[b"inner", &long, b"outer"]);
        assert!(cut.starts_with("…;x".as_bytes()) && cut.ends_with(b"x;inner"));
    }
}
