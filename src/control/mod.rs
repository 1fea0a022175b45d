//! How a recording is steered from outside the process.
//!
//! [`Page`]: the state of a recording, in `kymo`. [`Place`]: where processes find the `kymo` that
//! records them. [`Desk`]: where requests for traces arrive, from
//! [`Trigger`]s and from the program itself; [`arm`] sets one up. [`dynolog`]: what a
//! fleet's daemon asks for. [`Wish`]: a trace that is to become JSON.

mod background;
mod client;
mod desk;
pub mod dynolog;
mod folder;
mod gpus;
mod held;
mod kineto;
mod names;
mod notes;
mod observed;
mod page;
mod place;
mod presence;
mod processes;
mod proxy;
mod reach;
pub(crate) mod signal;
mod socket;
mod trigger;
mod wishes;

pub(crate) use background::Job;
pub use desk::{Answer, Desk, Status};
pub use folder::{Folder, folders, is_answered_for, pid as pid_of_socket, pid_of_kymo};
pub use held::Held;
pub(crate) use held::close_inherited;
pub(crate) use names::name_of;
#[cfg(feature = "inject")]
pub(crate) use names::remember_name;
pub use observed::{LeftOut, MOST_PATTERNS, Patterns};
pub use page::{Page, State, Totals};
pub use place::Place;
#[cfg(feature = "inject")]
pub(crate) use place::tell_left_out;
pub use presence::{arm, desk};
pub(crate) use presence::{leave_to_parent, process_ends};
pub use processes::Process;
pub(crate) use proxy::Proxy;
pub use reach::{Peer, connect, peer};
pub use trigger::Trigger;
pub use wishes::Wish;
