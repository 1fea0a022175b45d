//! Ways of requesting traces.

use std::os::fd::RawFd;
use std::time::Instant;

use super::broker::Broker;

/// A way of requesting traces, attended by the process's one background thread,
/// which waits for its descriptors. Never blocks: the thread may be recording.
pub trait Trigger: Send {
    /// Adds what it wants to read from. Asked before every wait.
    fn descriptors(&self, to: &mut Vec<RawFd>);

    /// When `attend` wants to be called even if nothing arrives.
    fn due(&self) -> Option<Instant>;

    /// Does what can be done without waiting. Called when something arrived or `due` has
    /// passed, and for nothing now and then.
    fn attend(&mut self, broker: &Broker);

    /// The process ends: delivers what is still to be said. Returns whether there is
    /// nothing left; asked again, for a while, if there is.
    fn end(&mut self, broker: &Broker) -> bool {
        let _ = broker;
        true
    }
}
