//! The instrumentation API: what a program says about itself.
//!
//! Everything here may be called from any thread, whether or not a recording runs. When
//! none does, or the category is off, a call costs about a nanosecond.

mod callsite;
mod counter;
pub(crate) mod draft;
mod flow;
mod macros;
pub(crate) mod names;
pub(crate) mod range;
pub(crate) mod recording;
mod scope;
pub(crate) mod session;
mod step;
mod track;
mod value;

pub use callsite::{Callsite, instant};
pub use counter::Counter;
pub use flow::{Flow, FlowEnd};
pub use names::{set_process_name, set_thread_name};
pub use range::Range;
pub use recording::Recording;
pub use scope::Scope;
pub use session::{Ready, Session};
pub use step::{step, steps};
pub use track::Track;
pub use value::Value;
