//! Whether two sets of measurements differ: a permutation test, and an interval by bootstrap.
//!
//! Random numbers come from a generator with a fixed seed, so that equal input gives equal output.

use crate::stats::quantile;

/// How the means of two sets differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// The mean of the first set.
    pub base: f64,
    /// The mean of the second.
    pub test: f64,
    /// How much larger the second is, of the first.
    pub change: f64,
    /// Between what that lies with a confidence of 95 %; NaN for single measurements.
    pub interval: (f64, f64),
    /// How likely the means of sets that do not differ are as far apart, in this direction.
    pub p: f64,
    /// The least that `p` could be for so few measurements.
    pub least_p: f64,
}

/// Runs of each set from which on runs, not their steps, are what is compared.
const MANY_RUNS: usize = 5;
const RESAMPLES: usize = 1000;
const PERMUTATIONS: usize = 20_000;

/// Compares measurements, which are given run by run; `None` where there are none, or the first
/// mean is 0.
pub fn compare(base: &[Vec<f64>], test: &[Vec<f64>]) -> Option<Comparison> {
    let some = |runs: &[Vec<f64>]| -> Vec<Vec<f64>> {
        runs.iter().filter(|run| !run.is_empty()).cloned().collect()
    };
    let (mut base, mut test) = (some(base), some(test));
    if base.len() >= MANY_RUNS && test.len() >= MANY_RUNS {
        for runs in [&mut base, &mut test] {
            *runs = vec![runs.iter().map(|run| mean(run)).collect()];
        }
    }
    let (all_base, all_test) = (base.concat(), test.concat());
    let (before, after) = (mean(&all_base), mean(&all_test));
    if all_base.is_empty() || all_test.is_empty() || before <= 0.0 {
        return None;
    }
    let mut random = Random(0x4b79_6d6f_6772_6170);
    let (p, least_p) = permute(&all_base, &all_test, &mut random);
    Some(Comparison {
        base: before,
        test: after,
        change: after / before - 1.0,
        interval: bootstrap(&base, &test, &mut random),
        p,
        least_p,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A generator of pseudo-random numbers: xorshift*, which passes what is asked of it here.
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((word * end as u64) >> 32) as usize
    }
}

/// The part of all ways to divide the measurements that are as far apart as this one, and the
/// least that it can be. All ways are tried if there are few.
fn permute(base: &[f64], test: &[f64], random: &mut Random) -> (f64, f64) {
    let mut all = [test, base].concat();
    let (chosen, total): (usize, f64) = (test.len(), all.iter().sum());
    let upwards = mean(test) >= mean(base);
    // The mean of the second set rises with its sum.
    let sum: f64 = test.iter().sum();
    let slack = 1e-12 * total.abs();
    let as_far = |other: f64| if upwards { other >= sum - slack } else { other <= sum + slack };
    let ways = combinations(all.len(), chosen);
    if ways <= PERMUTATIONS as f64 {
        let mut far = 0u64;
        let mut places: Vec<usize> = (0..chosen).collect();
        loop {
            far += u64::from(as_far(places.iter().map(|at| all[*at]).sum()));
            if !next_combination(&mut places, all.len()) {
                break;
            }
        }
        return (far as f64 / ways, 1.0 / ways);
    }
    let mut far = 0u64;
    for _ in 0..PERMUTATIONS {
        for at in 0..chosen {
            let other = at + random.below(all.len() - at);
            all.swap(at, other);
        }
        far += u64::from(as_far(all[..chosen].iter().sum()));
    }
    // The division at hand is one of those that are as far apart.
    let tried = PERMUTATIONS as f64 + 1.0;
    ((far as f64 + 1.0) / tried, 1.0 / tried)
}

fn combinations(n: usize, k: usize) -> f64 {
    (0..k.min(n - k)).map(|i| (n - i) as f64 / (i + 1) as f64).product::<f64>().round()
}

/// The next choice of some of `n` places in the order of places; false after the last.
fn next_combination(places: &mut [usize], n: usize) -> bool {
    let k = places.len();
    let Some(at) = (0..k).rev().find(|at| places[*at] < n - k + at) else { return false };
    places[at] += 1;
    for next in at + 1..k {
        places[next] = places[next - 1] + 1;
    }
    true
}

/// Between what the change lies: that of means of measurements drawn anew, from runs drawn anew.
fn bootstrap(base: &[Vec<f64>], test: &[Vec<f64>], random: &mut Random) -> (f64, f64) {
    let alone = |runs: &[Vec<f64>]| runs.iter().map(Vec::len).sum::<usize>() < 2;
    if alone(base) || alone(test) {
        return (f64::NAN, f64::NAN);
    }
    let mut draw = |runs: &[Vec<f64>]| {
        let (mut sum, mut count) = (0.0, 0usize);
        for _ in 0..runs.len() {
            let run = &runs[random.below(runs.len())];
            for _ in 0..run.len() {
                sum += run[random.below(run.len())];
            }
            count += run.len();
        }
        sum / count as f64
    };
    let mut changes: Vec<f64> =
        (0..RESAMPLES).map(|_| draw(test) / draw(base) - 1.0).filter(|x| x.is_finite()).collect();
    changes.sort_by(f64::total_cmp);
    (quantile(&changes, 0.025), quantile(&changes, 0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations of steps around a mean, with a deviation and now and then a straggler.
    fn steps(random: &mut Random, count: usize, mean: f64, deviation: f64) -> Vec<f64> {
        let uniform = |random: &mut Random| random.below(1 << 20) as f64 / f64::from(1 << 20);
        let step = |_| {
            let normal: f64 = (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0;
            let straggles = random.below(20) == 0;
            mean * (1.0 + deviation * normal) * if straggles { 1.3 } else { 1.0 }
        };
        (0..count).map(step).collect()
    }

    /// How many of some comparisons say that the second is slower, with nothing allowed.
    fn alarms(times: usize, count: usize, deviation: f64, slower: f64) -> usize {
        let mut random = Random(7);
        let alarm = |_: &usize| {
            let base = steps(&mut random, count, 1e6, deviation);
            let test = steps(&mut random, count, 1e6 * slower, deviation);
            let found = compare(&[base], &[test]).unwrap();
            found.interval.0 > 0.0 && found.p <= super::super::FALSE_ALARMS
        };
        (0..times).filter(alarm).count()
    }

    #[test]
    fn runs_of_one_program_raise_few_alarms() {
        // One in a hundred; the generator is seeded, so that the number is always the same.
        assert!(alarms(400, 5, 0.02, 1.0) <= 4);
        assert!(alarms(300, 7, 0.1, 1.0) <= 3);
    }

    #[test]
    fn what_is_slower_is_found() {
        assert!(alarms(20, 7, 0.01, 1.2) >= 16);
        assert_eq!(alarms(20, 7, 0.01, 1.5), 20);
    }

    #[test]
    fn few_measurements_say_nothing() {
        let found = compare(&[vec![1.0, 1.1]], &[vec![2.0, 2.1]]).unwrap();
        assert_eq!((found.p, found.least_p), (1.0 / 6.0, 1.0 / 6.0));
        assert!(compare(&[vec![1.0]], &[vec![2.0]]).unwrap().interval.0.is_nan());
        assert_eq!(compare(&[], &[vec![1.0]]), None);
    }

    #[test]
    fn all_divisions_are_tried() {
        let found = compare(&[vec![1.0, 2.0, 3.0]], &[vec![4.0, 5.0, 6.0]]).unwrap();
        assert_eq!((found.base, found.test, found.p), (2.0, 5.0, 0.05));
        assert_eq!(found.change, 1.5);
        let back = compare(&[vec![4.0, 5.0, 6.0]], &[vec![1.0, 2.0, 3.0]]).unwrap();
        assert_eq!(back.p, 0.05);
    }
}
