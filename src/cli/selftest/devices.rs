//! What the work asks of a vendor's devices, and what its kernels are.

use super::truth::Kind;

/// Why it was not done.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// There is nothing to do it on.
    Missing(String),
    Failed(String),
}

/// An address on a device, a stream, a kernel: numbers to us.
pub(super) type Handle = u64;

/// What a vendor's devices are asked for.
pub(super) trait Devices: Sync {
    fn count(&self) -> u32;
    /// Makes a device this thread's.
    fn select(&self, device: u32) -> Result<(), Stop>;
    /// All kernels, on a device that is this thread's.
    fn kernels(&self, device: u32) -> Result<Vec<Handle>, Stop>;
    fn memory(&self, device: u32, bytes: usize) -> Result<Handle, Stop>;
    /// Memory of the host that a device can reach.
    fn host(&self, device: u32, bytes: usize) -> Result<&'static mut [u32], Stop>;
    fn stream(&self, device: u32) -> Result<Handle, Stop>;
    /// Has a kernel write so many words: where, how many, and what.
    fn launch(
        &self,
        kernel: Handle,
        blocks: u32,
        stream: Handle,
        target: (Handle, u32, u32),
    ) -> Result<(), Stop>;
    /// Copies bytes, in the direction that is said.
    fn copy(
        &self,
        kind: Kind,
        to: (Handle, u32),
        from: (Handle, u32),
        bytes: usize,
        stream: Handle,
    ) -> Result<(), Stop>;
    fn set(&self, to: Handle, value: u32, words: usize, stream: Handle) -> Result<(), Stop>;
    fn wait(&self, stream: Handle) -> Result<(), Stop>;
    /// Captures what `body` asks of a stream, ready to be launched; none: there are no graphs.
    fn capture(
        &self,
        stream: Handle,
        body: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Option<Handle>, Stop>;
    fn replay(&self, graph: Handle, stream: Handle) -> Result<(), Stop>;
    /// Whether one device reaches the memory of another.
    fn has_peers(&self) -> bool;
}

/// Threads of a device.
pub(super) const THREADS: u32 = 2;
/// Kernels of a thread, and how many threads a block of theirs has.
pub(super) const KERNELS: u32 = 8;
pub(super) const BLOCK: u32 = 64;
/// Kernels in all: threads of a device have kernels of their own.
pub(super) const ALL_KERNELS: u32 = KERNELS * THREADS;

/// The names of the kernels.
pub(super) fn kernel_name(number: u32) -> String {
    format!("kymo_selftest_{number}")
}

/// What a kernel multiplies with.
pub(super) fn factor(number: u32) -> u32 {
    7 + number
}
