//! How a recording is steered from outside the process.
//!
//! [`Page`]: what `kymo record` and the processes that it records tell each other.
//! [`Place`]: where that page lies. [`Desk`]: where requests for traces arrive, from
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
mod mapped;
mod names;
mod notes;
mod observed;
mod page;
mod place;
mod presence;
mod proxy;
mod reach;
pub(crate) mod signal;
mod slots;
mod socket;
mod trigger;
mod wishes;

pub(crate) use background::Job;
pub use desk::{Answer, Desk, Status};
pub use folder::{Folder, folders, is_answered_for, pid as pid_of_socket};
pub use held::Held;
pub(crate) use held::close_inherited;
pub use mapped::survive_truncation;
pub(crate) use names::name_of;
#[cfg(feature = "inject")]
pub(crate) use names::remember_name;
pub use observed::{LeftOut, MOST_PATTERNS, Patterns};
pub use page::{Page, State, Totals};
pub use place::Place;
pub use presence::{arm, desk};
pub(crate) use presence::{leave_to_parent, process_ends};
pub(crate) use proxy::Proxy;
pub use reach::{Peer, connect, peer};
pub use slots::Process;
pub use trigger::Trigger;
pub use wishes::Wish;
