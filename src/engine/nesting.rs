//! Slices that may cross.
//!
//! A track holds slices that nest. Within one **nesting stack** they do: scopes are one
//! stack, and each NVTX or ITT domain is one. But a thread may push a range in domain A,
//! one in domain B, then pop A before B. Whether it will is not known when B begins, and
//! what is written cannot be taken back. So a beginning inside a slice of another stack
//! looks ahead:
//!
//! * it ends before anything around it: it is written on the thread's track;
//! * something around it ends first: it goes to a **side track** under the thread's, where
//!   it is exact;
//! * its end was not recorded yet: it and what follows on this thread is held back until
//!   it is known, or a flush is due. Then it becomes **undecided**: what follows is written,
//!   its own beginning only when it is known where (`super::undecided`). Except if it began
//!   a moment ago (`MOMENT`): most slices are short, and it comes with the next flush.

use std::time::Duration;

use kymograph_protos::packet::Strings;
use kymograph_protos::record::{Kind, Record, Slot, StrId};

use super::record::{record_len, stack_of};

/// See the module.
pub const MOMENT: Duration = Duration::from_millis(25);

/// A slice that has begun and not ended.
#[derive(Debug)]
pub struct Open {
    pub site: StrId,
    /// The name, if it came by value.
    pub bytes: Option<Box<[u8]>>,
    /// Its nesting stack: `NONE` for scopes, else the category.
    pub stack: StrId,
    /// Its track; 0 for the thread's.
    pub track: u64,
    /// Whether it and every slice below it belong to the same stack.
    pub uniform: bool,
    /// Whether its beginning was written; else it is undecided.
    pub written: bool,
    /// If devices show it as well: the stack, if it crosses others, else none.
    pub span: Option<StrId>,
    /// Whether it was found to take too long.
    pub watched: bool,
    pub begun: Begun,
}

/// A beginning, kept as it was recorded: it may have to be said again, in another file.
#[derive(Debug, Default)]
pub struct Begun {
    /// When, in nanoseconds.
    pub time: u64,
    /// Its record; empty if it was written and need never be said again.
    pub record: Box<[Slot]>,
}

/// How thorough a pass over the records has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// More records will come: wait for ends that decide something.
    Normal,
    /// A flush is due: write everything, but what began a moment ago and may soon be told
    /// more of.
    Due,
    /// Write everything now: a flush was requested.
    Flush,
    /// Nothing more will come: what has not ended never will.
    Last,
}

/// Whether a slice of `stack` would lie in slices of others, which it may cross.
pub fn is_mixed(around: &[Open], stack: StrId) -> bool {
    around.last().is_some_and(|top| !top.uniform || top.stack != stack)
}

/// Where a slice goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the thread's own track.
    Thread,
    /// On the side track of its stack.
    Aside,
    /// On one of these, as soon as it is known on which.
    Undecided,
}

/// Where the slice of `stack` goes whose beginning is the first of `slots`. `None`: that
/// waits for more records. `recent`: it began a moment ago.
pub fn place(
    around: &[Open],
    stack: StrId,
    slots: &[Slot],
    (pass, recent): (Pass, bool),
    strings: &impl Strings,
) -> Option<Place> {
    if !is_mixed(around, stack) {
        return Some(Place::Thread);
    }
    let after = record_len(slots)?;
    match crosses(stack, &slots[after..], strings) {
        Some(false) => Some(Place::Thread),
        Some(true) => Some(Place::Aside),
        None if pass == Pass::Normal || pass == Pass::Due && recent => None,
        None => Some(Place::Undecided),
    }
}

/// Follows `slots`, the records after the beginning of a slice of `stack`: `Some(false)` when
/// it ends first, `Some(true)` when something that began before it does, `None` when neither
/// is there yet.
pub fn crosses(stack: StrId, slots: &[Slot], strings: &impl Strings) -> Option<bool> {
    // Slices that began since, the one in question included, by stack.
    let mut open = vec![(stack, 1u32)];
    let mut at = 0;
    while let Some(len) = record_len(&slots[at..]) {
        let head: Record = bytemuck::cast(slots[at]);
        at += len;
        let (begins, of) = match Kind::from_u8(head.kind) {
            Some(Kind::Begin | Kind::Push) => (true, stack_of(&head, strings)),
            Some(Kind::End) => (false, StrId::NONE),
            Some(Kind::Pop) => (false, head.site),
            _ => continue,
        };
        let known = open.iter().position(|(s, _)| *s == of);
        match (begins, known) {
            (true, Some(i)) => open[i].1 += 1,
            (true, None) => open.push((of, 1)),
            (false, Some(i)) if open[i].1 > 0 => {
                open[i].1 -= 1;
                if of == stack && open[i].1 == 0 {
                    return Some(false);
                }
            }
            (false, _) => return Some(true),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intern::Interner;

    const DOMAIN: StrId = StrId(7);

    fn slots(kinds: &[Kind]) -> Vec<Slot> {
        let record = |kind: &Kind| {
            let site = if *kind == Kind::Pop { DOMAIN } else { StrId::NONE };
            bytemuck::cast(Record { kind: *kind as u8, site, ..Record::default() })
        };
        kinds.iter().map(record).collect()
    }

    /// Of a scope within a range of a domain.
    fn scope(kinds: &[Kind], pass: Pass, recent: bool) -> Option<Place> {
        let range = Open {
            site: StrId::NONE,
            bytes: None,
            stack: DOMAIN,
            track: 0,
            uniform: true,
            written: true,
            span: None,
            watched: false,
            begun: Begun::default(),
        };
        let strings = Interner::new();
        place(&[range], StrId::NONE, &slots(kinds), (pass, recent), &strings)
    }

    #[test]
    fn what_is_known_decides() {
        for pass in [Pass::Normal, Pass::Due, Pass::Flush, Pass::Last] {
            for recent in [false, true] {
                assert_eq!(scope(&[Kind::Begin, Kind::End], pass, recent), Some(Place::Thread));
                assert_eq!(scope(&[Kind::Begin, Kind::Pop], pass, recent), Some(Place::Aside));
            }
        }
    }

    #[test]
    fn what_began_a_moment_ago_waits_for_more_unless_somebody_asks() {
        let open = [Kind::Begin, Kind::Begin, Kind::End];
        let undecided = Some(Place::Undecided);
        let cases = [
            (Pass::Normal, None, None),
            (Pass::Due, undecided, None),
            (Pass::Flush, undecided, undecided),
            (Pass::Last, undecided, undecided),
        ];
        for (pass, old, recent) in cases {
            assert_eq!(scope(&open, pass, false), old, "{pass:?}");
            assert_eq!(scope(&open, pass, true), recent, "{pass:?}");
        }
    }
}
