#![doc = include_str!("../docs/CRATE.md")]

mod api;
mod capi;
#[doc(hidden)]
pub mod capture;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod collect;
pub mod config;
#[doc(hidden)]
pub mod control;
mod engine;
pub mod error;
mod flight;
mod guard;
mod hooks;
#[cfg(feature = "inject")]
#[doc(hidden)]
pub mod inject;
mod intern;
mod join;
#[cfg(feature = "tracing")]
pub mod layer;
#[doc(hidden)]
pub mod page;
mod process;
#[doc(hidden)]
pub mod queue;
mod recorder;
mod recording;
pub mod session;
pub mod sink;
mod sources;
mod stack;

pub use api::{
    Counter, Flow, FlowEnd, Range, Ready, Recording, Scope, Session, Track, Value,
    set_process_name, set_thread_name, step, steps,
};
pub use config::Config;
pub use engine::stats::{Stats, Summary, ThreadStats};
pub use error::Error;
pub use flight::Dump;
pub use kymograph_protos::CounterUnit;
pub use recorder::category::{APP, Category};

/// The pipeline as backends see it, for tests and for sources of records that live outside
/// this crate.
#[doc(hidden)]
pub fn recorder() -> &'static dyn kymograph_protos::ColdRecorder {
    &recorder::PIPELINE
}

/// For the macros.
#[doc(hidden)]
pub mod __private {
    pub use crate::api::{Callsite, Value, instant};
    /// The seam that backends push into, for tests.
    pub use crate::recorder::PIPELINE;

    pub use crate::recorder::COMPILED_IN;
}
