//! Threads of a recorded program that come, record ranges in ranges and go: neither the
//! program nor `kymo` keeps anything of them. `tests/soak` does it for ten minutes.

use harness::guest;
use harness::kymo::Guarded;
use std::process::Stdio;
use std::time::Duration;

use guest::Guest;

/// Kilobytes by which either may grow after the first threads: what allocators keep.
const GROWTH: u64 = 8 << 10;

fn threads() -> u64 {
    let given = std::env::var("KYMO_SOAK_THREADS").ok();
    given.map_or(2000, |threads| threads.parse().unwrap())
}

fn resident_kb(process: &Guarded) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn run(names: &str, nesting: &str) {
    let guest = Guest::compiled("makes_threads.c").option("--buffer=4M");
    let threads = threads().to_string();
    let arguments = [threads.as_str(), "8", "100", names, nesting];
    let folder = tempfile::tempdir().unwrap();
    let mut command = guest.recorded(&arguments, folder.path());
    let mut kymo = Guarded::start(command.stderr(Stdio::piped()));
    let mut resident = Vec::new();
    while kymo.try_wait().unwrap().is_none() {
        resident.extend(resident_kb(&kymo));
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = kymo.wait_with_output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let grew = said.trim().strip_prefix("grew by ").and_then(|said| said.strip_suffix(" kB"));
    let grew: i64 = grew.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    println!("{names} {nesting}: {threads} threads, the program grew by {grew} kB");
    assert!(grew < GROWTH as i64, "the program grew by {grew} kB");
    let (early, late) = resident.split_at(resident.len() * 2 / 5);
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or_default();
    println!("kymo: {} kB at first, {} kB later", most(early), most(late));
    assert!(most(late) < most(early) + GROWTH, "kymo grew: {resident:?}");
}

#[test]
fn threads_that_come_and_go_cost_no_memory() {
    for names in ["same", "unique"] {
        for nesting in ["flat", "nested"] {
            run(names, nesting);
        }
    }
}

/// Names take what the interner may have, and the rest nothing to speak of.
#[test]
fn names_and_handles_cost_a_bounded_amount() {
    const MOST: i64 = 16 << 10;
    let guest = Guest::compiled("makes_names.c").option("--buffer=4M");
    for what in ["ranges", "domains", "strings", "open ranges", "open pushes", "thread names"] {
        let ran = guest.behaves_as_alone_but_for_stderr(&[what, "6000"]);
        let said = ran.recorded.stderr.trim();
        let grew = said.strip_prefix("grew by ").and_then(|said| said.strip_suffix(" kB"));
        let grew: i64 = grew.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
        println!("{what}: grew by {grew} kB");
        assert!(grew < MOST, "{what}: grew by {grew} kB");
    }
}
