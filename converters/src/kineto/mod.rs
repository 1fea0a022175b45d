//! Traces of Kineto, the profiler in PyTorch: Chrome's JSON ([`crate::chrome`]) with meanings.
//!
//! What the categories become is what our own recording would have written:
//!
//! | category | hub |
//! |---|---|
//! | `kernel`, `gpu_memcpy`, `gpu_memset` (Gaudi: `Kernel`, `Memcpy`, `Memset`), `mtia_ccp_events` | an activity on the queue `tid` of the device `pid` |
//! | `gpu_user_annotation` | a slice on a track beside that queue |
//! | `cuda_sync`, `cuda_event` | likewise, on another track |
//! | `overhead` of process -1 | a slice on a track of the process |
//! | `cuda_runtime`, `cuda_driver` and the like | a slice on the thread, and an arrow to the activities that have its `correlation` |
//! | everything else | as in any of Chrome's traces |
//!
//! Of an activity's arguments, `grid` and `block` become its launch, `registers per thread` and
//! `shared memory` belong to the kernel; all others stay as they are, names and types.
//! `deviceProperties` become devices; the other members are facts, of objects and lists the
//! text.
//!
//! Arrows are made from the correlation numbers and not from `ac2g` events: Kineto writes ends
//! without a beginning for most calls that launch nothing, and some files have no arrows at all.
//! Writing JSON writes them where both ends exist.

mod category;
mod operators;
mod own;
mod steps;
mod write;

pub use crate::chrome::read;
pub use write::write;

pub(crate) use category::{Class, Work, class, work_category};
pub(crate) use operators::Operators;
pub(crate) use own::{Correlations, Names, Out, is_own};
pub(crate) use write::members;
