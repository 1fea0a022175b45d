//! Intel GPUs, through PTI (`libpti_view.so`).
//!
//! ```text
//!  program's thread ─ SYCL, Level Zero ─► PTI ─► buffers ─┐
//!  GPU ─────────────────────────────────► PTI ────────────┴─► one thread of ours ─► Recorder
//!                                                             layout, decode, calls
//! ```
//! PTI has no callbacks for calls: they come in buffers like the work of devices, some time
//! later, timed by a clock that is not ours. On the row of their thread they could end up
//! crossing what that thread recorded itself by some nanoseconds. So they lie on a row of
//! their own below it, where they keep their times exactly (`calls`).
//!
//! **When PTI must be there.** It learns of SYCL's queues and calls only if it is loaded
//! before SYCL starts: a program that links SYCL gets it before its `main`
//! ([`before_main`]), PyTorch links it itself.
//!
//! **When PTI may be asked.** It aborts the process when Level Zero has no working driver.
//! So Level Zero is asked first (`levelzero`), and nothing of PTI is called but its version
//! before that answered.
//!
//! | file | what |
//! |---|---|
//! | `sys` | what the headers define |
//! | `library` | PTI, found at run time, and its version |
//! | `levelzero` | the driver: whether there is one, and its devices |
//! | `selection` | what is recorded |
//! | `buffers` | memory that PTI fills |
//! | `layout`, `decode`, `calls`, `keys`, `names` | records become ours |
//! | `launches` | what PTI dropped |
//! | `share` | another user of PTI in the program |
//! | `collect`, `session` | start and stop, and the thread in between |
//! | `probe` | what `kymo doctor` says |
//! | `replay` | records without a library, for benchmarks |

mod buffers;
mod calls;
mod collect;
mod decode;
mod keys;
mod launches;
pub(crate) mod layout;
mod levelzero;
mod library;
pub(crate) mod names;
mod probe;
#[cfg(any(test, feature = "replay"))]
pub mod replay;
mod selection;
mod session;
pub mod share;
pub(crate) mod sys;
#[cfg(test)]
mod tests;

pub use collect::{INTEL, Intel, before_main, initialised, is_idle};
pub use levelzero::UNINITIALISED;
pub use probe::probe;
pub use sys::{BufferCompleted, BufferRequested};
