//! Sizes of CUPTI's records.
//!
//! Where fields lie says [`super::kinds`]: at fixed offsets, since structs grow at their end. How large a record is in the
//! library at hand is asked of the library: a field that lies beyond is not there. The
//! version number would not do, since 11.8, 12.0 and 12.1 share one and have kernel
//! records of different sizes.

use super::kinds::{END, layout};
use super::sys::Cupti;
use crate::device::walk::stride;

/// Sizes of records by kind, as the library walks them; 0: unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    sizes: [u16; END as usize],
    pub(crate) version: u32,
}

impl Sizes {
    /// Lets the library step over records that we made up. `next` is
    /// `cuptiActivityGetNextRecord`.
    pub(crate) fn learn(cupti: &Cupti, version: u32) -> Sizes {
        let mut sizes = Sizes { sizes: [0; END as usize], version };
        for kind in 1..END {
            // Where an unknown kind is stepped over, its size would mean nothing.
            if let Some(least @ 1..) = layout(kind).map(|layout| layout.least) {
                let stride = stride(cupti.next_record, kind).filter(|stride| *stride >= least);
                sizes.sizes[kind as usize] = stride.unwrap_or(least) as u16;
            }
        }
        sizes
    }

    /// The size of records of this kind; 0 if it is not one that is read.
    pub(crate) fn of(&self, kind: u32) -> usize {
        self.sizes.get(kind as usize).map_or(0, |size| usize::from(*size))
    }
}
