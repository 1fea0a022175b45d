//! Traces of a made job of many ranks, with planted faults and the truth about them.
//!
//! A step of a real trace is the [`template`]: its host events, and the work that they launch.
//! [`job`] says how ranks, hosts and process groups are arranged and which faults are planted.
//! [`walk`] replays the template on one rank: launches take place when the host gets to them, work
//! begins when it is launched and its stream is free, waits of the host end when the device is
//! done. [`simulate`] lets all ranks walk together, since a collective ends when its last rank has
//! come and the data has moved. [`mod@write`] walks each rank once more, with what is then known,
//! and writes Kineto's JSON.
//!
//! So a fault has the consequences that it has in a job: ranks that are not slow wait in their
//! collectives for those that are, and the ranks that wait for those wait, too.
#![forbid(unsafe_code)]

pub mod builtin;
pub mod job;
pub mod simulate;
pub mod template;
pub mod walk;
pub mod write;
