//! Kymograph.

mod api;
mod capi;
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
#[cfg(feature = "inject")]
#[doc(hidden)]
pub mod inject;
mod intern;
#[cfg(feature = "tracing")]
pub mod layer;
mod lifecycle;
#[doc(hidden)]
pub mod queue;
mod recorder;
mod recording;
pub mod session;
pub mod sink;
mod sources;
mod stack;

pub(crate) use api::category;
pub use api::{
    APP, Category, Counter, Flow, FlowEnd, Range, Scope, Track, Value, set_process_name,
    set_thread_name, step, steps,
};
pub use config::Config;
pub use error::Error;
pub use flight::Dump;
pub use kymograph_protos::CounterUnit;
pub use recording::{Ready, Recording, Session, Stats, Summary, ThreadStats};

/// The pipeline as backends see it, for tests and for sources of records that live outside
/// this crate.
#[doc(hidden)]
pub fn recorder() -> &'static dyn kymograph_protos::Recorder {
    &recorder::PIPELINE
}

/// For the macros.
#[doc(hidden)]
pub mod __private {
    pub use crate::api::{Callsite, Value, instant};
    /// The seam that backends push into, for tests.
    pub use crate::recorder::PIPELINE;

    /// Whether events are compiled in (feature `off` takes them out).
    pub const COMPILED_IN: bool = !cfg!(feature = "off");
}
