//! Numbers that differ from those of other processes: names and pauses, no secrets.

use std::fmt::Write;
use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        let mut seed = [0; 8];
        // SAFETY: the kernel writes at most as many bytes as there are.
        unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), libc::GRND_NONBLOCK) };
        // Where the kernel has none yet: the pid, and an address that it randomises.
        let place = std::ptr::from_ref(&seed).addr() as u64;
        Random(u64::from_ne_bytes(seed) ^ u64::from(std::process::id()).rotate_left(32) ^ place)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From nothing to `time`, which it does not reach.
    pub(super) fn part_of(&mut self, time: Duration) -> Duration {
        time.mul_f64((self.next() >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// A version 4 UUID as text.
    pub(super) fn uuid(&mut self) -> String {
        let bits = u128::from(self.next()) << 64 | u128::from(self.next());
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let mut text = String::with_capacity(36);
        let parts = [(96, 8), (80, 4), (64, 4), (48, 4), (0, 12)];
        for (at, (shift, digits)) in parts.into_iter().enumerate() {
            let part = (bits >> shift) & ((1 << (4 * digits)) - 1);
            let dash = if at > 0 { "-" } else { "" };
            let _ = write!(text, "{dash}{part:0digits$x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_their_form() {
        let mut random = Random::new();
        let uuids: std::collections::BTreeSet<_> = (0..100).map(|_| random.uuid()).collect();
        assert_eq!(uuids.len(), 100);
        for uuid in uuids {
            let lengths: Vec<_> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            assert!(uuid[14..].starts_with('4'), "{uuid}");
            assert!(uuid[19..].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        }
    }

    #[test]
    fn parts_are_spread() {
        let mut random = Random(1);
        let parts: Vec<_> = (0..1000).map(|_| random.part_of(Duration::from_secs(1))).collect();
        assert!(parts.iter().all(|part| *part < Duration::from_secs(1)));
        let early = parts.iter().filter(|part| part.as_millis() < 500).count();
        assert!((400..600).contains(&early), "{early}");
    }
}
