//! How a recording is steered from outside the process.
//!
//! [`Page`]: what `kymo record` and the processes that it records tell each other.
//! [`Place`]: where that page lies.

mod page;
mod place;

pub use page::{Page, Process, State, Totals};
pub use place::Place;
