//! Kymograph.
#[doc(hidden)]
pub mod queue;
pub mod clock;
pub mod intern;
mod engine;
