//! A program that records by itself, with RECOVER, is killed at a random moment: `kymo recover`
//! makes a trace in which everything is whose recording call had returned, to the event.

use harness::{kymo, native};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kymo::Guarded;
use oracle::Trace;

/// A file of 16 MiB.
const SMALL: &str = "64K\nBUFFER=1M";
/// How long anything may take before it counts as hanging.
const HANGS: Duration = Duration::from_secs(120);

/// The program, in a folder of its own.
struct Program {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Program {
    fn new() -> Program {
        let folder = tempfile::tempdir().unwrap();
        let program = native::compile("cc", "-std=gnu11", "tests/data/c/counts.c", folder.path());
        Program { folder, program }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, output: &str, recover: &str, seconds: u32) -> Command {
        let counts = File::create(self.at("said")).unwrap();
        counts.set_len(4096).unwrap();
        let mut command = Command::new(&self.program);
        command.arg(self.at(output)).arg(self.at("said")).arg(recover);
        command.arg(seconds.to_string()).env("LD_LIBRARY_PATH", native::library_folder());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("KYMOGRAPH_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// Of each thread: how many of its pushes and pops have returned.
    fn counts(&self) -> [[u64; 2]; 2] {
        let mut bytes = [0; 32];
        File::open(self.at("said")).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        let word = |at: usize| u64::from_ne_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
        [[word(0), word(1)], [word(2), word(3)]]
    }

    /// Runs it until each thread has recorded so much, and kills it a moment later.
    fn kill(&self, output: &str, recover: &str, pops: u64, moment: Duration) -> [[u64; 2]; 2] {
        let mut child = Guarded::start(&mut self.command(output, recover, 0));
        let began = Instant::now();
        while self.counts().iter().any(|[_, popped]| *popped < pops) {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            assert!(began.elapsed() < HANGS, "it does not record: {:?}", self.counts());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        self.counts()
    }

    fn recover(&self, words: &[&str]) -> Output {
        let mut command = kymo::kymo();
        command.arg("recover").args(words).current_dir(self.folder.path());
        command.output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn assert_all_is_there(trace: &Trace, counts: [[u64; 2]; 2]) {
    trace.assert_clean();
    let one = |sql: &str| trace.one_i64(sql) as u64;
    let pushes: u64 = counts.iter().map(|[pushes, _]| *pushes).sum();
    let found = one("SELECT count(*) FROM slice WHERE name = 'numbered'");
    // Of each thread the one more that was under way.
    assert!((pushes..=pushes + 2).contains(&found), "{found} of {counts:?}");
    let numbers = "extract_arg(arg_set_id, 'debug.n')";
    let last = trace.strings(&format!(
        "SELECT CAST(max({numbers}) AS TEXT) FROM slice WHERE name = 'numbered' GROUP BY track_id"
    ));
    let mut last: Vec<i64> = last.iter().map(|number| number.parse().unwrap()).collect();
    last.sort_unstable();
    let mut expected = counts.map(|[pushes, _]| pushes as i64);
    expected.sort_unstable();
    for (last, expected) in last.iter().zip(expected) {
        assert!((expected - 1..=expected).contains(last), "{last} of {counts:?}");
    }
    let inside: u64 = counts.iter().map(|[_, pops]| pops.div_ceil(3)).sum();
    let found = one("SELECT count(*) FROM slice WHERE name = 'inside'");
    assert!((inside..=inside + 2).contains(&found), "{found} of {counts:?}");
    assert_eq!(one("SELECT count(*) FROM slice WHERE dur < 0"), 0, "all slices are closed");
    assert_eq!(one("SELECT count(*) FROM slice WHERE name = 'outer'"), 2);
    assert_eq!(one("SELECT count(*) FROM slice WHERE name = 'of the child'"), 0);
    assert_eq!(one("SELECT count(*) FROM slice WHERE name = 'ended without notice'"), 1);
}

#[test]
fn to_the_event() {
    let program = Program::new();
    let kills = std::env::var("KYMO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for n in 0..kills {
        for output in ["t.pftrace", "t.pftrace.gz"] {
            let mixed = (n ^ std::process::id()).wrapping_mul(0x9e37_79b9) >> 16;
            let moment = Duration::from_micros(u64::from(mixed) % 400_000);
            let counts = program.kill(output, "64M\nBUFFER=16M", 1, moment);
            let left = format!("{output}.recover");
            let recovered = program.recover(&[&left, "--force"]);
            assert!(recovered.status.success(), "{}", said(&recovered));
            let name = output.replacen("t.", "t.recovered.", 1);
            let trace = Trace::open(program.at(&name));
            assert_all_is_there(&trace, counts);
        }
    }
}

#[test]
fn a_program_that_ends_leaves_no_file() {
    let program = Program::new();
    let status = program.command("t.pftrace", "64M", 1).status().unwrap();
    assert!(status.success());
    assert!(!program.at("t.pftrace.recover").exists());
    let trace = Trace::open(program.at("t.pftrace"));
    trace.assert_clean();
    let [_, [pushes, _]] = program.counts();
    let found = trace.one_i64("SELECT count(*) FROM slice WHERE name = 'numbered'");
    assert_eq!(found as u64, pushes);
}

#[test]
fn what_has_no_room_is_in_the_output() {
    let program = Program::new();
    let counts = program.kill("t.pftrace", SMALL, 300_000, Duration::ZERO);
    let recovered = program.recover(&["t.pftrace.recover", "-o", "rest.pftrace"]);
    let said = said(&recovered);
    let was_too_much = said.contains("more than RECOVER has room for");
    let trace = Trace::open(program.at("t.pftrace"));
    let found = trace.one_i64("SELECT count(*) FROM slice WHERE name = 'numbered'");
    let pushes: u64 = counts.iter().map(|[pushes, _]| *pushes).sum();
    assert!(found as u64 <= pushes + 2, "{found} of {counts:?}");
    if !recovered.status.success() {
        // Everything was written when it was killed.
        assert!(said.contains("there is no event in it"), "{said}");
        assert!(found > 0);
    } else if was_too_much {
        drop(Trace::open(program.at("rest.pftrace")));
        assert!(found > 0);
    } else {
        // The engine was kept off for so long that events were lost, and the rest had room.
        assert!(!said.contains(", 0 lost"), "{said}");
        let rest = Trace::open(program.at("rest.pftrace"));
        assert!(rest.one_i64("SELECT count(*) FROM slice WHERE name = 'numbered'") > 0);
    }
}

#[test]
fn nothing_is_replaced_unasked() {
    let program = Program::new();
    program.kill("t.pftrace", SMALL, 1, Duration::ZERO);
    fs::write(program.at("t.recovered.pftrace"), "mine").unwrap();
    let recovered = program.recover(&["t.pftrace.recover"]);
    assert_eq!(recovered.status.code(), Some(2));
    assert!(said(&recovered).contains("is there already"), "{}", said(&recovered));
    assert_eq!(fs::read(program.at("t.recovered.pftrace")).unwrap(), b"mine");
    // The next run does not destroy what the last one left.
    program.kill("t.pftrace", SMALL, 1, Duration::ZERO);
    assert!(program.at("t.pftrace.recover.old").exists());
}

/// Refused with a reason, or read as far as it makes sense; never more than that.
#[track_caller]
fn survives(program: &Program, bytes: &[u8], reason: Option<&str>) {
    fs::write(program.at("bad.recover"), bytes).unwrap();
    let recovered = program.recover(&["bad.recover", "-o", "bad.pftrace", "--force"]);
    let said = said(&recovered);
    match (recovered.status.code(), reason) {
        (Some(0), None) => {}
        (Some(2), None) => assert!(said.contains("cannot be recovered: "), "{said}"),
        (Some(2), Some(reason)) => assert!(said.contains(reason), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
    assert_eq!(program.at("bad.pftrace").exists(), recovered.status.success(), "{said}");
    let _ = fs::remove_file(program.at("bad.pftrace"));
    let leftovers = fs::read_dir(program.folder.path()).unwrap().flatten();
    let parts = leftovers.filter(|file| file.file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(parts.count(), 0);
}

#[test]
fn what_is_no_recording_or_damaged_is_refused() {
    let program = Program::new();
    program.kill("t.pftrace", SMALL, 1, Duration::ZERO);
    let whole = fs::read(program.at("t.pftrace.recover")).unwrap();
    survives(&program, b"", Some("too short"));
    survives(&program, b"#!/bin/sh\necho no recording at all\n", Some("no recording"));
    survives(&program, &whole[..whole.len() / 2], Some("cut short"));
    survives(&program, &fs::read(program.at("t.pftrace")).unwrap(), Some("no recording"));
    let mut other = whole.clone();
    other[8] ^= 0xff;
    survives(&program, &other, Some("another release"));
    // What the header says, the lanes, and the records.
    let mut seed = 7_u64;
    for round in 0..6 {
        let mut damaged = whole.clone();
        let (from, to) = [(16, 4096), (266_240, 400_000), (400_000, whole.len())][round % 3];
        for _ in 0..[1, 40, 4000][round / 3 % 3] {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = from + (seed >> 33) as usize % (to - from);
            damaged[at] = seed as u8;
        }
        survives(&program, &damaged, None);
    }
    let missing = program.recover(&["missing.recover"]);
    assert_eq!(missing.status.code(), Some(2));
    let folder = program.recover(&["."]);
    assert_eq!(folder.status.code(), Some(2), "{}", said(&folder));
}
