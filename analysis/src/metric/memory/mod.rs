//! What operators allocate and free, and how much memory there is in use: what PyTorch's profiler
//! records with `profile_memory=True`.
//!
//! Each allocation and each release is an instant `[memory]` of the thread that does it. It
//! belongs to the innermost operator around it on that thread; what operators that it calls
//! allocate counts for an operator, too, but not for itself. A release is seldom due to the
//! operator in which it happens, so `size_increase` says what an operator leaves behind only
//! where nothing older is freed meanwhile; `allocation_size` counts allocations alone.
//! An allocation and the release of its address are a row of `memory_events`; one of the two is
//! missing where it lies outside of the trace.
//!
//! `memory_timeline` divides what is in use by what it is for, which `memory_events` says of each
//! allocation. A trace has no tensors, so that the place of an allocation and the time for which it is held
//! decide:
//!
//! | category | allocations |
//! |---|---|
//! | `input` | made by a data loader |
//! | `optimizer_state` | made in `Optimizer.step`, and held when that ends |
//! | `gradient` | made in the backward pass, and held when that ends |
//! | `activation` | made elsewhere, and held when the next backward pass begins |
//! | `parameter` | likewise, and held when the one after that begins, too: parameters, buffers and whatever else the program keeps |
//! | `temporary` | released before any of these |
//! | `other` | made where no backward pass follows, and not released in the trace |
//! | `before_trace` | what the allocator counts that no allocation in the trace accounts for: most parameters and states, since they are made before the recording begins |
//!
//! A backward pass is all nodes of autograd between which neither a step nor a call of the optimizer
//! begins. PyTorch's own `export_memory_timeline` follows tensors from operator to operator instead, by
//! what only the process knows, and may put an allocation elsewhere.
//!
//! `--compat tensorboard` has the memory view of the TensorBoard plugin: allocations outside of
//! operators are left out of the statistics, an operator that calls itself counts once for each
//! call, operators are counted only in callers that allocate, devices are the host's memory and
//! CUDA's, and a curve is drawn as steps, of which at most 10,240 points are kept. It calls an
//! operator that is `aten::empty…` by its caller, with its own name in parentheses.

mod categories;
mod curve;
mod events;
mod places;
mod records;
mod statistics;
mod timeline;

use crate::Metric;
use crate::metric::one_by_one;

pub(super) use records::peaks;

/// By operator.
pub const STATISTICS: Metric = Metric {
    name: "memory_statistics",
    answers: "how much memory operators allocate and leave behind, themselves and with all that \
              they call",
    columns: statistics::COLUMNS,
    of_trace: statistics::of_trace,
    over_ranks: one_by_one,
};

/// Over time.
pub const CURVE: Metric = Metric {
    name: "memory_curve",
    answers: "how much memory of each device is in use and reserved, over time",
    columns: curve::COLUMNS,
    of_trace: curve::of_trace,
    over_ranks: one_by_one,
};

/// Over time, by what it is for.
pub const TIMELINE: Metric = Metric {
    name: "memory_timeline",
    answers: "what the memory of each device is used for over time: parameters, activations, \
              gradients and others",
    columns: timeline::COLUMNS,
    of_trace: timeline::of_trace,
    over_ranks: one_by_one,
};

/// One by one.
pub const EVENTS: Metric = Metric {
    name: "memory_events",
    answers: "which operator allocated how much, when, and how long it was held",
    columns: events::COLUMNS,
    of_trace: events::of_trace,
    over_ranks: one_by_one,
};
