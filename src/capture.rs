//! By which ranges of the program a recording opens and closes its window.

use kymograph_protos::categories::matches;

/// The category of the calls that [`Rule::Profiler`] is about.
const PROFILER: [&[u8]; 4] =
    [b"cudaProfilerStart", b"cudaProfilerStop", b"cuProfilerStart", b"cuProfilerStop"];
/// The category of NVTX's default domain.
const DEFAULT: &[u8] = b"nvtx";

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Between `cudaProfilerStart` and `cudaProfilerStop`.
    Profiler {
        /// How many windows at most.
        windows: u64,
    },
    /// Each range of this name and NVTX domain, both with `*` for anything.
    Range {
        /// Its name.
        name: Box<[u8]>,
        /// Its domain.
        domain: Box<[u8]>,
        /// How many windows at most.
        windows: u64,
    },
    /// So many ranges of this name, one after the other on one thread: one window.
    Iterations {
        /// Their name, with `*` for anything.
        name: Box<[u8]>,
        /// How many.
        count: u64,
    },
}

impl Rule {
    /// Reads `cudaProfilerApi` or `nvtx:NAME[@DOMAIN]`, and `stop` or `repeat[:N]`.
    ///
    /// # Errors
    /// It is something else: what is expected.
    pub fn parse(range: &str, end: &str) -> Result<Rule, String> {
        let windows = match (end, end.strip_prefix("repeat:").map(str::parse)) {
            ("stop", _) => 1,
            ("repeat", _) => u64::MAX,
            (_, Some(Ok(count))) if count > 0 => count,
            _ => return Err(format!("{end}: expected stop, repeat, or repeat:NUMBER")),
        };
        if range.eq_ignore_ascii_case("cudaProfilerApi") {
            return Ok(Rule::Profiler { windows });
        }
        let wanted = range.strip_prefix("nvtx:").filter(|wanted| !wanted.is_empty());
        let Some(wanted) = wanted else {
            return Err(format!("{range}: expected cudaProfilerApi or nvtx:NAME[@DOMAIN]"));
        };
        // A name may have an @ of its own: `\@`.
        let at =
            wanted.rmatch_indices('@').map(|(at, _)| at).find(|at| !wanted[..*at].ends_with('\\'));
        let (name, domain) = match at {
            Some(at) => (&wanted[..at], &wanted.as_bytes()[at + 1..]),
            None => (wanted, DEFAULT),
        };
        if name.is_empty() || domain.is_empty() {
            return Err(format!("{range}: expected a name before the @, and a domain behind it"));
        }
        let name = name.replace("\\@", "@").into_bytes().into();
        Ok(Rule::Range { name, domain: domain.into(), windows })
    }

    /// Whether a slice of this category and name is asked for.
    pub fn matches(&self, category: &[u8], name: &[u8]) -> bool {
        match self {
            Rule::Profiler { .. } => category.starts_with(b"cuda_") && PROFILER.contains(&name),
            Rule::Range { name: wanted, domain, .. } => {
                matches(wanted, name) && matches(domain, category)
            }
            Rule::Iterations { name: wanted, .. } => matches(wanted, name),
        }
    }

    /// How many windows there are to be at most.
    pub fn windows(&self) -> u64 {
        match self {
            Rule::Profiler { windows } | Rule::Range { windows, .. } => *windows,
            Rule::Iterations { .. } => 1,
        }
    }

    /// How many ranges a window has.
    pub fn iterations(&self) -> u64 {
        match self {
            Rule::Iterations { count, .. } => *count,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for() {
        let rule = |range, end| Rule::parse(range, end).unwrap();
        assert_eq!(rule("cudaProfilerApi", "stop"), Rule::Profiler { windows: 1 });
        assert_eq!(rule("cudaprofilerapi", "repeat:3"), Rule::Profiler { windows: 3 });
        assert_eq!(rule("nvtx:step", "repeat").windows(), u64::MAX);
        let step = rule("nvtx:step*", "stop");
        assert!(step.matches(b"nvtx", b"step 1") && !step.matches(b"other", b"step 1"));
        let any = rule("nvtx:a step@*", "stop");
        assert!(any.matches(b"other", b"a step") && !any.matches(b"other", b"step"));
        assert!(rule("nvtx:a\\@b@c", "stop").matches(b"c", b"a@b"));
        let calls = rule("cudaProfilerApi", "stop");
        assert!(calls.matches(b"cuda_runtime", b"cudaProfilerStart"));
        assert!(calls.matches(b"cuda_driver", b"cuProfilerStop"));
        assert!(!calls.matches(b"nvtx", b"cudaProfilerStart"));
        let wrong = [
            ("nvtx:", "stop"),
            ("nvtx:@a", "stop"),
            ("nvtx:a@", "stop"),
            ("a", "stop"),
            ("nvtx:a", "repeat:0"),
            ("nvtx:a", "repeat:"),
            ("nvtx:a", "end"),
        ];
        for (range, end) in wrong {
            assert!(Rule::parse(range, end).is_err(), "{range} {end}");
        }
    }
}
