//! A `libSynapse.so` without a Gaudi: devices to acquire, memory, streams and recipes, its
//! profiler, and `fake_cuda_run`, which does what a script says. Scripts are those of the fake CUDA driver, whose interpreter
//! this is: kernels run on TPCs, copies and sets on DMA engines, a stream on the engine of its
//! number.
//!
//! It keeps to what the sources of Synapse and of Habana's bridge for PyTorch say:
//! - the profiler works only if `HABANA_PROFILE` was set when Synapse was initialised;
//! - it keeps everything until it is stopped, and then fills one buffer, which is asked for
//!   its size first; its times are by a clock of its own;
//! - metadata comes first; kernels have a beginning and an end, copies and sets are complete;
//!   every launch is a call of `enqueueWithExternalEvents` with the recipe that its work bears,
//!   which others of the same work bear, too;
//! - a recipe of a program's is done by two engines together, each of which has an event of its
//!   own that bears the recipe's name, but not the program's;
//! - an engine may have number 0, as its type has in the metadata; the last entry is no event.
//!
//! # Environment
//!
//! `FAKE_HPU_DEVICES` (1) devices. `FAKE_HPU_VERSION` is `new` (events of 208 bytes, times in
//! microseconds) or `old` (112 bytes, nanoseconds, no recipes). `FAKE_HPU_FAULT` lists faults,
//! separated by commas; numbers may be left out:
//!
//! | fault | makes |
//! |---|---|
//! | `no-device` | no device be acquired |
//! | `errors` | every call of the profiler say 26 |
//! | `error:FUNCTION=N` | that function say N |
//! | `memory` | the profiler want memory of the device before it starts |
//! | `full` | the device have none left |
//! | `drop:10` | every 10th end of a kernel be missing |
//! | `zero-times:10` | every 10th kernel begin at 0 |
//! | `future:10` | every 10th kernel end in an hour |
//! | `odd-times:10` | every 10th kernel begin at what is not a number |
//! | `no-recipe:10` | every 10th kernel bear no recipe |
//! | `unknown-kind:10` | every 10th event be followed by one of a letter that nobody knows |
//! | `out-of-order` | events come last first |
//! | `truncated` | the buffer end within its last event |
//! | `wild-pointers:10` | names of every 10th event point outside the buffer; of all, without a number |
//! | `other-layout` | events have 240 bytes |
//! | `clock-jump` | the profiler's clock be an hour ahead when it is stopped |
//! | `huge` | the buffer be said to need more than there is |
//! | `replay:FILE` | the events of a self-test's report be in the trace, instead of what happened |
//! | `stop-hangs` | `synProfilerStop` never end |
//!
//! Missing symbols are the harness's: it renames them in its copy of the library.

#![allow(clippy::disallowed_methods, reason = "fakes run where they are built")]

#[path = "../../plant.rs"]
mod plant;
#[path = "../../report.rs"]
mod report;
#[path = "../../seam.rs"]
mod seam;
#[path = "../../settings.rs"]
mod settings;
#[path = "../../work.rs"]
mod work;

mod api;
mod buffer;
mod driver;
mod functions;
#[path = "../../nvidia/libcuda/graphs.rs"]
mod graphs;
mod profiler;
#[path = "../../nvidia/libcuda/run.rs"]
#[allow(dead_code, reason = "CUDA has contexts to wait for")]
mod run;
#[path = "../../nvidia/libcuda/script.rs"]
mod script;
#[path = "../../nvidia/libcuda/timeline.rs"]
#[allow(dead_code, reason = "CUDA has contexts to ask for")]
mod timeline;

/// Where the settings are, for `settings`.
const VARIABLES: settings::Variables = settings::Variables::HPU;
