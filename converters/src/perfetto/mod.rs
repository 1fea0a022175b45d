//! Perfetto's trace files.

mod kinds;
mod read;
mod wire;

pub use read::{Error, read};
