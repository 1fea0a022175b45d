//! Whatever the bytes, reading them ends, without a panic and without memory out of all
//! proportion, and what was read can be written.
//!
//! The bytes come from the fixtures, bombs of several kinds, and changes to them; the
//! functions are those of cargo-fuzz (`converters/fuzz`), which needs a nightly compiler and
//! finds more in an hour than this in a minute. With `KYMOGRAPH_FUZZ_SECONDS` in the
//! environment this goes on for so long, with other numbers each time; a failure names the
//! file in which it left its input.

mod fuzzing;
#[path = "fuzzing/mutate.rs"]
mod mutate;
#[path = "fuzzing/seeds.rs"]
mod seeds;

use fuzzing::{TARGETS, Target};
use mutate::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Inputs for each target when nothing else is said.
const FEW: u64 = 150;

#[test]
fn bombs_are_stopped_and_seeds_are_read() {
    let seeds = seeds::all();
    for (name, target) in TARGETS {
        for (number, seed) in seeds.iter().enumerate() {
            run(name, target, seed, &format!("seed {number}"));
        }
    }
}

#[test]
fn changed_seeds_are_read() {
    let seeds = seeds::all();
    let seconds = std::env::var("KYMOGRAPH_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let start = match seconds {
        Some(_) => std::process::id().into(),
        None => 1,
    };
    let mut random = Random(start);
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut count = 0;
    while until.map_or(count < FEW, |until| Instant::now() < until) {
        for (name, target) in TARGETS {
            let bytes = mutate::mutated(&seeds, &mut random);
            run(name, target, &bytes, &format!("change {count} after {start}"));
        }
        count += 1;
    }
    if seconds.is_some() {
        println!("{count} inputs for each of {} targets", TARGETS.len());
    }
}

/// Runs a target; what it fails on is left in a file.
#[track_caller]
fn run(name: &str, target: Target, bytes: &[u8], which: &str) {
    if catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.input"));
        std::fs::write(&path, bytes).unwrap();
        panic!("{name} failed on {which}, which is in {}", path.display());
    }
}
