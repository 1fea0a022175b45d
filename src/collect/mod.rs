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
//! A process that joins (`crate::join`) has no thread of ours, writes no file, and has nothing to
//! do when it ends, however it ends: what its pushes stored is in the arena, and `kymo` goes
//! on reading until the process is dead and the arena is empty. A forked child records into
//! the arena it has inherited.
//!
//! The process sends its arena and does not wait for an answer. If `kymo` is stopped, events
//! find room for as long as the arena has some, and are counted then.

mod collector;
mod death;
mod keeper;
mod member;
mod recover;
mod socket;
mod whose;

pub use collector::{Collector, Outcome};
pub use keeper::Keeper;
pub use recover::Recovered;
