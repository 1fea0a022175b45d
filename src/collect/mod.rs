//! A process records, `kymo` encodes.
//!
//! ```text
//!  recorded process                                kymo record
//!  ┌──────────────────────────┐                    ┌───────────────────────────────────┐
//!  │ threads ─push─► arena ◄──┼── the same memory ─┼─► engine ─packets─► output        │
//!  │                          │                    │   (a thread per process)          │
//!  │ at its start: join ──────┼── arena's file, ───┼─► Collector                       │
//!  │                          │   what it is       │                                   │
//!  └──────────────────────────┘                    └───────────────────────────────────┘
//! ```
//! A process that joins (`join.rs`) has no thread of ours, writes no file, and has nothing to
//! do when it ends, however it ends: what its pushes stored is in the arena, and `kymo` goes
//! on reading until the process is dead and the arena is empty. A forked child records into
//! the arena it has inherited.
//!
//! The process sends its arena and does not wait for an answer. If `kymo` is stopped, events
//! find room for as long as the arena has some, and are counted then.

mod collector;
mod death;
mod dump;
mod join;
mod keeper;
mod letter;
mod member;
mod names;
mod recover;
mod socket;
mod whose;

pub use collector::{Collector, Outcome};
#[cfg(feature = "inject")]
pub(crate) use join::tell_left_out;
pub(crate) use join::{ask_to_keep, dump, is_gone, join};
pub use keeper::Keeper;
pub(crate) use names::Names;
pub use recover::Recovered;

use crate::engine::Origin;

/// What a process says of itself, for whoever encodes what it records.
pub(crate) fn facts(origin: &Origin) -> Vec<u8> {
    letter::write(letter::Subject::Join, &origin.to_facts())
}
