//! Packets packed into one.

use kymograph_protos::packet;
use libdeflater::{CompressionLvl, Compressor};

/// `TracePacket.compressed_packets`.
const COMPRESSED_PACKETS: u32 = 50;
/// Of 12. The next one takes a third more time for 4 % less.
const LEVEL: i32 = 1;
/// For the only packet of a small file, which takes no time anyway.
const LEVEL_ALONE: i32 = 9;

/// See the module.
pub struct Deflate {
    compressor: Compressor,
    packed: Vec<u8>,
    out: Vec<u8>,
}

impl Deflate {
    pub fn new() -> Deflate {
        Deflate { compressor: compressor(LEVEL), packed: Vec::new(), out: Vec::new() }
    }

    /// One packet that holds `packets`; `alone` if it is all of the file. They stay as they are should packing fail, which
    /// it does not: there is room for what does not shrink.
    pub fn packet<'a>(&'a mut self, packets: &'a [u8], alone: bool) -> &'a [u8] {
        if alone {
            self.compressor = compressor(LEVEL_ALONE);
        }
        self.packed.resize(self.compressor.zlib_compress_bound(packets.len()), 0);
        let Ok(length) = self.compressor.zlib_compress(packets, &mut self.packed) else {
            return packets;
        };
        self.out.clear();
        packet::packet(&mut self.out, |p| {
            p.bytes(COMPRESSED_PACKETS, &self.packed[..length]);
        });
        &self.out
    }
}

fn compressor(level: i32) -> Compressor {
    Compressor::new(CompressionLvl::new(level).unwrap_or_default())
}
