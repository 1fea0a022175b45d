//! Where CPython has threads, frames and code, as bytes from the beginning of each struct. Read
//! in the headers of the versions, for 64 bits.
//!
//! | | 3.9, 3.10 | 3.11, 3.12 | 3.13 |
//! |---|---|---|---|
//! | a frame is | an object | a struct on a stack | the same |
//! | innermost frame | `tstate->frame` | `tstate->cframe->current_frame` | `tstate->current_frame` |

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) version: &'static str,
    /// Of an interpreter: its threads; none where its struct is never freed, and a function of
    /// Python's may be asked.
    pub(super) threads: Option<usize>,
    /// Of a thread: the next, and its number.
    pub(super) next: usize,
    pub(super) thread: Number,
    /// From a thread to its innermost frame: a pointer at each of these places.
    pub(super) innermost: &'static [usize],
    /// Of a frame: what it runs, and its caller.
    pub(super) code: usize,
    pub(super) back: usize,
    /// Which frames are the interpreter's own.
    pub(super) owner: Option<usize>,
    /// Of code.
    pub(super) file: usize,
    pub(super) name: usize,
    pub(super) line: usize,
    /// Of a text: what comes before its characters if all are ASCII, and if not.
    pub(super) text: [usize; 2],
}

/// What a thread's struct has for its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Number {
    /// The system's.
    System(usize),
    /// A `pthread_t`, in whose struct the system's is found.
    Posix(usize),
}

/// The owner of frames of the interpreter's own.
pub(super) const INTERPRETER: u8 = 3;
/// Of an object: its type. Of a text: its length, and what it consists of.
pub(super) const TYPE: usize = 8;
pub(super) const LENGTH: usize = 16;
pub(super) const STATE: usize = 32;

const OBJECTS: Layout = Layout {
    version: "3.9",
    threads: Some(8),
    next: 8,
    thread: Number::Posix(176),
    innermost: &[24],
    code: 32,
    back: 24,
    owner: None,
    file: 104,
    name: 112,
    line: 40,
    text: [48, 72],
};

const STRUCTS: Layout = Layout {
    version: "3.12",
    threads: None,
    next: 8,
    thread: Number::System(144),
    innermost: &[56, 0],
    code: 0,
    back: 8,
    owner: Some(70),
    file: 112,
    name: 120,
    line: 68,
    text: [40, 56],
};

/// All that are known.
pub(super) const LAYOUTS: [Layout; 5] = [
    OBJECTS,
    Layout { version: "3.10", ..OBJECTS },
    Layout {
        version: "3.11",
        threads: Some(16),
        thread: Number::System(160),
        innermost: &[56, 8],
        code: 32,
        back: 48,
        owner: None,
        line: 72,
        text: [48, 72],
        ..STRUCTS
    },
    STRUCTS,
    Layout { version: "3.13", thread: Number::System(160), innermost: &[72], ..STRUCTS },
];

/// That of a version as Python states it: `3.12.1 (main, …)`.
pub(super) fn of(version: &str) -> Option<&'static Layout> {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    LAYOUTS.iter().find(|layout| layout.version.split_once('.') == Some((major, minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_by_its_first_numbers() {
        assert_eq!(of("3.12.1 (main, Dec 19 2023)").map(|l| l.version), Some("3.12"));
        assert_eq!(of("3.9.18+ (x)").map(|l| l.version), Some("3.9"));
        for unknown in ["3.8.18", "3.99.0", "3", ""] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
