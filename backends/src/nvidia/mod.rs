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
//! | `kinds` | what is recorded |
//! | `callbacks` | calls of the API, as they happen |
//! | `buffers` | memory that CUPTI fills |
//! | `layout`, `decode`, `waits`, `keys`, `names`, `occupancy` | records become ours |
//! | `clock` | CUPTI's clock |
//! | `device` | the inventory |
//! | `collect`, `session` | start and stop, and the thread in between |

mod buffers;
mod callbacks;
mod clock;
mod collect;
mod decode;
mod device;
mod keys;
mod kinds;
mod layout;
mod library;
mod names;
mod occupancy;
mod session;
mod sys;
mod waits;

pub use collect::{NVIDIA, Nvidia, injected};
