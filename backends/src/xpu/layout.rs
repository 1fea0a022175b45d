//! Sizes of PTI's records.
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
use crate::vendor::walk::stride;

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
