//! Taking turns: a batch of each case, over and over, so that whatever disturbs the machine
//! disturbs all of them alike.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Something to measure.
pub struct Case<'a> {
    pub name: String,
    /// Scopes, or whatever is counted, in one batch.
    pub count: u64,
    /// Runs one batch.
    batch: Box<dyn FnMut() + 'a>,
    /// Runs after each batch and is not measured.
    after: Box<dyn FnMut() + 'a>,
    /// What the batches took, in nanoseconds for one of `count`.
    pub nanos: Vec<f64>,
}

impl<'a> Case<'a> {
    pub fn new(name: &str, count: u64, batch: impl FnMut() + 'a) -> Case<'a> {
        Case {
            name: name.to_owned(),
            count,
            batch: Box::new(batch),
            after: Box::new(|| {}),
            nanos: Vec::new(),
        }
    }

    pub fn after(mut self, after: impl FnMut() + 'a) -> Case<'a> {
        self.after = Box::new(after);
        self
    }

    fn turn(&mut self) -> f64 {
        let start = Instant::now();
        (self.batch)();
        let nanos = start.elapsed().as_nanos() as f64 / self.count as f64;
        (self.after)();
        nanos
    }
}

/// Runs `rounds` batches of each case, after some to warm up.
pub fn take(cases: &mut [Case<'_>], rounds: usize) {
    take_together(cases, rounds, &Meeting::of(1));
}

/// As [`take`], on several threads with the same cases at the same time.
pub fn take_together(cases: &mut [Case<'_>], rounds: usize, meeting: &Meeting) {
    let warm = (rounds / 10).max(3);
    for round in 0..warm + rounds {
        for case in &mut *cases {
            meeting.wait();
            let nanos = case.turn();
            if round >= warm {
                case.nanos.push(nanos);
            }
        }
    }
}

/// The best batch.
pub fn best(nanos: &[f64]) -> f64 {
    nanos.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The batch in the middle.
pub fn median(nanos: &[f64]) -> f64 {
    let mut sorted = nanos.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The middle of the ratios of batches that ran one after the other.
pub fn ratio(nanos: &[f64], floor: &[f64]) -> f64 {
    median(&nanos.iter().zip(floor).map(|(a, b)| a / b).collect::<Vec<_>>())
}

/// Where threads wait for each other, without sleeping: a batch is over sooner than a
/// thread wakes up.
pub struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
}

impl Meeting {
    pub fn of(threads: usize) -> Meeting {
        Meeting { threads, arrived: AtomicUsize::new(0) }
    }

    pub fn wait(&self) {
        let n = self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (n / self.threads + 1) * self.threads;
        let mut spins = 0u32;
        while self.arrived.load(Ordering::Acquire) < all {
            spins += 1;
            if spins.is_multiple_of(1 << 14) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}
