//! A `libamdhip64.so.6` without a GPU: enough of HIP to look around in, and `fake_hip_run`,
//! which does what a script says (the grammar is the fake libcuda's). Like the real one it
//! hands its table to librocprofiler-register when it is first used, and so do the RCCL and
//! the ROCTX that are in it.
//!
//! `call` takes functions of all three: `call hipMalloc:4096`, `call ncclAllReduce:1024`,
//! `call roctxRangePushA:step`, `call hipStreamDestroy:13`. `overhead N` reports scratch memory: 1 allocated, 2
//! released, 3 reclaimed. `via=driver` launches through the module API.
//!
//! `FAKE_HIP_DEVICES` (1) devices.

#[path = "../../plant.rs"]
mod plant;
#[path = "../../seam.rs"]
mod seam;
#[path = "../tables.rs"]
mod tables;
#[path = "../../work.rs"]
mod work;

mod api;
mod arguments;
mod functions;
#[path = "../../nvidia/libcuda/graphs.rs"]
mod graphs;
mod registration;
mod run;
mod runtime;
#[allow(dead_code, reason = "HIP tells less of a stream")]
#[path = "../../nvidia/libcuda/script.rs"]
mod script;
#[allow(dead_code, reason = "the fake CUPTI tells more of it")]
#[path = "../../nvidia/libcuda/timeline.rs"]
mod timeline;
