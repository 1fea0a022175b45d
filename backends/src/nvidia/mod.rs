//! NVIDIA GPUs, through CUPTI.
//!
//! ```text
//!  program's thread ─ CUDA call ─► callbacks ────────────────► Recorder (that thread)
//!                                      │ CUPTI
//!  GPU ─► CUPTI ─► buffers ─► collect (one thread of ours) ─► Recorder
//!                             layout, decode, waits, clock
//! ```
//! | file | what |
//! |---|---|
//! | `sys` | what the headers define |
//! | `library` | CUPTI and the driver, found at run time |
//! | `kinds` | what is recorded, and how its records are laid out |
//! | `functions` | which calls matter |
//! | `callbacks`, `direct`, `sync` | calls of the API, as they happen |
//! | `buffers` | memory that CUPTI fills |
//! | `layout`, `decode`, `queues`, `ranges`, `waits`, `memory`, `allocated`, `places`, `keys`, `names`, `occupancy` | records become ours |
//! | `clock` | CUPTI's clock |
//! | `device` | the inventory |
//! | `counters`, `nvml` | utilisation, power and the like, from NVML |
//! | `share`, `subscription`, `other`, `relay`, `copies` | another user of CUPTI in the program |
//! | `probe` | what `kymo doctor` says |
//! | `replay` | records without a library, for benchmarks |
//! | `collect`, `enable`, `session`, `detach` | start and stop, and the thread in between |
//! | `state` | what the process remembers of CUPTI |

mod allocated;
mod buffers;
mod callbacks;
mod clock;
mod collect;
mod copies;
mod counters;
mod decode;
mod detach;
mod device;
mod direct;
mod enable;
mod functions;
mod keys;
pub(crate) mod kinds;
mod layout;
mod library;
mod memory;
mod names;
mod nvml;
mod occupancy;
mod other;
mod places;
mod probe;
mod queues;
mod ranges;
mod relay;
#[cfg(any(test, feature = "replay"))]
pub mod replay;
mod session;
pub mod share;
mod state;
pub mod subscription;
mod sync;
pub(crate) mod sys;
mod waits;

pub use collect::{NVIDIA, Nvidia, injected};
pub use probe::probe;
pub use sys::{BufferCompleted, BufferRequested, Callback, Code, TimestampCallback};
