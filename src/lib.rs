//! Kymograph.
#[doc(hidden)]
pub mod clock;
pub mod config;
#[doc(hidden)]
pub mod control;
mod engine;
pub mod error;
mod intern;
#[doc(hidden)]
pub mod queue;
mod recorder;
mod recording;
pub mod sink;

pub use config::Config;
pub use error::Error;
pub use recording::{Recording, Stats, Summary, ThreadStats};
