//! Keys of the fields that every event has, as the bytes that stand in a packet.

use super::message::{FIXED64, LENGTH, VARINT};
use crate::fields::{debug_annotation, trace, trace_packet, track_event};

/// `Trace`.
pub const PACKET: u8 = short(trace::PACKET, LENGTH);

/// `TracePacket`.
pub const TIMESTAMP: u8 = short(trace_packet::TIMESTAMP, VARINT);
pub const SEQUENCE_ID: u8 = short(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, VARINT);
pub const SEQUENCE_FLAGS: u8 = short(trace_packet::SEQUENCE_FLAGS, VARINT);
pub const TRACK_EVENT: u8 = short(trace_packet::TRACK_EVENT, LENGTH);

/// `TrackEvent`.
pub const TYPE: u8 = short(track_event::TYPE, VARINT);
pub const TRACK_UUID: u8 = short(track_event::TRACK_UUID, VARINT);
pub const CATEGORY_IIDS: u8 = short(track_event::CATEGORY_IIDS, VARINT);
pub const NAME_IID: u8 = short(track_event::NAME_IID, VARINT);
pub const DEBUG_ANNOTATIONS: u8 = short(track_event::DEBUG_ANNOTATIONS, LENGTH);
pub const FLOW_IDS: [u8; 2] = long(track_event::FLOW_IDS, FIXED64);
pub const TERMINATING_FLOW_IDS: [u8; 2] = long(track_event::TERMINATING_FLOW_IDS, FIXED64);
pub const COUNTER_VALUE: [u8; 2] = long(track_event::COUNTER_VALUE, VARINT);
pub const DOUBLE_COUNTER_VALUE: [u8; 2] = long(track_event::DOUBLE_COUNTER_VALUE, FIXED64);

/// `DebugAnnotation`.
pub const ARG_NAME_IID: u8 = short(debug_annotation::NAME_IID, VARINT);
pub const BOOL_VALUE: u8 = short(debug_annotation::BOOL_VALUE, VARINT);
pub const UINT_VALUE: u8 = short(debug_annotation::UINT_VALUE, VARINT);
pub const INT_VALUE: u8 = short(debug_annotation::INT_VALUE, VARINT);
pub const DOUBLE_VALUE: u8 = short(debug_annotation::DOUBLE_VALUE, FIXED64);
pub const POINTER_VALUE: u8 = short(debug_annotation::POINTER_VALUE, VARINT);
pub const STRING_VALUE_IID: [u8; 2] = long(debug_annotation::STRING_VALUE_IID, VARINT);

/// A key of one byte: of a field below 16.
const fn short(field: u32, wire_type: u32) -> u8 {
    assert!(field < 16);
    (field << 3 | wire_type) as u8
}

/// A key of two bytes: of a field from 16 to 2047.
const fn long(field: u32, wire_type: u32) -> [u8; 2] {
    assert!(field >= 16 && field < 2048);
    let key = field << 3 | wire_type;
    [key as u8 | 0x80, (key >> 7) as u8]
}
