//! What a converted trace states of the file that it was made from, so that it can be converted
//! back: in fields of `TracePacket` that Perfetto does not use, and that its readers pass over.

use super::message::{Message, varint, varint_len};
use super::packet;
use super::sequence::Sequence;
use crate::fields::{trace_packet, track_event, track_event::legacy_event};

/// Where the event of a packet stood in the file: the difference to the packet before that has
/// one, in zigzag, and two bits of marks.
pub const POSITION: u32 = 1900;
/// An end of an arrow at the event of a packet: a message, whose fields are these.
pub const FLOW: u32 = 1901;
/// Begins, passes through or ends: 1 to 3.
pub const FLOW_PHASE: u32 = 1;
/// Its id in the file.
pub const FLOW_ID: u32 = 2;
/// Its name.
pub const FLOW_NAME: u32 = 3;
/// When it touches the event: the difference to the time of the packet, in zigzag.
pub const FLOW_TIME: u32 = 4;
/// Its position: the difference to that of the packet, in zigzag.
pub const FLOW_POSITION: u32 = 5;
/// An event of the file that is in no other packet: a message of its position and its text.
pub const LEFTOVER: u32 = 1902;
/// Where it stood.
pub const LEFTOVER_POSITION: u32 = 1;
/// Its JSON.
pub const LEFTOVER_TEXT: u32 = 2;
/// The `pid` of a process, in zigzag, where Perfetto has no room for it.
pub const PID: u32 = 1903;
/// The `tid` of a thread, likewise.
pub const TID: u32 = 1904;
/// What a counter is called in the file: the name of the event.
pub const COUNTER: u32 = 1905;
/// And whose it is: 1 for its process's, 2 for thread 0's of that, else its `tid` in zigzag
/// plus 3.
pub const COUNTER_OF: u32 = 1906;

/// Small numbers for small differences, whatever their sign.
pub fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The number that [`zigzag`] was given.
pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Adds fields to the packet that begins at `start` and ends with `out`.
pub fn amend(out: &mut Vec<u8>, start: usize, fill: impl FnOnce(&mut Message<'_>)) {
    let length = out.get(start + 1..).unwrap_or_default();
    let size = 1 + length.iter().take_while(|byte| **byte >= 0x80).count();
    let before = out.len();
    fill(&mut Message::new(out));
    if out.len() == before {
        return;
    }
    let body = start + 1 + size;
    let mut length = (out.len() - body) as u64;
    if varint_len(length) != size {
        let mut bytes = Vec::with_capacity(10);
        varint(&mut bytes, length);
        out.splice(start + 1..body, bytes);
        return;
    }
    for byte in &mut out[start + 1..body] {
        *byte = length as u8 | 0x80;
        length >>= 7;
    }
    out[body - 1] &= 0x7f;
}

/// An end of an arrow as an event of its own, as Chrome wrote them: it binds to a slice by its
/// time.
#[derive(Clone, Copy, Debug)]
pub struct FlowEvent<'a> {
    /// Nanoseconds.
    pub time: u64,
    /// Uuid of a thread's track; 0 for the default of the sequence.
    pub track: u64,
    /// `s`, `t` or `f`.
    pub phase: u8,
    /// Together with category and name it says which flow.
    pub id: u64,
    /// Any bytes.
    pub category: &'a [u8],
    /// Any bytes.
    pub name: &'a [u8],
}

impl Sequence {
    /// Appends an end of an arrow. The sequence must have been started.
    pub fn flow_event(&mut self, out: &mut Vec<u8>, event: &FlowEvent<'_>) {
        let start = out.len();
        let delta = self.advance(event.time);
        let id = self.id();
        packet(out, |p| {
            p.uint(trace_packet::TIMESTAMP, delta)
                .uint(trace_packet::SEQUENCE_FLAGS, 2)
                .uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, id.into())
                .message(trace_packet::TRACK_EVENT, |e| {
                    if event.track != 0 {
                        e.uint(track_event::TRACK_UUID, event.track);
                    }
                    e.text(track_event::CATEGORIES, event.category)
                        .text(track_event::NAME, event.name)
                        .message(track_event::LEGACY_EVENT, |legacy| {
                            legacy
                                .uint(legacy_event::PHASE, event.phase.into())
                                .uint(legacy_event::UNSCOPED_ID, event.id);
                            legacy.uint(legacy_event::BIND_TO_ENCLOSING, 1);
                        });
                });
        });
        self.count_bytes(out.len() - start);
    }
}

/// Appends an event that no other packet holds.
pub fn leftover(out: &mut Vec<u8>, position: u32, text: &[u8]) {
    packet(out, |p| {
        p.message(LEFTOVER, |leftover| {
            leftover.uint(LEFTOVER_POSITION, position.into()).bytes(LEFTOVER_TEXT, text);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_further_fields() {
        for length in [0, 1, 120, 124, 125, 126, 127, 128, 300, 20_000] {
            let mut out = b"before".to_vec();
            let start = out.len();
            packet(&mut out, |p| {
                p.bytes(1, &vec![7; length]);
            });
            amend(&mut out, start, |p| {
                p.uint(POSITION, 5);
            });
            let mut wanted = b"before".to_vec();
            packet(&mut wanted, |p| {
                p.bytes(1, &vec![7; length]).uint(POSITION, 5);
            });
            assert_eq!(out, wanted, "{length}");
            amend(&mut out, start, |_| {});
            assert_eq!(out, wanted, "{length}");
        }
    }

    #[test]
    fn zigzag_and_back() {
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(number)), number);
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
