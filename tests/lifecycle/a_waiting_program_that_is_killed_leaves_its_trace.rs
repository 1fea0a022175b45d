//! A program under `kymo record --wait` is killed at a random moment while it is recorded:
//! everything whose recording call had returned is in the trace, to the event.
//!
//! A few kills here; `tests/kill_a_thousand` does them all and prints the figures.

use harness::{control, guest, kymo};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use control::{Place, TIMEOUT};
use guest::Guest;
use kymo::Guarded;
use oracle::Trace;

/// Kills of each kind where the environment does not say how many.
const KILLS: u32 = 1;

/// What one thread of the program has done: its process, and calls that have returned.
fn counts(file: &File) -> (u32, i64) {
    let mut words = [0; 32];
    file.read_exact_at(&mut words, 0).unwrap();
    let word = |at: usize| u64::from_ne_bytes(words[at * 8..][..8].try_into().unwrap());
    (word(0) as u32, word(2) as i64)
}

/// Waits until this is so.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program under `kymo record --wait`, once it can be asked for traces; and its counts.
fn start(place: &Place, program: &Guest, options: &[&str]) -> (Guarded, File) {
    let counts_at = place.path("counts");
    let file = File::options().read(true).write(true).create_new(true).open(&counts_at).unwrap();
    file.set_len(4096).unwrap();
    let mut command = place.kymo(&["record", "--wait"]);
    command.args(options).arg("--").arg(program.folder().join("program"));
    command.arg(&counts_at).args(["1", "1"]);
    kymo::heed_signals(&mut command);
    guest::without_core_files(&mut command);
    let kymo = Guarded::start(command.stderr(Stdio::piped()));
    wait_until("it runs", || counts(&file).1 > 0);
    let socket = place.sockets().join(format!("{}.sock", counts(&file).0));
    wait_until("it can be asked", || socket.exists());
    (kymo, file)
}

/// Has it recorded into `output` until it is killed, and kills it a moment later. Gives back the
/// command that asked for it: a process whose signal is on its way would stop when that is gone.
#[must_use]
fn kill(place: &Place, counts_of: &File, output: &Path, signal: i32, moment: Duration) -> Guarded {
    let pid = counts(counts_of).0;
    let mut trigger: Command = place.kymo(&["trigger", "--duration", "10m", "--pid"]);
    trigger.arg(pid.to_string()).arg("-o").arg(output);
    let trigger = Guarded::start(trigger.stdout(Stdio::null()).stderr(Stdio::null()));
    // Some of it was written by the process itself.
    wait_until("it records", || output.metadata().is_ok_and(|file| file.len() > 4096));
    std::thread::sleep(moment);
    // SAFETY: takes numbers. `kymo` has not waited for it, so that it has its number.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
    trigger
}

/// All numbers up to the last one whose push had returned, once each.
#[track_caller]
fn assert_all_is_there(output: &Path, pushes: i64, name: &str) -> i64 {
    let trace = Trace::open(output);
    trace.assert_clean();
    let numbers = "SELECT extract_arg(arg_set_id, 'debug.payload') AS n FROM slice \
                   WHERE name = 'numbered'";
    let of = |what: &str| trace.one_i64(&format!("SELECT {what} FROM ({numbers})"));
    let [first, last] = ["min(n)", "max(n)"].map(of);
    assert!(last + 1 == pushes || last == pushes, "{last} of {pushes}");
    assert_eq!([of("count(*)"), of("count(DISTINCT n)")], [last - first + 1; 2]);
    let died = format!("SELECT count(*) FROM slice WHERE name = 'killed by {name}' AND dur = 0");
    assert_eq!(trace.one_i64(&died), 1);
    last - first + 1
}

fn survives(signal: i32, name: &str, output: &str) {
    let program = Guest::compiled("counts_what_it_pushed.c");
    let kills = std::env::var("KYMO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let mut recorded = 0;
    for n in 0..kills {
        let place = Place::new();
        // Enough for a machine that lets the program run for a while, and nothing else.
        let (kymo, counts_of) = start(&place, &program, &["--set", "BUFFER=256M"]);
        let pid = counts(&counts_of).0.to_string();
        if n % 2 == 0 {
            // What was recorded before, and is finished, is none of it.
            let short = ["trigger", "--duration", "50ms", "-o", "first.pftrace", "--pid", &pid];
            place.run(&short).trace();
        }
        let output = place.path(output);
        let moment = Duration::from_millis(u64::from(n * 37 + std::process::id()) % 300);
        let _trigger = kill(&place, &counts_of, &output, signal, moment);
        let said = kymo.wait_with_output();
        let said = String::from_utf8_lossy(&said.stderr);
        assert!(said.contains("has all of it") && said.contains(", 0 lost"), "{said}");
        recorded += assert_all_is_there(&output, counts(&counts_of).1, name);
        let left = std::fs::read_dir(output.parent().unwrap()).unwrap();
        let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let parts: Vec<String> = names.filter(|name| name.contains("part")).collect();
        assert_eq!(parts, [""; 0]);
    }
    println!("{kills} kills by {name} under --wait, {output}: {recorded} ranges, all there");
}

#[test]
fn by_sigkill() {
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace");
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace.gz");
}

#[test]
fn by_sigterm_and_sigsegv() {
    survives(libc::SIGTERM, "SIGTERM", "t.pftrace");
    survives(libc::SIGSEGV, "SIGSEGV", "t.pftrace");
}

#[test]
fn what_it_kept_no_more_is_said() {
    let program = Guest::compiled("counts_what_it_pushed.c");
    let place = Place::new();
    let (kymo, counts_of) = start(&place, &program, &["--set", "BUFFER=1M"]);
    let output = place.path("t.pftrace");
    let before = counts(&counts_of).1;
    // More than there is room for.
    let pid = counts(&counts_of).0.to_string();
    let mut trigger = place.kymo(&["trigger", "--duration", "10m", "--pid", &pid, "-o"]);
    let _trigger = Guarded::start(trigger.arg(&output).stderr(Stdio::null()));
    wait_until("it records", || output.metadata().is_ok_and(|file| file.len() > 4096));
    wait_until("it goes on", || counts(&counts_of).1 > before + 400_000);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(counts(&counts_of).0 as i32, libc::SIGKILL) }, 0);
    let said = kymo.wait_with_output();
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("up to its last flush"), "{said}");
    Trace::open(&output).assert_clean();
}
