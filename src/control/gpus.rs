//! Which device has which number in the recording: the same in all of its processes.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::Page;
use super::page::GPUS;

impl Page {
    /// Devices that have numbers of their own.
    pub const GPUS: u32 = GPUS as u32;

    /// The number of the device with this identity, which is not 0: the next one, if nobody
    /// has asked for it before. None: there are too many.
    pub fn gpu(&self, identity: u64) -> Option<u32> {
        let slots = self.layout().gpus.iter();
        let found = slots.enumerate().find(|(_, slot)| {
            match slot.compare_exchange(0, identity, AcqRel, Acquire) {
                Ok(_) => true,
                Err(known) => known == identity,
            }
        });
        found.map(|(number, _)| number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_keeps_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let page = Page::create(&folder.path().join("page")).unwrap();
        assert_eq!([7, 9, 7, 9, 8].map(|id| page.gpu(id)), [0, 1, 0, 1, 2].map(Some));
        let numbers: Vec<_> = (100..200).map_while(|id| page.gpu(id)).collect();
        assert_eq!(numbers, (3..Page::GPUS).collect::<Vec<_>>());
        assert_eq!((page.gpu(9), page.gpu(1000)), (Some(1), None));
    }
}
