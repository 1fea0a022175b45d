//! The instrumentation API: what a program says about itself.
//!
//! Everything here may be called from any thread, whether or not a recording runs. When
//! none does, or the category is off, a call costs about a nanosecond.

mod callsite;
pub(crate) mod category;
mod counter;
pub(crate) mod draft;
mod flow;
mod macros;
pub(crate) mod names;
pub(crate) mod range;
mod scope;
mod step;
mod track;
mod value;

pub use callsite::{Callsite, instant};
pub use category::{APP, Category};
pub use counter::Counter;
pub use flow::{Flow, FlowEnd};
pub use names::{set_process_name, set_thread_name};
pub use range::Range;
pub use scope::Scope;
pub(crate) use step::{begin_step, end_step, forget_step};
pub use step::{step, steps};
pub use track::Track;
pub use value::Value;
