//! What `kymo record` knows when the command has ended, and says of it.

use super::reasons::{Conditions, reasons};
use super::witness::Witness;
use super::{outlived, say, status};
use kymograph::collect::Outcome;
use kymograph::config::{CategoryFilter, Config};
use kymograph::control::{LeftOut, Page, Patterns, Rendezvous, Totals};
use kymograph_converters::format::{self, Format};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What is known of the command.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) pid: u32,
    /// Why it could not be recorded itself: its name, and the end of the sentence.
    pub(super) obstacle: Option<(String, &'static str)>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
}

/// The output, and what there is to say of it.
#[derive(Debug)]
pub(super) struct Output {
    witness: Witness,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What has become of it meanwhile.
    trouble: Option<String>,
    is_gone: bool,
}

impl Output {
    pub(super) fn new(witness: Witness, path: PathBuf) -> Output {
        Output { witness, path, trouble: None, is_gone: false }
    }

    /// Looks where it is now, and whether it has the `length` that was written to it. Returns
    /// whether it can be sealed.
    pub(super) fn find(&mut self, length: u64) -> bool {
        if let Some((trouble, now)) = self.witness.missing() {
            self.trouble = Some(trouble);
            self.is_gone = now.is_none();
            self.path = now.unwrap_or_else(|| self.path.clone());
        }
        let cut = self.witness.cut(length);
        let whole = cut.is_none() && !self.is_gone;
        self.trouble = self.trouble.take().or(cut);
        whole
    }

    /// What is in it, and nothing that is not there.
    pub(super) fn summary(&self, totals: &Totals, length: u64) -> Vec<String> {
        let Some(trouble) = &self.trouble else {
            let mut lines = status::summary(totals, &self.path, length);
            if let Some(kinds) = kinds(totals, &self.path) {
                lines.insert(1, kinds);
            }
            return lines;
        };
        let events = status::count(totals.events, "event", "events");
        let lost = status::grouped(totals.lost);
        let mut lines = vec![format!("{trouble} ({events}, and {lost} lost before)")];
        if !self.is_gone {
            lines.push(status::look_at(&self.path));
        }
        lines
    }
}

/// How many of each kind are in a trace that is read in no time; `kymo info` counts in others.
fn kinds(totals: &Totals, path: &Path) -> Option<String> {
    const MAX_EVENTS: u64 = 100_000;
    if !(1..=MAX_EVENTS).contains(&totals.events) {
        return None;
    }
    let trace = format::read(File::open(path).ok()?, Some(Format::Perfetto)).ok()?;
    let counts = [
        (trace.slices.len(), "slice", "slices"),
        (trace.activities.len(), "activity of devices", "activities of devices"),
        (trace.instants.len(), "instant", "instants"),
        (trace.counters.len(), "counter value", "counter values"),
    ];
    let some = counts.into_iter().filter(|(count, ..)| *count > 0);
    let words: Vec<_> = some.map(|(n, one, many)| status::count(n as u64, one, many)).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// All that is known; `totals` are those of the end.
pub(super) fn conditions(
    config: &Config,
    (rendezvous, page): (&Rendezvous, &Page),
    command: Command,
    totals: &Totals,
    outcome: &Outcome,
) -> Conditions {
    let has = |bits: u64, at: usize| at >= 64 || bits & 1 << at != 0;
    let (categories, slow) = (page.matched(Patterns::Categories), page.matched(Patterns::Slow));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let wanted = config.categories.wanted().enumerate();
    // Without the option it is what everything matches.
    let wanted = wanted.filter(|(_, name)| *name != b"*");
    let filtered = config.categories != CategoryFilter::default();
    let watched = config.flight.map(|_| config.dump_on.slow.iter().enumerate());
    Conditions {
        events: totals.events,
        lost: totals.lost,
        processes: totals.processes.into(),
        refused: outcome.of_other_releases,
        obstacle: command.obstacle,
        signal: command.signal,
        outlived: outlived::outlived(&rendezvous.control(), command.pid, &outcome.outlived),
        in_memory: config.flight.is_some() && config.dump_on.exit,
        numbered: config.rotate.is_some() || config.flight.is_some() && !config.dump_on.exit,
        others: rendezvous.left_out(),
        category_left_out: filtered && page.left_out(LeftOut::Category),
        memory_left_out: page.left_out(LeftOut::Memory),
        daemon_thread_left_out: page.left_out(LeftOut::DaemonThread),
        categories: wanted.map(|(at, name)| (text(name), has(categories, at))).collect(),
        slow: watched
            .into_iter()
            .flatten()
            .map(|(at, rule)| (text(rule.pattern()), has(slow, at)))
            .collect(),
    }
}

/// Says why something is missing, and what processes want to be known.
pub(super) fn tell(conditions: &Conditions, page: &Page) {
    reasons(conditions).iter().chain(&status::notes(page)).for_each(|line| say(line));
}
