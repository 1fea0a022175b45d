//! The rules and the rounding of other tools, as a layer over the exact metrics.
//!
//! A tool's rules come in before a metric and after it, never inside: they choose and change
//! the events that the [`Model`](crate::Model) has (for HTA, see [`hta`]), and they rename and round
//! the columns of its table ([`hta::table`]). Where a tool has a mistake that lies in the
//! arithmetic itself, the metric asks [`Reading::hta`](crate::Reading::hta), and says so.

pub mod hta;
pub mod tensorboard;
