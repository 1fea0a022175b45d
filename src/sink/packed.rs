//! Packets packed into packets: `TracePacket.compressed_packets`, which readers unpack as
//! they go. Such a file can be cut anywhere between packets, appended to, sent while it is
//! written, and joined with others; unlike a gzip file, of which only all is readable.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use kymograph_protos::packet;
use std::io::{self, Write};

/// `TracePacket.compressed_packets`: zlib.
const COMPRESSED_PACKETS: u32 = 50;
/// Bytes of packets in one, which readers unpack at once.
const CHUNK: usize = 512 << 10;
const LEVEL: u32 = 4;

/// Packs a batch.
pub(super) fn pack(packets: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = packets;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(whole(rest));
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
        encoder.write_all(chunk)?;
        let packed = encoder.finish()?;
        packet::packet(&mut out, |p| {
            p.bytes(COMPRESSED_PACKETS, &packed);
        });
        rest = after;
    }
    Ok(out)
}

/// The length of as many packets as fit into a chunk, one at least.
fn whole(packets: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = first(&packets[end..]) {
        if end > 0 && end + length > CHUNK {
            break;
        }
        end += length;
    }
    // What is no packet stays as it is: the whole of it is one piece.
    if end == 0 { packets.len() } else { end }
}

/// The length of the first packet: its tag, its length, and that many bytes.
fn first(packets: &[u8]) -> Option<usize> {
    let after_tag = packets.strip_prefix(&[0x0a])?;
    let mut length = 0usize;
    for (index, byte) in after_tag.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let end = 1 + index + 1 + length;
            return (end <= packets.len()).then_some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What a reader makes of it: the packets in order, and how many there were in each.
    fn unpack(mut packed: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let (mut all, mut lengths) = (Vec::new(), Vec::new());
        while let Some(length) = first(packed) {
            let (one, rest) = packed.split_at(length);
            // Its tag, two bytes, and its length; each begins after the one before ends.
            let tag = 1 + varint(&one[1..]);
            assert_eq!(one[tag..tag + 2], [0x92, 0x03]);
            let start = tag + 2 + varint(&one[tag + 2..]);
            let before = all.len();
            flate2::read::ZlibDecoder::new(&one[start..]).read_to_end(&mut all).unwrap();
            lengths.push(all.len() - before);
            packed = rest;
        }
        (all, lengths)
    }

    fn varint(bytes: &[u8]) -> usize {
        1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap()
    }

    #[test]
    fn packets_come_back_whole_and_in_pieces_that_are_not_too_large() {
        let mut packets = Vec::new();
        for size in [0, 1, 127, 128, 20_000, 300_000, 300_000, 900_000, 3] {
            packet::packet(&mut packets, |p| {
                p.bytes(7, &vec![size as u8; size]);
            });
        }
        let (all, lengths) = unpack(&pack(&packets).unwrap());
        assert_eq!(all, packets);
        assert_eq!(lengths.len(), 4, "{lengths:?}");
        assert!(lengths[0] <= CHUNK && lengths[1] <= CHUNK && lengths[2] > CHUNK);
    }

    #[test]
    fn what_is_no_packet_is_kept_all_the_same() {
        assert_eq!(unpack(&pack(b"nonsense").unwrap()).0, b"nonsense");
        assert!(pack(b"").unwrap().is_empty());
    }
}
