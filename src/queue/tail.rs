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
    if let ([one], true) = (extras, describes_bytes(extras)) {
        // One string, as most have that have any: no need to look for a partner.
        chunk.put(pos, cast::<[Extra; 2], Slot>([*one, Extra::default()]));
        return write_bytes(chunk, pos + 1, bytes);
    }
    let named = describes_bytes(extras);
    let name = Extra::new(StrId::NONE, ArgType::Bytes, bytes.len() as u64);
    let name = (!bytes.is_empty() && !named).then_some(&name);
    let mut all = extras.iter().chain(name).copied();
    while let Some(first) = all.next() {
        chunk.put(pos, cast::<[Extra; 2], Slot>([first, all.next().unwrap_or_default()]));
        pos += 1;
    }
    write_bytes(chunk, pos, bytes);
}

#[inline(always)]
fn write_bytes(chunk: &Chunk, mut pos: u32, bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<32>();
    for part in whole {
        chunk.put(pos, cast(*part));
        pos += 1;
    }
    if !rest.is_empty() {
        chunk.put(pos, padded(rest));
    }
}

/// Up to 31 bytes, and zeros: word by word, since a copy of any size is a call.
#[inline(always)]
fn padded(bytes: &[u8]) -> Slot {
    let mut slot = Slot::default();
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, eight) in slot.iter_mut().zip(whole) {
        *word = u64::from_ne_bytes(*eight);
    }
    if !rest.is_empty() {
        let word = match bytes.last_chunk::<8>() {
            Some(eight) => u64::from_le_bytes(*eight) >> (64 - 8 * rest.len()),
            None => few(rest),
        };
        slot[whole.len()] = word.to_le();
    }
    slot
}

/// One to seven bytes as the low bytes of a number.
#[inline(always)]
fn few(bytes: &[u8]) -> u64 {
    let last = bytes.len() - 1;
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(end)) => {
            let end = u64::from(u32::from_le_bytes(*end)) << (8 * (bytes.len() - 4));
            u64::from(u32::from_le_bytes(*first)) | end
        }
        _ => {
            let byte = |at: usize| u64::from(bytes[at]) << (8 * at);
            byte(0) | byte(last / 2) | byte(last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_slots_are_filled_with_zeros() {
        let all: Vec<u8> = (1..=31).collect();
        for length in 1..=all.len() {
            let mut expected = [0; 32];
            expected[..length].copy_from_slice(&all[..length]);
            assert_eq!(padded(&all[..length]), cast::<[u8; 32], Slot>(expected), "{length}");
        }
    }
}
