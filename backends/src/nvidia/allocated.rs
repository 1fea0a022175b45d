//! Memory that is allocated on devices.

use std::collections::HashMap;

/// Allocations that are remembered.
const MAX_ALLOCATIONS: usize = 1 << 20;

/// What is allocated, as far as it was seen: a release of what came before the recording
/// takes nothing away.
#[derive(Debug, Default)]
pub(crate) struct Allocated {
    by_address: HashMap<u64, (u32, u64)>,
    by_device: HashMap<u32, u64>,
}

impl Allocated {
    /// What the device has now, if that has changed.
    pub(crate) fn count(
        &mut self,
        device: u32,
        address: u64,
        bytes: Option<u64>,
    ) -> Option<(u32, u64)> {
        let (device, sum) = match bytes {
            Some(_) if self.by_address.len() >= MAX_ALLOCATIONS => return None,
            Some(bytes) => {
                self.by_address.insert(address, (device, bytes));
                let sum = self.by_device.entry(device).or_default();
                *sum += bytes;
                (device, *sum)
            }
            None => {
                let (device, bytes) = self.by_address.remove(&address)?;
                let sum = self.by_device.get_mut(&device)?;
                *sum = sum.saturating_sub(bytes);
                (device, *sum)
            }
        };
        Some((device, sum))
    }
}
