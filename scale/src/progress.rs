//! How far `kymo dataset add` is, on standard error.

use crate::say;
use kymograph_scale::Failure;
use kymograph_scale::add::Done;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

/// What was done so far.
pub struct Progress {
    of: usize,
    began: Instant,
    terminal: bool,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    traces: usize,
    added: usize,
    there: usize,
    failed: usize,
    events: u64,
}

impl Progress {
    pub fn new(of: usize) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { of, began: Instant::now(), terminal, counts: Mutex::default() }
    }

    pub fn told(&self, path: &Path, done: &Result<Vec<Done>, Failure>) {
        let mut counts = self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        counts.traces += 1;
        match done {
            Ok(ranks) => {
                for done in ranks {
                    match done {
                        Done::Added(_, events) => {
                            counts.added += 1;
                            counts.events += events;
                        }
                        Done::There(_) => counts.there += 1,
                    }
                }
            }
            Err(why) => {
                counts.failed += 1;
                if self.terminal {
                    let _ = write!(std::io::stderr(), "\r\x1b[K");
                }
                say(&why.0);
            }
        }
        let _ = path;
        if self.terminal {
            let (traces, of, events) = (counts.traces, self.of, counts.events);
            let _ = write!(std::io::stderr(), "\r\x1b[K{traces} of {of} traces, {events} events");
        }
    }

    pub fn end(self) -> ExitCode {
        let counts = self.counts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let Counts { added, there, failed, events, .. } = counts;
        let failed_text = match failed {
            0 => String::new(),
            1 => "; 1 trace could not be added".to_owned(),
            n => format!("; {n} traces could not be added"),
        };
        say(&format!(
            "{added} ranks added, {there} were there; {events} events in {seconds:.1} s{failed_text}"
        ));
        ExitCode::from(if failed > 0 { 2 } else { 0 })
    }
}
