//! How a record lies in slots: the head, then arguments two by two, then bytes.

use bytemuck::cast;
use kymograph_protos::record::{ArgType, Extra, NAME_BY_VALUE, Record, Slot, StrId};

use super::chunk::{CAPACITY, Chunk};

/// Longest string that travels by value; the rest is cut off and counted.
pub(super) const MAX_INLINE: usize = CAPACITY as usize / 2 * 32;

/// Slots that arguments and a string by value take after the head. The string belongs to
/// the last of `extras` if that is of type `Bytes`; otherwise it is the event's name.
#[inline(always)]
pub(super) fn tail_slots(extras: &[Extra], bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        (extras.len() as u32).div_ceil(2)
    } else {
        let extras = extras.len() as u32 + u32::from(!describes_bytes(extras));
        extras.div_ceil(2) + (bytes.len().min(MAX_INLINE) as u32).div_ceil(32)
    }
}

fn describes_bytes(extras: &[Extra]) -> bool {
    extras.last().is_some_and(|e| e.ty == ArgType::Bytes as u8)
}

/// Writes a record whose tail takes `tail` slots, at `pos`, where there is room for it.
#[inline(always)]
pub(super) fn write(
    chunk: &Chunk,
    pos: u32,
    head: Record,
    tail: u32,
    extras: &[Extra],
    bytes: &[u8],
) {
    let by_value = !bytes.is_empty() && !describes_bytes(extras);
    let tag = head.tag | if by_value { NAME_BY_VALUE } else { 0 };
    chunk.put(pos, cast(Record { tail: tail as u16, tag, ..head }));
    match extras {
        // What most have that have any.
        [one] if bytes.is_empty() => {
            chunk.put(pos + 1, cast::<[Extra; 2], Slot>([*one, Extra::default()]));
        }
        _ if tail > 0 => write_tail(chunk, pos + 1, extras, bytes),
        _ => {}
    }
}

#[inline(never)]
fn write_tail(chunk: &Chunk, mut pos: u32, extras: &[Extra], bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MAX_INLINE)];
    let named = describes_bytes(extras);
    let name = Extra::new(StrId::NONE, ArgType::Bytes, bytes.len() as u64);
    let name = (!bytes.is_empty() && !named).then_some(&name);
    let mut all = extras.iter().chain(name).copied();
    while let Some(first) = all.next() {
        chunk.put(pos, cast::<[Extra; 2], Slot>([first, all.next().unwrap_or_default()]));
        pos += 1;
    }
    for part in bytes.chunks(32) {
        let mut slot = [0; 32];
        slot[..part.len()].copy_from_slice(part);
        chunk.put(pos, cast(slot));
        pos += 1;
    }
}
