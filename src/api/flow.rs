//! Flows: arrows from event to event.

use kymograph_protos::ArgType;

use super::range::unique;
use super::value::{Encoded, Value};

/// An arrow through events, on any threads, in the order of their times. Give it to them
/// as an argument (whose name does not matter), and its end to the last one:
///
/// ```
/// use kymograph::{Flow, scope};
///
/// let job = Flow::new();
/// {
///     let _scope = scope!("submit", flow = job);
/// }
/// std::thread::spawn(move || {
///     let _scope = scope!("run", flow = job.end());
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow(u64);

/// The end of a [`Flow`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowEnd(u64);

impl Flow {
    /// A flow that no other event has.
    #[allow(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Flow {
        // Flow ids are global to a trace: those of two processes must differ.
        Flow(unique() ^ u64::from(std::process::id()) << 40)
    }

    pub(crate) fn id(self) -> u64 {
        self.0
    }

    /// For the last event it reaches.
    pub fn end(self) -> FlowEnd {
        FlowEnd(self.0)
    }
}

impl Value for Flow {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        Encoded::Bits(ArgType::Flow, self.0)
    }
}

impl Value for FlowEnd {
    #[inline(always)]
    fn encode(&self) -> Encoded<'_> {
        Encoded::Bits(ArgType::FlowEnd, self.0)
    }
}
