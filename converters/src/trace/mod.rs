//! The hub: what a trace says, independent of the format it came from.
//!
//! A [`Trace`] is a set of tables. Rows are named by small `Copy` handles
//! ([`SliceId`], [`TrackId`], …) that are only good for the trace that gave them: with
//! another's they name some other row, or none. Large tables keep a vector per column, so
//! that a slice costs 32 bytes and its arguments about three bytes each; reading a row
//! puts it together as a `Copy` struct.
//!
//! | table | one row is | columns of bulk |
//! |---|---|---|
//! | [`strings`](Trace::strings) | a distinct string | |
//! | [`args`](Trace::args) | a set of named, typed values; equal ones are often one | [`Args`] |
//! | [`tracks`](Trace::tracks), [`processes`](Trace::processes), [`threads`](Trace::threads) | where events lie | |
//! | [`slices`](Trace::slices) | something on a host track that has a beginning and, mostly, an end | 32 bytes |
//! | [`instants`](Trace::instants) | a moment on a host track | 24 bytes |
//! | [`activities`](Trace::activities) | work on a queue of a device | 52 bytes |
//! | [`devices`](Trace::devices), [`queues`](Trace::queues), [`contexts`](Trace::contexts), [`stages`](Trace::stages), [`kernels`](Trace::kernels), [`launches`](Trace::launches) | what activities refer to | |
//! | [`counters`](Trace::counters) | series, and their samples | 20 bytes |
//! | [`flows`](Trace::flows) | an event that an arrow passes through; a call and what it launched | |
//! | [`facts`](Trace::facts) | facts about the job, clocks, losses, warnings | |
//! | [`leftovers`](Trace::leftovers) | an event that has no other place here | |
//!
//! Rows are in the order in which they were read, which is seldom the order of time. Where that
//! is not the order of the file, or the rows of several tables were one list there, they have
//! positions besides ([`Slices::position`]).
//!
//! ```
//! use kymograph_converters::trace::{Nanos, Slice, Trace, Value};
//!
//! let mut trace = Trace::default();
//! let process = trace.process(4242, "train");
//! let thread = trace.thread(process, 4250, "main");
//! let (name, category) = (trace.strings.intern("aten::mm"), trace.strings.intern("cpu_op"));
//! let id = trace.strings.intern("External id");
//! let slice = Slice {
//!     name,
//!     category,
//!     args: trace.args.add(&[(id, Value::U64(7))]),
//!     ..Slice::new(trace.threads[thread].track, Nanos(1_000), Nanos(250))
//! };
//! trace.slices.push(slice);
//!
//! for slice in trace.slices.iter() {
//!     assert_eq!(trace.strings.get(slice.name), "aten::mm");
//!     assert_eq!(trace.args.find(slice.args, id), Some(Value::U64(7)));
//! }
//! ```

mod activities;
mod args;
mod class;
mod counters;
mod devices;
mod facts;
mod filter;
mod flows;
mod handle;
mod hash;
mod instants;
mod job;
mod joints;
mod json;
mod leftovers;
mod positions;
mod slices;
mod strings;
mod summary;
mod time;
mod tracks;

pub use activities::{Activities, Activity};
pub use args::{Args, Entries, Finder, Items, Value};
pub(crate) use class::{Class, Work, class, work_category};
pub use counters::{Counters, Number, Sample, Series, SeriesKind};
pub use devices::{Api, Context, Device, Dim3, Kernel, Launch, Queue, Stage, StageKind};
pub use facts::{ClockReading, Facts, Loss, Warning};
pub use filter::Filter;
pub use flows::{Arrow, EventRef, FlowPoint, Flows, LaunchKind, LaunchLink, Phase};
pub use handle::{
    ActivityId, ArgsId, ContextId, DeviceId, InstantId, KernelId, LaunchId, ListId, ProcessId,
    QueueId, SeriesId, SliceId, StageId, Table, ThreadId, TrackId,
};
pub(crate) use hash::mix;
pub use instants::{Instant, Instants};
pub use job::Job;
pub(crate) use joints::{EventIndex, Joint, Span, Spans, join};
pub use kymograph_protos::StrId;
pub use leftovers::Leftover;
pub use positions::Position;
pub use slices::{Slice, Slices};
pub use strings::StringTable;
pub use summary::{
    ClockSummary, DeviceSummary, NameSummary, ProcessSummary, QueueSummary, Summary,
};
pub use time::Nanos;
pub use tracks::{Order, Process, Thread, Track, TrackKind, Unit};

/// See the module.
#[derive(Debug, Default)]
pub struct Trace {
    /// All strings.
    pub strings: StringTable,
    /// All arguments.
    pub args: Args,
    /// Processes.
    pub processes: Table<ProcessId, Process>,
    /// Threads.
    pub threads: Table<ThreadId, Thread>,
    /// Tracks of the host: those of processes and threads, and any others.
    pub tracks: Table<TrackId, Track>,
    /// Slices of the host.
    pub slices: Slices,
    /// Moments.
    pub instants: Instants,
    /// Devices.
    pub devices: Table<DeviceId, Device>,
    /// Queues or streams of devices.
    pub queues: Table<QueueId, Queue>,
    /// Device contexts of processes.
    pub contexts: Table<ContextId, Context>,
    /// Kinds of device activity.
    pub stages: Table<StageId, Stage>,
    /// Kernels.
    pub kernels: Table<KernelId, Kernel>,
    /// How kernels were launched; equal ones are one.
    pub launches: Table<LaunchId, Launch>,
    /// What devices did.
    pub activities: Activities,
    /// Counters.
    pub counters: Counters,
    /// Arrows between events.
    pub flows: Flows,
    /// Facts about the job and the file.
    pub facts: Facts,
    /// Events of the file that no other table can hold.
    pub leftovers: Vec<Leftover>,
    /// Whether the ranges that queues worked for stood beside these, too, as in recordings.
    pub annotated: bool,
}

impl Trace {
    /// Bytes of memory that the tables of bulk take.
    pub fn bytes(&self) -> usize {
        self.strings.bytes()
            + self.args.bytes()
            + self.slices.bytes()
            + self.instants.bytes()
            + self.activities.bytes()
            + self.counters.bytes()
            + self.flows.bytes()
    }
}
