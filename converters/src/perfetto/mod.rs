//! Perfetto's trace files.

mod kinds;
mod read;
mod rows;
pub(crate) mod wire;
mod write;

pub use read::{Error, read};
pub(crate) use write::deal;
pub use write::{Packets, Written, write, write_packets};
