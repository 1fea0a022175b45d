//! What can be wrong with the input: errors, repairs, and the limits of what is read.

use std::fmt;

/// How much of the input may be held at a time. Beyond a limit reading ends with
/// [`Error::Limit`], since the rest of the input cannot be told from an attack.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one element: one event, or the value of one member of the outermost object.
    pub element_bytes: usize,
    /// How deep objects and arrays may nest.
    pub depth: usize,
    /// Values and keys in one element.
    pub nodes: usize,
    /// Bytes of an element that repair is tried on. Longer ones are skipped.
    pub repair_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { element_bytes: 64 << 20, depth: 128, nodes: 4 << 20, repair_bytes: 1 << 20 }
    }
}

/// Why reading ended. Offsets are in bytes from the start of the (decompressed) input.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    Io(std::io::Error),
    /// The input is not what a trace looks like.
    Syntax {
        /// Where, in bytes.
        offset: u64,
        /// What should have been there.
        expected: &'static str,
        /// What was there.
        found: String,
    },
    /// The input exceeds a limit.
    Limit {
        /// Where, in bytes.
        offset: u64,
        /// The limit, in words.
        what: &'static str,
    },
    /// It is JSON, but no trace: what it is instead.
    NotATrace(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the input: {error}"),
            Self::Syntax { offset, expected, found } => {
                write!(f, "at byte {offset}: expected {expected}, found {found}")
            }
            Self::Limit { offset, what } => write!(f, "at byte {offset}: {what}"),
            Self::NotATrace(what) => write!(f, "not a trace: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// What was wrong with the input and read all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairKind {
    /// A quote inside a string was not escaped.
    Quote,
    /// A control character inside a string was not escaped.
    Control,
    /// A backslash began no escape, or half of a surrogate pair stood alone.
    Escape,
    /// `NaN`, `Infinity` and the like, which JSON does not have.
    NotFinite,
    /// A comma before `]` or `}`.
    TrailingComma,
    /// No comma between two events.
    MissingComma,
    /// The closing `]` or `}` of the document is missing.
    MissingEnd,
    /// The input ends within an element; the element is lost.
    Cut,
    /// Bytes that are not UTF-8 were read as `?`.
    Encoding,
    /// Text after the end of the document was ignored.
    Trailing,
    /// An element that no reading makes sense of; it is lost.
    Unreadable,
    /// Beyond one of the [`Limits`]: lost.
    Limit,
    /// The input could not be unpacked any further.
    Packed,
}

impl RepairKind {
    /// Every kind, in the order in which they are declared.
    pub const ALL: [Self; 13] = [
        Self::Quote,
        Self::Control,
        Self::Escape,
        Self::NotFinite,
        Self::TrailingComma,
        Self::MissingComma,
        Self::MissingEnd,
        Self::Cut,
        Self::Encoding,
        Self::Trailing,
        Self::Unreadable,
        Self::Limit,
        Self::Packed,
    ];

    /// A short phrase for reports.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Quote => "quote in a string not escaped",
            Self::Control => "control character in a string not escaped",
            Self::Escape => "backslash that escapes nothing",
            Self::NotFinite => "number that is not finite",
            Self::TrailingComma => "comma before a closing bracket",
            Self::MissingComma => "no comma between events",
            Self::MissingEnd => "closing bracket missing at the end",
            Self::Cut => "element cut off at the end, lost",
            Self::Encoding => "bytes that are not UTF-8, read as `?`",
            Self::Trailing => "text after the end, ignored",
            Self::Unreadable => "element that cannot be read, lost",
            Self::Limit => "element that is too long, too deep or has too many values, lost",
            Self::Packed => "packed data cut off or damaged: what comes behind is lost",
        }
    }

    /// Whether something of the input is missing from what was read.
    pub fn loses(self) -> bool {
        matches!(
            self,
            Self::Cut
                | Self::Encoding
                | Self::Trailing
                | Self::Unreadable
                | Self::Limit
                | Self::Packed
        )
    }
}

/// One repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// What was wrong.
    pub kind: RepairKind,
    /// Where, in bytes from the start of the (decompressed) input.
    pub offset: u64,
}

/// All repairs of an input: each kind counted, the first ones with their place.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    counts: [u64; RepairKind::ALL.len()],
    first: Vec<Repair>,
}

impl Repairs {
    /// As many repairs as this are kept with their offset; the rest is counted.
    pub const KEPT: usize = 1000;

    pub(super) fn note(&mut self, kind: RepairKind, offset: u64) {
        self.counts[kind as usize] += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(Repair { kind, offset });
        }
    }

    /// How many repairs of this kind there were.
    pub fn count(&self, kind: RepairKind) -> u64 {
        self.counts[kind as usize]
    }

    /// How many repairs there were.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The first repairs, at most [`Repairs::KEPT`], in the order of the input.
    pub fn first(&self) -> &[Repair] {
        &self.first
    }
}
