//! Intel Gaudi (HPU), through the profiler of Synapse (`libSynapse.so`).
//!
//! ```text
//!  device acquired ─► start ─ … program runs … ─► stop ─► get trace ─► Recorder
//!                                                         layout, engines, decode
//! ```
//! The profiler knows sessions and no stream of records: everything comes when a recording
//! stops, or before the program gives the device back. It works only if `HABANA_PROFILE` was
//! set when the device was opened, which `kymo record` does.
//!
//! There are no correlation ids. A launch and what it launched bear the same recipe; which
//! execution is that of which launch is counted (`arrows`).
//!
//! | file | what |
//! |---|---|
//! | `sys` | what the headers define |
//! | `library` | Synapse, found at run time |
//! | `float80`, `layout` | events as they lie in the trace's buffer |
//! | `clock` | Synapse's clock |
//! | `engines` | what engines there are |
//! | `decode`, `args`, `texts`, `arrows` | events become records |
//! | `collect`, `session` | start and stop, and the thread in between |
//! | `probe` | what `kymo doctor` says |
//! | `replay` | traces without a library, for benchmarks |

mod args;
mod arrows;
mod clock;
mod collect;
mod decode;
mod engines;
mod float80;
pub(crate) mod layout;
mod library;
mod probe;
#[cfg(any(test, feature = "replay"))]
pub mod replay;
mod session;
mod sys;
mod texts;

pub use collect::{GAUDI, Gaudi, acquired, is_idle, opening, released};
pub use probe::probe;
