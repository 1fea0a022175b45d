//! Kymograph.

pub mod config;
#[doc(hidden)]
pub mod control;
pub mod error;
pub mod sink;

pub use config::Config;
pub use error::Error;
