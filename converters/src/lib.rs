//! Reads finished traces. Never linked into a traced process by itself.
//!
//! Every format is read into one document, the hub [`trace::Trace`], and written from it;
//! what is known about a trace is asked of the hub. So n formats need n readers and n
//! writers, not n².
//!
//! * [`trace`]: the hub.
//! * [`format`](mod@format): formats by name, and files of any of them.
//! * [`folder`]: trace files by what people say: a file, a folder, a pattern.
//! * [`perfetto`]: Perfetto's trace files.
//! * [`chrome`]: Chrome's JSON, and what every JSON trace has in common.
//! * [`kineto`]: Kineto's JSON: what PyTorch writes.
//! * `speedscope`, `firefox`: formats of sampling profilers, read and written.
//! * `xplane`, `perf_script`, `rocprof`, `rocpd`, `nsys`: formats that are only read.
//! * [`json`]: JSON itself.
//! * [`merge`]: several traces on one timeline.
//! * `export`: tables for data tools.
//! * [`order`]: sorting by code that all callers share.
//! * [`packed`]: gzip and zstd, for readers of any format.
#![forbid(unsafe_code)]

mod ahead;
mod builder;
pub mod chrome;
mod detect;
pub mod export;
mod firefox;
pub mod folder;
mod foreign;
pub mod format;
mod gunzip;
pub mod json;
pub mod kineto;
pub mod merge;
mod nsys;
mod numbered;
pub mod order;
pub mod packed;
mod perf_script;
pub mod perfetto;
mod processors;
mod rocpd;
mod rocprof;
mod speedscope;
mod sqlite;
mod stacks;
pub mod trace;
mod xplane;

pub use processors::each;
pub(crate) use processors::processors;
