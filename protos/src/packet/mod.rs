//! The Perfetto `TracePacket` encoder: the only place that knows how activities look on
//! the wire. Used by the engine inside a traced process and by the converters alike.
//!
//! A trace is a list of packets, each `0x0a`, a length, and fields; a file cut anywhere
//! between packets is a valid trace. Packets belong to **sequences** ([`Sequence`]), one
//! for each thread and process. Within a sequence, what would repeat is said once:
//!
//! * timestamps are nanoseconds since the previous packet (clock 64, incremental);
//! * the track is a default;
//! * categories, names and string values are numbers, introduced in the packet that first
//!   uses them.
//!
//! A sequence forgets all that and says it anew ([`Sequence::restart`]) about every ten
//! seconds, so that a file which lost its beginning is readable from there on.
//!
//! ```text
//! slice begin, one argument                              23 bytes   slice end   15 bytes
//! 0a 15  40 <dt>  68 02  50 <seq>  5a 0c  48 01  18 <category>  50 <name>  22 04 08 <arg> 18 <value>
//! │      │        │      │         │      │      │              │          └ debug_annotations
//! packet timestamp flags sequence  event  type   category_iids  name_iid
//! ```
//! Field numbers: `protos/proto/perfetto.proto`, after google/perfetto
//! `protos/perfetto/trace/**`. The end of a slice repeats the name, so that a viewer
//! notices when it would close another slice than the one meant.

mod clocks;
mod cold;
mod cursor;
mod descriptor;
mod event;
mod gpu;
mod inventory;
mod keys;
mod launch;
mod message;
mod sequence;
pub mod source;
mod stage;
mod text;
mod track;
mod tree;

use crate::fields::{trace, trace_packet};

pub use clocks::Snapshot;
pub use descriptor::{
    Fact, ProcessTrack, System, ThreadTrack, Track, clock_snapshot, row_order, system_info,
    trace_attributes, trace_stats, trace_uuid,
};
pub use event::{Arg, Correlation, CounterValue, Event, EventType, Name, Value};
pub use gpu::{Activity, Annotation, Kernel, Launch, Queue};
pub use inventory::{CounterSpec, Device, device_frequency, device_memory, devices};
pub use message::Message;
pub use sequence::Sequence;
pub use stage::{ContextEntry, KernelEntry, RenderStage, StageEntry};
pub use text::{Strings, Text, clean};
pub use track::{AnyTrack, TrackOf};
pub use tree::JSON_TYPE;

/// Appends one packet, written by `fill`.
pub fn packet(out: &mut Vec<u8>, fill: impl FnOnce(&mut Message<'_>)) {
    Message::new(out).message(trace::PACKET, fill);
}

/// Appends one packet of the sequence with this id, written by `fill`.
fn packet_of(out: &mut Vec<u8>, sequence: u32, fill: impl FnOnce(&mut Message<'_>)) {
    packet(out, |p| fill(p.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, sequence.into())));
}
