//! Sources of activities: annotation libraries and accelerator vendors.
//!
//! Knows records and the [`kymograph_protos::Recorder`] seam, nothing of queues, files or
//! Perfetto. Everything vendor-specific is found at run time.

pub mod annotate;
mod load;
pub mod nvidia;
pub mod source;
pub mod vendor;
pub mod xpu;
