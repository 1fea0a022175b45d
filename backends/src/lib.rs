//! Sources of activities: annotation libraries and accelerator vendors.
//!
//! Knows records and the [`kymograph_protos::Recorder`] seam, nothing of queues, files or
//! Perfetto. Everything vendor-specific is found at run time.

pub mod amd;
pub mod annotate;
pub mod environment;
pub mod flushes;
pub mod hpu;
#[doc(hidden)]
pub mod layouts;
mod load;
pub mod nvidia;
pub mod source;
pub mod torch;
pub mod vendor;
pub mod xpu;
