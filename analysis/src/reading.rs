//! Whose rules a trace is read by: the trace as it is, or those of another tool.

/// How a trace is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// As it is, in nanoseconds.
    #[default]
    Exact,
    /// By the rules of HTA.
    Hta(Rules),
}

impl Reading {
    /// HTA's rules, if those are followed.
    pub fn hta(self) -> Option<Rules> {
        match self {
            Reading::Exact => None,
            Reading::Hta(rules) => Some(rules),
        }
    }
}

/// The rules of HTA that are followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whose they are.
    pub version: Version,
    /// Whether times are rounded to whole microseconds.
    pub rounding: bool,
    /// Whether the last step is kept.
    pub last_step: bool,
}

/// HTA or its successor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// HolisticTraceAnalysis 0.5.0.
    Hta,
    /// traceinsight 0.6.
    TraceInsight,
}

/// A state of the TensorBoard plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plugin {
    /// Version 0.4.3, which pip installs.
    Wheel,
    /// What it was when it was given up.
    Last,
}
