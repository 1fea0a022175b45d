//! A sink that takes everything and keeps nothing, and that can hold the engine's thread.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use kymograph::sink::Sink;

#[derive(Default)]
struct State {
    closed: Mutex<bool>,
    opened: Condvar,
    bytes: AtomicU64,
}

/// Clones share it.
#[derive(Clone, Default)]
pub struct Gate(Arc<State>);

impl Gate {
    /// A sink that is open.
    pub fn open() -> Gate {
        Gate::default()
    }

    /// A sink whose next write does not return before [`Gate::release`].
    pub fn closed() -> Gate {
        let gate = Gate::default();
        gate.hold();
        gate
    }

    pub fn hold(&self) {
        *self.0.closed.lock().unwrap() = true;
    }

    pub fn release(&self) {
        *self.0.closed.lock().unwrap() = false;
        self.0.opened.notify_all();
    }

    /// Bytes that were written.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl Sink for Gate {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        self.0.bytes.fetch_add(packets.len() as u64, Ordering::Relaxed);
        let mut closed = self.0.closed.lock().unwrap();
        while *closed {
            closed = self.0.opened.wait(closed).unwrap();
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
