//! How a recording is steered from outside the process.
//!
//! [`Page`]: what `kymo record` and the processes that it records tell each other.
//! [`Place`]: where that page lies.
//! [`dynolog`]: what a fleet's daemon asks for.

pub mod dynolog;
mod page;
mod place;
mod slots;

pub use page::{Page, State, Totals};
pub use place::Place;
pub use slots::Process;
