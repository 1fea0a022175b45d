//! Which device has which number in the recording: the same in all of its processes.

use std::sync::PoisonError;

use super::Page;

impl Page {
    /// Devices that have numbers of their own, at most.
    pub const GPUS: u32 = 64;

    /// The number of the device with this identity: the next one, if it was not asked for
    /// before. None: there are too many.
    pub fn gpu(&self, identity: u64) -> Option<u32> {
        let mut gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        let known = gpus.iter().position(|known| *known == identity);
        let number = known.unwrap_or(gpus.len()) as u32;
        if known.is_none() && number < Page::GPUS {
            gpus.push(identity);
        }
        (number < Page::GPUS).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_keeps_its_number() {
        let page = Page::new();
        assert_eq!([7, 9, 7, 9, 8].map(|id| page.gpu(id)), [0, 1, 0, 1, 2].map(Some));
        let numbers: Vec<_> = (100..200).map_while(|id| page.gpu(id)).collect();
        assert_eq!(numbers, (3..Page::GPUS).collect::<Vec<_>>());
        assert_eq!((page.gpu(9), page.gpu(1000)), (Some(1), None));
    }
}
