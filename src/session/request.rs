//! What can be asked for, and what may be the answer.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;

/// Where a request comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Origin {
    /// `kymo trigger`, through the process's socket.
    Control,
    /// A daemon such as dynolog's.
    Daemon,
    /// A signal.
    Signal,
}

/// A request for a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// Where it comes from.
    pub origin: Origin,
    /// What part of the program's life to record.
    pub window: Window,
    /// The name of the ranges that [`Window::Ranges`] counts, in which `*` stands for anything.
    pub iteration_of: String,
    /// How: `output` says where to, and may be refused.
    pub config: Config,
    /// An id for the trace, which it then carries; empty for none.
    pub trace_id: String,
    /// An id that the traces of a group have in common; empty for none.
    pub group_trace_id: String,
    /// Text that the trace carries for the requester; empty for none.
    pub custom: String,
    /// What was not understood of it, or of earlier ones: for people, in the trace.
    pub remarks: Vec<String>,
}

/// When a window of time opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// After the warm-up, which begins at once.
    Now,
    /// At this time of day, in nanoseconds since 1970, so that several processes or hosts
    /// open theirs together. The warm-up comes before it.
    ///
    /// Compared with the time of day once, when the request arrives: a clock that is set
    /// while the request waits does not move the window.
    At(u64),
}

/// What part of a program's life to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// By time.
    Time {
        /// When it opens.
        start: Start,
        /// How long sources are on before that.
        warmup: Duration,
        /// How long it stays open.
        duration: Duration,
    },
    /// By iterations of the program, which calls `step()` between them.
    Iterations {
        /// The first one. If it has passed, the first that can be warmed up for.
        start: u64,
        /// If `start` has passed: the first iteration is made a multiple of this, so that
        /// processes that are not quite in step record the same. 0 and 1 for any.
        roundup: u64,
        /// For how many iterations sources are on before that.
        warmup: u64,
        /// How many to record.
        count: u64,
        /// For a program that never called `step()`: how long to record instead, after a
        /// warm-up of the second length. `None`: refuse.
        otherwise: Option<(Duration, Duration)>,
    },
    /// By ranges of the program of the name that the request says, one after the other on one
    /// thread: from the beginning of the next one.
    Ranges {
        /// How many to record.
        count: u64,
    },
}

/// A trace that was recorded as asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Where it is.
    pub path: PathBuf,
    /// When the window opened, in nanoseconds of `CLOCK_BOOTTIME`.
    pub opened: u64,
    /// When it closed.
    pub closed: u64,
    /// The first iteration and the first that is not in it, for a window by iterations.
    pub iterations: Option<(u64, u64)>,
    /// Events in it.
    pub events: u64,
    /// Events that are missing.
    pub lost: u64,
    /// What is wrong with it, if something is.
    pub failure: Option<String>,
}

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// There is a trace.
    Done(Done),
    /// There is none, because.
    Refused(Refusal),
}

/// Why there is no trace. `Display` gives one line that says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// A trace is being recorded.
    Busy,
    /// The program records itself.
    ProgramRecords,
    /// Another request waits for its start.
    Pending,
    /// The request said that it is not enabled.
    Disabled,
    /// It asks for nothing: no time, no iterations.
    Empty,
    /// Its start has passed, by this much.
    Past(Duration),
    /// Its start is so near (first) that the warm-up (second) does not fit before it.
    TooSoon(Duration, Duration),
    /// It is about iterations, and the program never called `step()`.
    NoSteps,
    /// It was stopped, or the process ended, before a range of that name began.
    NoRange,
    /// The process did not run when the recording should have started, and woke up this
    /// much too late.
    Late(Duration),
    /// Its output cannot be used; the text says why.
    Output(String),
    /// The request itself makes no sense; the text says why.
    Malformed(String),
    /// The program started a recording of its own meanwhile.
    Preempted,
    /// It was cancelled.
    Cancelled,
    /// It was stopped before its window opened.
    Stopped,
    /// The buffers of a source were full before the window opened.
    Exhausted,
    /// The process ended before the window closed.
    Ended,
    /// Something broke; the text says what.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy => f.write_str(
                "the process is busy: it is recording a trace; wait for its end, or `kymo stop` it",
            ),
            Refusal::ProgramRecords => f.write_str(
                "the process is busy: the program is recording itself; ask when it has stopped",
            ),
            Refusal::Pending => f.write_str(
                "another request is pending: it waits for its start; wait, or `kymo stop` it",
            ),
            Refusal::Disabled => f.write_str("the request says that it is not enabled"),
            Refusal::Empty => {
                f.write_str("nothing was asked for: give a duration or a number of iterations")
            }
            Refusal::Past(by) => write!(
                f,
                "its start was {by:.1?} ago; give a later one, and compare the clocks of the hosts"
            ),
            Refusal::TooSoon(left, warmup) => write!(
                f,
                "its start is in {left:.1?}, and its warm-up takes {warmup:.1?}; give a later \
                 start or a shorter warm-up"
            ),
            Refusal::NoSteps => f.write_str(
                "it asks for iterations, and the program does not say where they begin (it never \
                 called step()); ask for a duration",
            ),
            Refusal::NoRange => f.write_str(
                "no range of that name has begun; `kymo info` on a trace of the program shows the \
                 names there are",
            ),
            Refusal::Late(by) => write!(
                f,
                "it could not start at the scheduled time: the process did not run, and woke up \
                 {by:.1?} too late"
            ),
            Refusal::Output(why) | Refusal::Malformed(why) => f.write_str(why),
            Refusal::Preempted => {
                f.write_str("the program started a recording of its own, which comes first")
            }
            Refusal::Cancelled => f.write_str("it was cancelled"),
            Refusal::Stopped => f.write_str("it was stopped before it had recorded anything"),
            Refusal::Exhausted => f.write_str(
                "the buffers of a source were full before the recording began; make the warm-up \
                 shorter",
            ),
            Refusal::Ended => f.write_str("the process ended before that"),
            Refusal::Failed(why) => write!(f, "it failed: {why}"),
        }
    }
}
