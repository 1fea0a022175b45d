//! Packets that are written seldom: messages of the schema, which prost encodes.

use super::clean;
use super::clocks::BOOTTIME;
use crate::fields::trace;
use crate::perfetto::TracePacket;
use crate::perfetto::trace_packet::{Data, OptionalTrustedPacketSequenceId};

/// Appends a packet of the sequence with this id that holds `data`.
pub(super) fn state(out: &mut Vec<u8>, sequence: u32, data: Data) {
    append(out, sequence, TracePacket { data: Some(data), ..TracePacket::default() });
}

/// As [`state`], of something that holds at `time`, in nanoseconds of `CLOCK_BOOTTIME`.
pub(super) fn state_at(out: &mut Vec<u8>, sequence: u32, time: u64, data: Data) {
    let packet = TracePacket {
        timestamp: Some(time),
        timestamp_clock_id: Some(BOOTTIME as u32),
        data: Some(data),
        ..TracePacket::default()
    };
    append(out, sequence, packet);
}

/// Appends a packet of the sequence with this id.
pub(super) fn append(out: &mut Vec<u8>, sequence: u32, mut packet: TracePacket) {
    packet.optional_trusted_packet_sequence_id =
        Some(OptionalTrustedPacketSequenceId::TrustedPacketSequenceId(sequence));
    prost::encoding::message::encode(trace::PACKET, &packet, out);
}

/// A string of the schema, which is text.
pub(super) fn string(bytes: &[u8]) -> String {
    clean(bytes).into_owned()
}

/// As [`string`]; nothing for an empty one.
pub(super) fn some_string(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| string(bytes))
}
