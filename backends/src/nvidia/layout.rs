//! Records of CUPTI, read at fixed offsets.
//!
//! All of a kind's fields that are read here have had the same offset from CUDA 11.8 to
//! 13.4 (cupti_activity.h): structs grow at their end. How large a record is in the
//! library at hand is asked of the library: a field that lies beyond is not there. The
//! version number would not do, since 11.8, 12.0 and 12.1 share one and have kernel
//! records of different sizes.

use super::sys::{Cupti, kind};
use crate::device::walk::stride;

/// Sizes of records by kind, as the library walks them; 0: unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    sizes: [u16; kind::END as usize],
    pub(crate) version: u32,
}

impl Sizes {
    /// Lets the library step over records that we made up. `next` is
    /// `cuptiActivityGetNextRecord`.
    pub(crate) fn learn(cupti: &Cupti, version: u32) -> Sizes {
        let mut sizes = Sizes { sizes: [0; kind::END as usize], version };
        for kind in 1..kind::END {
            // Where an unknown kind is stepped over, its size would be nobody's.
            if let Some(floor) = floor(kind) {
                let stride = stride(cupti.next_record, kind).filter(|stride| *stride >= floor);
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
