//! A trace in memory.

use super::Sink;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps the trace in memory. Clones share it: give one to the engine, keep one to read.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// An empty one.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// The trace so far. Any thread, at any time.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    /// Takes the trace so far out, which makes room; what comes next continues it.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        // Appending cannot leave half a batch, so a panic elsewhere changes nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Memory {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        let mut bytes = self.lock();
        // Fails instead of aborting the host program.
        bytes.try_reserve(packets.len())?;
        bytes.extend_from_slice(packets);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
