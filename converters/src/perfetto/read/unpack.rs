//! Packets that hold packed packets.

use std::io::{self, Read};

use kymograph_protos::fields::{trace, trace_packet};
use libdeflater::Decompressor;

use super::Reader;
use crate::perfetto::wire::{self, Fields};

/// Packed packets within packed packets.
const DEEPEST_PACKING: usize = 4;
/// Bytes that the packets of one packet may unpack to.
const LARGEST_PACKING: u64 = 256 << 20;

/// Unpacks packed packets.
#[derive(Default)]
pub struct Unpacker {
    inflate: Option<Box<Decompressor>>,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unpacker")
    }
}

/// What a packed packet unpacks to where its writer keeps to what Perfetto asks for.
const USUAL: usize = 1 << 20;

impl Unpacker {
    /// Unpacks `data`: zstd frames, or what zlib or gzip packed. On damage, also what came
    /// out before it.
    pub fn unpack(
        &mut self,
        zstd: bool,
        data: &[u8],
        most: u64,
    ) -> Result<Vec<u8>, (Vec<u8>, io::Error)> {
        let mut out = Vec::new();
        // Three times as fast as a stream, where the result is whole and not large.
        if !zstd && (USUAL as u64) < most {
            out.resize((data.len() * 16).clamp(1 << 12, USUAL), 0);
            let inflate = self.inflate.get_or_insert_with(|| Decompressor::new().into());
            if let Ok(length) = inflate.zlib_decompress(data, &mut out) {
                out.truncate(length);
                return Ok(out);
            }
            out.clear();
        }
        let result = if zstd {
            zstd::stream::read::Decoder::with_buffer(data)
                .and_then(|decoder| decoder.take(most).read_to_end(&mut out))
        } else if data.starts_with(&[0x1f, 0x8b]) {
            flate2::bufread::MultiGzDecoder::new(data).take(most).read_to_end(&mut out)
        } else {
            flate2::bufread::ZlibDecoder::new(data).take(most).read_to_end(&mut out)
        };
        match result {
            Ok(_) if out.len() as u64 == most => {
                Err((out, io::Error::other(format!("more than {most} bytes"))))
            }
            Ok(_) => Ok(out),
            Err(error) => Err((out, error)),
        }
    }
}

impl Reader {
    /// Reads what can be unpacked of a packet of packed ones that was cut off; says whether
    /// it is one.
    pub(super) fn cut_packets(&mut self, bytes: &[u8]) -> bool {
        let mut data = bytes;
        let tag = wire::varint(&mut data).filter(|tag| tag & 7 == 2).map(|tag| tag >> 3);
        let kind = tag.and_then(|kind| u32::try_from(kind).ok());
        let packed = |kind: &u32| {
            matches!(
                *kind,
                trace_packet::COMPRESSED_PACKETS | trace_packet::ZSTD_COMPRESSED_PACKETS
            )
        };
        let Some(kind) = kind.filter(packed) else { return false };
        if wire::varint(&mut data).is_none() {
            return false;
        }
        let before = self.packets;
        self.packed_packets(kind, data, 0);
        self.packets > before
    }

    /// `compressed_packets` and `zstd_compressed_packets`: a packed trace in a packet.
    pub(super) fn packed_packets(&mut self, kind: u32, data: &[u8], depth: usize) {
        if depth >= DEEPEST_PACKING {
            return self.odd("packets packed more often than any writer does");
        }
        let unpacked = match self.unpacker.unpack(
            kind == trace_packet::ZSTD_COMPRESSED_PACKETS,
            data,
            LARGEST_PACKING,
        ) {
            Ok(unpacked) => unpacked,
            Err((unpacked, error)) => {
                self.odd(&format!("packed packets that are damaged ({error})"));
                unpacked
            }
        };
        self.unpacked += unpacked.len() as u64;
        let read = self.offset + data.len() as u64;
        if self.unpacked > self.limits.bytes.max(self.limits.ratio.saturating_mul(read)) {
            return self.odd("packed packets that unpack to more than a trace does");
        }
        for (number, field) in Fields::new(&unpacked) {
            match number {
                trace::PACKET => self.packet(field.bytes(), depth + 1),
                0 => self.damaged("packed packets that are cut off"),
                _ => {}
            }
        }
    }
}
