//! What a recording amounted to, and how a running one is doing.

/// What a recording amounted to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Slices, ranges, instants and counter values in the trace.
    pub events: u64,
    /// Events that a flight recorder kept for a while and had to let go, as it should.
    pub discarded: u64,
    /// Events that are missing, for whatever reason.
    pub lost: u64,
    /// Of these: events pushed from inside a push (a signal handler, an allocator hook).
    pub reentrant: u64,
    /// Events encoded that the sink has not taken (yet).
    pub unwritten: u64,
    /// Strings that were cut short.
    pub truncated: u64,
    /// Ends without a beginning in this recording.
    pub unmatched_ends: u64,
    /// Scopes ended before scopes inside them; those were ended with them.
    pub misnested: u64,
    /// Times that ran backwards on their thread and were moved up.
    pub clamped: u64,
    /// Records of a kind that the writer does not know.
    pub unknown: u64,
    /// Threads that recorded something.
    pub threads: u64,
    /// Bytes of packets, before compression.
    pub bytes: u64,
    /// Attempts to write that failed.
    pub write_errors: u64,
    /// What the sink said when it last failed.
    pub failure: Option<String>,
}

/// A thread of a running recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ThreadStats {
    /// The kernel's id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Events written.
    pub events: u64,
    /// Events lost.
    pub lost: u64,
}

/// How a running recording is doing, as of the last flush.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Sums.
    pub total: Summary,
    /// The threads that are alive.
    pub threads: Vec<ThreadStats>,
    /// Bytes of records that threads hold or that wait to be encoded, right now.
    pub queued_bytes: usize,
}
