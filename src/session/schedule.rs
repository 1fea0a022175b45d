//! Which of a program's iterations to record, said in advance.

/// What to do in an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleAction {
    /// Nothing.
    None,
    /// Switch the sources on, and discard what they say.
    Warmup,
    /// Record.
    Record,
    /// Record, and write the trace at the end of the iteration.
    RecordAndSave,
}

/// Cycles of waiting, warming up and recording, as `torch.profiler.schedule` has them.
///
/// ```
/// use kymograph::session::{Schedule, ScheduleAction};
///
/// let schedule = Schedule { skip_first: 1, wait: 1, warmup: 1, active: 2, ..Schedule::default() };
/// let actions: Vec<_> = (0..6).map(|step| schedule.action(step)).collect();
/// use ScheduleAction::{None, Record, RecordAndSave, Warmup};
/// assert_eq!(actions, [None, None, Warmup, Record, RecordAndSave, None]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Iterations before the first cycle.
    pub skip_first: u64,
    /// Iterations of a cycle in which nothing happens.
    pub wait: u64,
    /// Iterations of a cycle in which sources are on and nothing is kept.
    pub warmup: u64,
    /// Iterations of a cycle that are recorded; at least 1.
    pub active: u64,
    /// How many cycles; 0 for no end.
    pub repeat: u64,
    /// Whether the first cycle has no `wait`.
    pub skip_first_wait: bool,
}

impl Default for Schedule {
    /// Every iteration, each in a trace of its own.
    fn default() -> Schedule {
        Schedule { skip_first: 0, wait: 0, warmup: 0, active: 1, repeat: 0, skip_first_wait: false }
    }
}

impl Schedule {
    /// What to do in iteration `step`, counted from 0.
    pub fn action(&self, step: u64) -> ScheduleAction {
        let Some(mut step) = step.checked_sub(self.skip_first) else {
            return ScheduleAction::None;
        };
        if self.skip_first_wait {
            step = step.saturating_add(self.wait);
        }
        let active = self.active.max(1);
        let cycle = self.wait.saturating_add(self.warmup).saturating_add(active);
        if self.repeat > 0 && step / cycle >= self.repeat {
            return ScheduleAction::None;
        }
        let at = step % cycle;
        if at < self.wait {
            ScheduleAction::None
        } else if at < self.wait.saturating_add(self.warmup) {
            ScheduleAction::Warmup
        } else if at < cycle - 1 {
            ScheduleAction::Record
        } else {
            ScheduleAction::RecordAndSave
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.` nothing, `w` warm-up, `r` record, `S` record and save.
    fn picture(schedule: Schedule, steps: u64) -> String {
        (0..steps)
            .map(|step| match schedule.action(step) {
                ScheduleAction::None => '.',
                ScheduleAction::Warmup => 'w',
                ScheduleAction::Record => 'r',
                ScheduleAction::RecordAndSave => 'S',
            })
            .collect()
    }

    #[test]
    fn cycles_follow_each_other() {
        let cycle = Schedule { wait: 2, warmup: 1, active: 3, ..Schedule::default() };
        assert_eq!(picture(cycle, 13), "..wrrS..wrrS.");
        assert_eq!(picture(Schedule { repeat: 1, ..cycle }, 13), "..wrrS.......");
        assert_eq!(picture(Schedule { skip_first: 3, ..cycle }, 13), ".....wrrS..wr");
    }

    #[test]
    fn the_first_wait_may_be_skipped() {
        let cycle = Schedule { wait: 2, warmup: 1, active: 1, repeat: 2, ..Schedule::default() };
        let skipping = Schedule { skip_first: 1, skip_first_wait: true, ..cycle };
        assert_eq!(picture(skipping, 10), ".wS..wS...");
    }

    #[test]
    fn nonsense_does_no_harm() {
        assert_eq!(picture(Schedule { active: 0, ..Schedule::default() }, 3), "SSS");
        let huge = Schedule {
            skip_first: 0,
            wait: u64::MAX,
            warmup: u64::MAX,
            active: u64::MAX,
            repeat: u64::MAX,
            skip_first_wait: true,
        };
        for step in [0, 1, u64::MAX] {
            huge.action(step);
        }
    }
}
