//! What makes a flight recorder write what it has.

use std::time::Duration;

use super::value;
use kymograph_protos::categories::matches;

/// The events that cause a dump, apart from being asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DumpOn {
    /// The recording ends: the output itself is written.
    pub exit: bool,
    /// A Rust program panics that links this library.
    pub panic: bool,
    /// `abort()`, a failed assertion: SIGABRT.
    pub abort: bool,
    /// Under `kymo record`: a signal kills the program, or crashes one of its processes.
    pub crash: bool,
    /// A slice takes too long.
    pub slow: Vec<Slow>,
}

/// A slice of this name takes longer than this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slow {
    glob: Box<[u8]>,
    limit: Duration,
}

impl Slow {
    /// Whether it is about slices of this name.
    pub fn names(&self, name: &[u8]) -> bool {
        matches(&self.glob, name)
    }

    /// The pattern.
    pub fn pattern(&self) -> &[u8] {
        &self.glob
    }

    /// How long they may take, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.limit.as_nanos().try_into().unwrap_or(u64::MAX)
    }
}

impl DumpOn {
    /// Reads a list such as `exit,panic,ProfilerStep#*>250ms`.
    ///
    /// # Errors
    /// It names something else: what is expected, as the end of a sentence.
    pub fn parse(list: &str) -> Result<DumpOn, String> {
        let mut on = DumpOn::default();
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match (part, part.rsplit_once('>')) {
                ("none", _) => {}
                ("exit", _) => on.exit = true,
                ("panic", _) => on.panic = true,
                ("abort", _) => on.abort = true,
                ("crash", _) => on.crash = true,
                (_, Some((name, limit))) if !name.trim().is_empty() => on.slow.push(Slow {
                    glob: name.trim().as_bytes().into(),
                    limit: value::duration(limit.trim().as_ref())?,
                }),
                _ => {
                    return Err(format!(
                        "expected exit, panic, abort, crash, none or NAME>DURATION such as \
                         ProfilerStep#*>250ms, not {part}"
                    ));
                }
            }
        }
        Ok(on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_durations() {
        let on = DumpOn::parse("exit, step*>100ms,a>b>2s").unwrap();
        assert!(on.exit && !on.panic && !on.abort && !on.crash);
        assert!(DumpOn::parse("crash").unwrap().crash);
        assert!(on.slow[0].names(b"step 7") && !on.slow[0].names(b"a step"));
        assert_eq!(on.slow[0].nanos(), 100_000_000);
        assert!(on.slow[1].names(b"a>b"));
        assert_eq!(DumpOn::parse("none").unwrap(), DumpOn::default());
        for bad in ["often", ">1s", "step>", "step>soon", "step>-1s"] {
            assert!(DumpOn::parse(bad).is_err(), "{bad}");
        }
    }
}
