//! A `librocprofiler-sdk.so` without a GPU: what a tool sees of the fake HIP's scripts, in
//! the layouts and with the numbers of the version that `FAKE_ROCPROFILER_VERSION` names:
//! "0.5" (ROCm 6.3), "0.6" (6.4), "1.0" (7.0), "1.1" (7.1), or "1.3" and later (2026).
//!
//! It keeps to what the real one is documented to do, and to its source:
//! - tools are configured in the first call of `rocprofiler_set_api_table` or in
//!   `rocprofiler_force_configure`, once; contexts, buffers and services are made then or
//!   never;
//! - HIP's functions are replaced for tools that asked for them, and only for those
//!   functions;
//! - it walks over a copy of a call's arguments: their addresses point to nothing, and types are
//!   mangled;
//! - streams share four HSA queues. From 1.0 on tools may be told of streams; before 1.3 a
//!   stream that was not made under their eyes ends the process, as an exception that nobody
//!   catches does (hip/stream.cpp, `get_stream_id`);
//! - kernels are registered before they are dispatched, in contexts that run;
//! - work is recorded for contexts that ran when it was asked for, when it is over, on a
//!   thread of the library's own;
//! - buffers are handed over when they have as many records as the watermark says, or when
//!   they are flushed, on a thread that calls nothing else;
//! - before the process ends, devices finish, and tools are finalised; then all calls fail.
//!
//! # Faults
//!
//! `FAKE_ROCPROFILER_FAULT` lists some, separated by commas; numbers may be left out:
//!
//! | fault | makes |
//! |---|---|
//! | `errors` | every call say 1 |
//! | `error:FUNCTION=N` | that function say N |
//! | `initialized` | the library have been configured already, for others |
//! | `other-tool` | `rocprofiler_force_configure` find another tool |
//! | `no-agents` | the machine have a processor only |
//! | `drop:10` | every 10th record of device work be dropped, and counted |
//! | `zero-times:10` | every 10th have no times |
//! | `future:10` | every 10th record of device work end in an hour |
//! | `backwards:10` | every 10th end before it begins |
//! | `no-correlation` | none know its call |
//! | `no-name` | kernels have no name |
//! | `unregistered` | kernels not be registered |
//! | `unknown-kind:10` | every 10th be followed by one of a kind that nobody knows |
//! | `truncated:10` | every 10th say that it is half as long |
//! | `out-of-order` | records be handed over last first |
//! | `clock:N` | its clock be N nanoseconds ahead |
//! | `clock-jump:N` | it jump ahead by N nanoseconds with the 500th record |
//! | `flush-hangs` | flushes never end |
//! | `replay:FILE` | the records of a self-test's report be handed over, besides |
//! | `late` | records come only when the library ends |
//!
//! Missing symbols are the harness's: it renames them in its copy of the library.

#![allow(clippy::disallowed_methods, reason = "fakes run where they are built")]

#[path = "../../report.rs"]
mod report;
#[path = "../../seam.rs"]
mod seam;
#[path = "../../settings.rs"]
mod settings;
#[path = "../tables.rs"]
mod tables;

mod agents;
mod buffers;
mod contexts;
mod kinds;
mod observe;
mod record;
mod registration;
mod replay;
mod status;
mod streams;

/// Where the settings are, for `settings`.
const VARIABLES: settings::Variables = settings::Variables::ROCPROFILER;
