//! The flight recorder: the last seconds of a recording, in memory, until a dump is requested.
//!
//! ```text
//!            a segment: what the engine encoded in one go, compressed
//!  engine ─► ┌──────────────┬───────────────────────────────┐
//!            │ preamble     │ body                          │   in pages of its own
//!            └──────────────┴───────────────────────────────┘
//!  ring    ─► [seg 7][seg 8][seg 9] … [seg 41]                  oldest first
//!  a dump  ─► preamble of 7, body of 7, body of 8, … body of 41, closing words
//! ```
//! A **body** begins with cleared incremental state: every sequence says its clock, its
//! defaults, its track and its strings anew when it is first used in it. So a trace may
//! begin with any body. What it would lack is what was said once, long ago, and still
//! holds: slices that are open, tracks, counters, devices, facts. That is the **preamble**,
//! made when the segment begins (`engine/restart.rs`) and only ever written for the first
//! segment of a dump.
//!
//! **Compression** is zstd at level -1. On the packets of `kymo demo` LZ4 makes them 3.7
//! times smaller and zstd 7.1 times, at nearly the same speed (a gigabyte per second): at
//! this level it is LZ4's way of finding matches, with entropy coding behind it. To the
//! engine it costs about what writing the packets to a file would.
//!
//! **Memory.** Segments lie in pages of their own, mapped and unmapped by us, so that what
//! goes really is given back. All of it (pages, the packets not yet compressed, and the
//! space into which a dump unpacks) stays within `FLIGHT_MEMORY`, of which every process of
//! the recording has an equal share: one that finds more of them drops its oldest
//! segments at once.
//!
//! **A dump** goes on while the recording does, a few segments at a time, oldest first. A
//! segment that has to make room before its turn is written before it goes: a slow disk
//! slows the engine down, and never makes a hole in the dump. What it holds counts from the
//! moment at which it was asked for: from then on nothing of it goes because of its age, however
//! long the engine takes to come to it.

pub(crate) mod alarm;
mod dump;
mod pages;
mod ring;

pub use dump::Dump;
pub(crate) use dump::{Order, Ordered, Target};
pub(crate) use ring::{Ring, Segment, Share};
