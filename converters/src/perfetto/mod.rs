//! Perfetto's trace files.

mod kinds;
mod read;
mod rows;
mod wire;
mod write;

pub use read::{Error, read};
pub use write::{Packets, Written, write, write_packets};
