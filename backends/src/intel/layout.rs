//! Sizes of PTI's records, and where their fields lie.
//!
//! Structs of pti_view.h have grown at their ends only since 0.12 (1.0 asserts that of its
//! `_v2` structs). How large a record is in the library at hand is asked of the library: it
//! steps over records that we made up, which works without a device.
//!
//! | kind | 0.12 – 0.17 | 1.0 – 1.2 |
//! |---|--:|--:|
//! | kernel | 168 | 184 |
//! | copy | 136 | 152 |
//! | copy between devices | 168 | 192 |
//! | fill | 136 | 152 |
//! | external correlation | 24 | 24 |
//! | call | 48 | 48 |
//! | overhead | 56 | 56 |
//! | synchronisation | 72 | 72 |
//! | communication | 56 (0.17) | 64 |

use super::sys::{Pti, kind};
use crate::device::walk::stride;

/// Sizes of records by kind, as the library walks them; 0: not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes([u16; kind::END as usize]);

/// The smallest size of each kind that can be read: that of 0.12, but for communication,
/// whose fields moved in 1.0.
const FLOORS: [u16; kind::END as usize] = [0, 168, 0, 48, 0, 56, 48, 24, 136, 136, 168, 72, 64];

impl Sizes {
    /// Lets the library step over records that we made up.
    pub(crate) fn learn(pti: &Pti) -> Sizes {
        let mut sizes = Sizes(FLOORS);
        for (kind, size) in (0..).zip(&mut sizes.0) {
            if *size > 0
                && let Some(stride) = stride(pti.next_record, kind)
            {
                *size = if stride < usize::from(*size) { 0 } else { stride as u16 };
            }
        }
        sizes
    }

    /// The size of records of this kind; 0 if it is not one that is read.
    pub(crate) fn of(&self, kind: u32) -> usize {
        self.0.get(kind as usize).map_or(0, |size| usize::from(*size))
    }
}

/// Where the fields lie that all activities have, by kind (pti_view.h).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) queue: usize,
    pub(crate) context: usize,
    pub(crate) name: usize,
    pub(crate) uuid: usize,
    pub(crate) id: usize,
    pub(crate) correlation: usize,
    pub(crate) append: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) submit: usize,
    pub(crate) sycl_queue: usize,
}

pub(crate) const KERNEL: Fields = Fields {
    queue: 8,
    context: 16,
    name: 24,
    uuid: 80,
    id: 48,
    correlation: 56,
    append: 96,
    start: 104,
    end: 112,
    submit: 120,
    sycl_queue: 152,
};
pub(crate) const COPY: Fields = Fields {
    queue: 16,
    context: 24,
    name: 32,
    uuid: 56,
    id: 72,
    correlation: 80,
    append: 88,
    start: 96,
    end: 104,
    submit: 112,
    sycl_queue: 128,
};
pub(crate) const PEER_COPY: Fields = Fields {
    queue: 16,
    context: 24,
    name: 32,
    uuid: 72,
    id: 104,
    correlation: 112,
    append: 120,
    start: 128,
    end: 136,
    submit: 144,
    sycl_queue: 160,
};
pub(crate) const FILL: Fields = Fields {
    queue: 8,
    context: 16,
    name: 24,
    uuid: 48,
    id: 64,
    correlation: 72,
    append: 80,
    start: 88,
    end: 96,
    submit: 104,
    sycl_queue: 128,
};
// The last field of each v1 struct ends it: 168, 136, 168 and 136 bytes.
const _: () = assert!(KERNEL.sycl_queue + 8 + 8 == 168);
const _: () = assert!(COPY.sycl_queue + 8 == 136 && FILL.sycl_queue + 8 == 136);
const _: () = assert!(PEER_COPY.sycl_queue + 8 == 168);
