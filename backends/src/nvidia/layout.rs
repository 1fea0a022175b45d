//! Records of CUPTI, read at fixed offsets.
//!
//! All of a kind's fields that are read here have had the same offset from CUDA 11.8 to
//! 13.4 (cupti_activity.h): structs grow at their end. How large a record is in the
//! library at hand is asked of the library: a field that lies beyond is not there. The
//! version number would not do, since 11.8, 12.0 and 12.1 share one and have kernel
//! records of different sizes.

use super::sys::{Cupti, SUCCESS, kind};

/// Sizes of records by kind, as the library walks them; 0: unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    sizes: [u16; kind::END as usize],
    pub(crate) version: u32,
}

/// Bytes that a record of the largest kind may have.
const LARGEST: usize = 1024;

impl Sizes {
    /// Lets the library step over records that we made up. `next` is
    /// `cuptiActivityGetNextRecord`.
    pub(crate) fn learn(cupti: &Cupti, version: u32) -> Sizes {
        let mut sizes = Sizes { sizes: [0; kind::END as usize], version };
        for kind in 1..kind::END {
            // Where an unknown kind is stepped over, its size would be nobody's.
            if let Some(floor) = floor(kind) {
                let stride =
                    stride(cupti, kind).filter(|stride| (floor..=LARGEST).contains(stride));
                sizes.sizes[kind as usize] = stride.unwrap_or(floor) as u16;
            }
        }
        sizes
    }

    /// The size of records of this kind; 0 if it is not one that is read.
    pub(crate) fn of(&self, kind: u32) -> usize {
        self.sizes.get(kind as usize).map_or(0, |size| usize::from(*size))
    }
}

/// The size in CUDA 11.8 of the kinds that are read.
fn floor(kind: u32) -> Option<usize> {
    Some(match kind {
        kind::MEMCPY | kind::MEMSET => 88,
        kind::KERNEL | kind::CONCURRENT_KERNEL => 200,
        kind::DRIVER | kind::RUNTIME | kind::OVERHEAD | kind::SYNCHRONIZATION => 40,
        kind::MEMCPY2 => 96,
        kind::CONTEXT => 16,
        kind::UNIFIED_MEMORY_COUNTER => 64,
        kind::CUDA_EVENT | kind::STREAM | kind::EXTERNAL_CORRELATION => 24,
        kind::MEMORY2 => 120,
        kind::MEMORY_POOL => 72,
        kind::GRAPH_TRACE => 48,
        _ => return None,
    })
}

/// The distance of two records of a kind.
fn stride(cupti: &Cupti, kind: u32) -> Option<usize> {
    // The kind stands wherever the second record may begin.
    let mut buffer = [u64::from(kind); LARGEST * 2 / 8];
    let start = buffer.as_mut_ptr().cast::<u8>();
    let mut record = std::ptr::null_mut();
    for _ in 0..2 {
        // SAFETY: the buffer is aligned, readable and as long as said; the library reads
        // the kind and returns pointers into it.
        let result = unsafe { (cupti.next_record)(start, LARGEST * 2, &mut record) };
        if result != SUCCESS {
            return None;
        }
    }
    (record as usize).checked_sub(start as usize)
}

/// One record: its bytes, as many as it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Raw<'a> {
        Raw(bytes)
    }

    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at + N)?.try_into().ok()
    }

    /// A field of 1, 2, 4 or 8 bytes; 0 if the record ends before it.
    pub(crate) fn u8(self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        self.array(at).map_or(0, u16::from_ne_bytes)
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        self.array(at).map_or(0, u32::from_ne_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        self.array(at).map_or(0, u64::from_ne_bytes)
    }

    /// Whether the record has a field of `len` bytes there.
    pub(crate) fn has(self, at: usize, len: usize) -> bool {
        at + len <= self.0.len()
    }

    pub(crate) fn kind(self) -> u32 {
        self.u32(0)
    }
}
