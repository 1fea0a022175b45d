//! Numbers that are good for one trace, and for the merged one.

use std::collections::{HashMap, HashSet};

/// Numbers that are taken in the merged trace.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) pids: HashSet<i64>,
    last_pid: i64,
    pub(super) devices: HashSet<i64>,
    pub(super) tracks: HashSet<u64>,
    pub(super) overheads: HashSet<i64>,
    /// The low halves of what joins events: Kineto's files have 32 bits for it.
    joints: HashSet<u32>,
    last_joint: u32,
}

/// What of one trace became which number.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    pub(super) pids: HashMap<i64, i64>,
    pub(super) devices: HashMap<i64, i64>,
    joints: HashMap<u64, u64>,
}

/// Ids of processes are smaller on Linux (`PID_MAX_LIMIT` is 2²²).
const BEYOND_PIDS: i64 = 10_000_000;

impl Numbers {
    /// A process id: itself, if it is free.
    pub(super) fn pid(&mut self, pid: i64) -> i64 {
        let mut free = pid;
        while !self.pids.insert(free) {
            // Perfetto has 32 bits for it; beyond that any will do.
            free = match free.checked_add(BEYOND_PIDS) {
                Some(next) if next <= i32::MAX.into() => next,
                _ => {
                    self.last_pid += 1;
                    i64::from(i32::MAX) - self.last_pid
                }
            };
        }
        free
    }

    /// A device's number: itself, if it is free, or the next one.
    pub(super) fn device(&mut self, number: i64) -> i64 {
        let mut free = number;
        while !self.devices.insert(free) {
            free = free.wrapping_add(1);
        }
        free
    }

    /// What stands for the number of a correlation of this trace. 0 is none.
    pub(super) fn correlation(&mut self, replaced: &mut Replaced, number: u64) -> u64 {
        if number == 0 { 0 } else { self.joint(replaced, number) }
    }

    /// What stands for a number that joins events of this trace.
    pub(super) fn joint(&mut self, replaced: &mut Replaced, number: u64) -> u64 {
        *replaced.joints.entry(number).or_insert_with(|| {
            if self.joints.insert(number as u32) {
                return number;
            }
            loop {
                // From above: the numbers of traces grow from below.
                self.last_joint = self.last_joint.wrapping_sub(1);
                if self.last_joint != 0 && self.joints.insert(self.last_joint) {
                    return self.last_joint.into();
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keeps_its_number() {
        let mut numbers = Numbers::default();
        assert_eq!([7, 7, 7, 8].map(|pid| numbers.pid(pid)), [7, 10_000_007, 20_000_007, 8]);
        assert_eq!([0, 1, 0, 3].map(|device| numbers.device(device)), [0, 1, 2, 3]);
        let (mut one, mut two) = (Replaced::default(), Replaced::default());
        let of = |numbers: &mut Numbers, of: &mut Replaced| {
            [5, 5, 0, 1 << 32 | 5].map(|number| numbers.correlation(of, number))
        };
        assert_eq!(of(&mut numbers, &mut one), [5, 5, 0, u32::MAX.into()]);
        let two = of(&mut numbers, &mut two);
        assert!(two[0] == two[1] && two[0] != 5 && two[3] != two[0] && two[2] == 0, "{two:?}");
    }
}
