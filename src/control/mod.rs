//! How a recording is steered from outside the process.
//!
//! [`Broker`]: where requests for traces arrive, from
//! [`Trigger`]s and from the program itself; [`arm`] sets one up. [`dynolog`]: what a
//! fleet's daemon asks for. [`Conversion`]: a request to convert a trace to JSON.

mod background;
mod broker;
mod client;
mod conversions;
pub mod dynolog;
mod folder;
mod held;
mod kineto;
pub(crate) mod lifecycle;
pub(crate) mod presence;
mod proxy;
mod reach;
pub(crate) mod signal;
mod snapshot;
mod socket;
mod trigger;

pub use broker::{Answer, Broker, Status};
pub use conversions::Conversion;
pub use folder::{Folder, folders, is_answered_for, pid as pid_of_socket, pid_of_kymo};
pub use held::Held;
pub use presence::{arm, broker};
pub(crate) use proxy::Proxy;
pub use reach::{Peer, connect, peer};
pub use trigger::Trigger;

pub use crate::join::rendezvous::Rendezvous;
pub use crate::page::{LeftOut, MAX_PATTERNS, Page, Patterns, Process, State, Totals};
