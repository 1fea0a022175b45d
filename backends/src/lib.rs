//! Sources of activities: annotation libraries and accelerator vendors.
//!
//! Knows records and the [`kymograph_protos::Recorder`] seam, nothing of queues, files or
//! Perfetto. Everything vendor-specific is found at run time.

pub mod amd;
pub mod annotate;
pub mod device;
pub mod environment;
pub mod flushes;
pub mod gaudi;
pub mod guard;
pub mod intel;
#[doc(hidden)]
pub mod layouts;
mod load;
pub mod nvidia;
pub mod source;
pub mod torch;
pub mod vendors;
