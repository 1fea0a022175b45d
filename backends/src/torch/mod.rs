//! PyTorch: its operators, and what its programs annotate, by an observer of our own.
//!
//! PyTorch calls observers around every operator (ATen/record_function.h); its own profiler is
//! one of them. [`observe`] adds another one to the `libtorch_cpu.so` that the process has
//! loaded. It is never loaded for that. What is read of PyTorch's structs differs from version to
//! version, and is only used after a check that runs an operator of ours under the observer.
//!
//! ```text
//!  library   libtorch_cpu.so of the process, and the functions that are used
//!  layout    what is read of a RecordFunction, by version
//!  check     which layout this PyTorch has, if one that is known
//!  observe   the callbacks: RecordFunction → Record
//!  names     ids of operators' names, without looking at the text's hash
//!  thread    which operators are open on a thread
//!  values    what is read of an operator's inputs, by version
//!  inputs    inputs → ids of texts
//!  texts     what these say
//!  collective  what is said of a collective that begins
//!  memory    allocations of tensors
//!  probe     for `kymo doctor`
//!  arrows    from an operator to the node that computes its gradient
//! ```
//!
//! | what | category | arguments |
//! |---|---|---|
//! | an operator, or a node of the autograd graph | `cpu_op` | `Sequence number`, `Fwd thread id` (of nodes); on request `Input Dims`, `Input Strides`, `Input type`, `Concrete Inputs` |
//! | a collective (`record_param_comms`) | `cpu_op` | `Collective name`, `dtype`, `In msg nelems`, `Out msg nelems`, `Process Group Name` and what else Kineto has of it |
//! | an allocation, if those are asked for | `cpu_instant_event` | `Addr`, `Bytes`, `Total Allocated`, `Total Reserved`, `Device Type`, `Device Id` |
//! | `record_function`, optimizers, data loaders, steps of `torch.profiler` | `user_annotation` | |
//!
//! They are slices on their thread, named as in Kineto's traces, where calls of CUDA are too: so
//! they nest, and cost one record of 32 bytes each if nothing is recorded inside.

mod arrows;
mod check;
mod collective;
mod inputs;
mod layout;
mod library;
mod memory;
mod names;
mod observe;
mod probe;
mod texts;
mod thread;
mod values;

pub use memory::{Allocation, memory_changed, record_memory, wants_memory};
pub use observe::{Outcome, is_there, nest_annotations_apart, observe};
pub use probe::probe;
