//! A dump: what was asked for, how far it is, and what came of it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use crate::error::Error;

/// What a flight recorder has written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Dump {
    /// The file. Other processes of the recording may still add their part.
    pub path: PathBuf,
    /// Why it was written.
    pub why: String,
    /// Events of this process in it.
    pub events: u64,
    /// Events of this process that were lost in the time that it covers.
    pub lost: u64,
    /// How far it reaches back from the moment at which it was asked for.
    pub covers: Duration,
    /// How much of the time asked for (`FLIGHT`) it lacks, because `FLIGHT_MEMORY` was full
    /// sooner. Zero also if the recording has not lasted that long.
    pub missing: Duration,
    /// Bytes of packets, before compression.
    pub bytes: u64,
    /// Bytes of memory in which they were kept.
    pub held: u64,
}

/// Where a dump goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Into this file, and only this process's part.
    Path(PathBuf),
    /// Into the next of the numbered files, with the parts of all processes.
    Next,
}

/// A request for a dump.
#[derive(Debug)]
pub(crate) struct Order {
    pub target: Target,
    pub why: String,
    /// When, in nanoseconds of `CLOCK_BOOTTIME`: what was recorded in the window before
    /// that is in the dump, however late the engine comes to it.
    pub asked: u64,
    /// Whether the sources have been told to push what they have.
    pub flushed: bool,
    /// Where the answer goes.
    pub answer: Option<Sender<Result<Dump, Error>>>,
}

impl Order {
    pub(crate) fn new(target: Target, why: impl Into<String>, asked: u64) -> Order {
        Order { target, why: why.into(), asked, flushed: false, answer: None }
    }
}

/// Where the answer comes from.
pub(crate) type Ordered = Receiver<Result<Dump, Error>>;
