//! Packets on their way to the sink, and what has become of those before.

use std::io;
use std::time::{Duration, Instant};

use crate::sink::Sink;

/// Bytes of packets at which they are written without waiting for the flush interval.
pub(super) const FULL: usize = 1 << 20;
/// Bytes of packets kept for a sink that fails.
pub(super) const MAX_KEPT: usize = 16 << 20;

/// See the module.
pub(super) struct Output {
    pub sink: Box<dyn Sink>,
    /// The flush interval.
    pub interval: Duration,
    /// When packets were last written.
    pub flushed: Instant,
    /// Those that are not written.
    pub packets: Vec<u8>,
    /// Bytes that the sink has taken.
    pub bytes: u64,
    /// `Totals::events` when the sink last took everything.
    pub events: u64,
    /// Batches that it has not taken.
    pub errors: u64,
    pub failure: Option<io::Error>,
    /// Nothing is written any more.
    pub given_up: bool,
    /// A sequence says that something is missing since losses were last stated:
    /// trace_processor counts only what it has read before the statement.
    pub loss_marked: bool,
    /// Losses that the trace states.
    pub lost_stated: u64,
    /// What the control page knows: events, losses, bytes, threads.
    pub told_page: (u64, u64, u64, u64),
}

impl Output {
    pub fn new(sink: Box<dyn Sink>, interval: Duration, now: Instant) -> Output {
        Output {
            sink,
            interval,
            flushed: now,
            packets: Vec::with_capacity(FULL * 2),
            bytes: 0,
            events: 0,
            errors: 0,
            failure: None,
            given_up: false,
            loss_marked: false,
            lost_stated: 0,
            told_page: (0, 0, 0, 0),
        }
    }
}
