//! AMD GPUs, through rocprofiler-sdk.
//!
//! ```text
//!  program's thread ─ HIP, RCCL, ROCTX ─► callbacks ─► Recorder (that thread)
//!                             │ launches: what the call said
//!  GPU ─► rocprofiler-sdk ─► records ─► decode (a thread of the library's) ─► Recorder
//! ```
//! | file | what |
//! |---|---|
//! | `sys` | what the headers define |
//! | `library`, `runtime` | rocprofiler-sdk, and what there is of ROCm in the process |
//! | `kinds` | what is recorded, and the library's numbers for it |
//! | `configure` | registering with the library |
//! | `calls`, `arguments`, `stream_ids`, `launches` | calls of HIP, RCCL and HSA, as they happen |
//! | `markers`, `stream_names` | calls of ROCTX |
//! | `kernels` | kernels by id |
//! | `layout`, `decode`, `ranges`, `pages`, `streams`, `keys` | records become ours |
//! | `clock` | the library's clock |
//! | `device` | agents, and the inventory |
//! | `probe` | what `kymo doctor` says |
//! | `collect` | start and stop, and the threads in between |
//! | `replay` | records made up, for benchmarks |
//!
//! **When it is too late.** The library must be configured before HIP or HSA is used: then
//! it wraps their functions. `kymo record` preloads a library that exports
//! `rocprofiler_configure`, which HIP finds by itself. A program that embeds us is
//! configured when its recording starts, and that must come before its first call of HIP
//! unless the library can ask for HIP's tables once more, as that of ROCm 7.13 does; the trace
//! says so if it was too late.

mod arguments;
mod calls;
mod clock;
mod collect;
mod configure;
mod decode;
mod device;
mod kernels;
mod keys;
mod kinds;
mod launches;
pub(crate) mod layout;
mod library;
mod markers;
mod pages;
mod probe;
mod ranges;
#[doc(hidden)]
#[cfg(any(test, feature = "replay"))]
pub mod replay;
mod runtime;
pub(crate) mod stream_ids;
mod stream_names;
mod streams;
pub(crate) mod sys;

pub use collect::{AMD, Amd, without_library};
pub use configure::{configure, prepare};
pub use library::can_be_loaded;
pub use probe::probe;
pub use sys::{Configure, ConfigureResult};
