//! A program under `kymo record` is killed at a random moment: everything whose recording
//! call had returned is in the trace, to the event.
//!
//! A few kills here; `tests/kill_a_thousand` does them all and prints the figures.

use harness::{guest, kymo};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use guest::Guest;
use kymo::Guarded;
use oracle::Trace;

/// Kills of each kind where the environment does not say how many.
const KILLS: u32 = 2;
/// How long anything may take before it counts as hanging.
const HANGS: Duration = Duration::from_secs(120);

/// What a thread of the program says of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    pid: u64,
    tid: u64,
    pushes: u64,
    pops: u64,
}

/// The program, which runs under `kymo`.
struct Run {
    kymo: Guarded,
    counts: File,
    lines: usize,
}

impl Run {
    fn start(program: &Guest, folder: &Path, output: &str, processes: usize, more: &[&str]) -> Run {
        let counts = folder.join("counts");
        let file = File::options().read(true).write(true).create_new(true).open(&counts).unwrap();
        file.set_len(4096).unwrap();
        let mut command = kymo::kymo();
        command.args(["record", "-o"]).arg(folder.join(output)).args(more).arg("--");
        let threads = if processes == 1 { 2 } else { 1 };
        command.arg(program.folder().join("program")).arg(&counts);
        command.args([processes.to_string(), threads.to_string()]);
        kymo::heed_signals(&mut command);
        guest::without_core_files(&mut command);
        let kymo = Guarded::start(command.stdin(Stdio::null()).stderr(Stdio::piped()));
        Run { kymo, counts: file, lines: processes * threads }
    }

    fn lines(&self) -> Vec<Line> {
        let mut bytes = [0; 4096];
        self.counts.read_exact_at(&mut bytes, 0).unwrap();
        let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        let words: Vec<u64> = words.collect();
        let line = |w: &[u64]| Line { pid: w[0], tid: w[1], pushes: w[2], pops: w[3] };
        words.chunks_exact(4).take(self.lines).map(line).collect()
    }

    /// Kills all processes as soon as each thread has recorded something, and a moment later.
    fn kill(&self, signal: i32, moment: Duration) -> Vec<Line> {
        let began = Instant::now();
        while self.lines().iter().any(|line| line.pops == 0) {
            assert!(began.elapsed() < HANGS, "it does not record: {:?}", self.lines());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(moment);
        let mut pids: Vec<u64> = self.lines().iter().map(|line| line.pid).collect();
        pids.dedup();
        // The command last: `kymo` ends with it.
        for pid in pids.iter().rev() {
            // SAFETY: takes numbers. The program waits for nobody, so that they are its own.
            assert_eq!(unsafe { libc::kill(*pid as i32, signal) }, 0);
        }
        // They may go on until the signal reaches them.
        let mut lines = self.lines();
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let dead = pids.iter().all(|pid| is_dead(*pid));
            let now = self.lines();
            if dead {
                return now;
            }
            assert!(began.elapsed() < HANGS, "it does not die: {lines:?}");
            lines = now;
        }
    }

    /// What `kymo` said.
    fn end(self) -> String {
        let output = self.kymo.wait_with_output();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn is_dead(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_none_or(|state| state == 'Z' || state == 'X')
}

/// The trace has of each thread what its calls had stored, and at most the one more that
/// was under way.
#[track_caller]
fn assert_all_is_there(trace: &Trace, lines: &[Line]) {
    trace.assert_clean();
    for line in lines {
        let of_thread = format!(
            "slice JOIN thread_track ON thread_track.id = slice.track_id \
             JOIN thread USING (utid) WHERE tid = {} AND slice.name = 'numbered'",
            line.tid
        );
        let numbers = "extract_arg(slice.arg_set_id, 'debug.payload')";
        let found = trace.one_i64(&format!("SELECT count(*) FROM {of_thread}")) as u64;
        let different =
            trace.one_i64(&format!("SELECT count(DISTINCT {numbers}) FROM {of_thread}")) as u64;
        let last = trace.one_i64(&format!("SELECT max({numbers}) FROM {of_thread}")) as u64;
        assert!(found == line.pushes || found == line.pushes + 1, "{found} of {line:?}");
        let bare = trace.one_i64(&format!("SELECT count(*) - count({numbers}) FROM {of_thread}"));
        assert_eq!((different, last + 1), (found, found), "{bare} without a number, {line:?}");
        let inside = trace.one_i64(&format!(
            "SELECT count(*) FROM slice JOIN thread_track ON thread_track.id = slice.track_id \
             JOIN thread USING (utid) WHERE tid = {} AND slice.name = 'inside'",
            line.tid
        )) as u64;
        let least = line.pops.div_ceil(3);
        assert!(inside >= least && inside <= line.pushes / 3 + 1, "{inside} of {line:?}");
    }
}

/// The same numbers every time, but for the process.
fn moment(n: u32) -> Duration {
    let mixed = (n ^ std::process::id()).wrapping_mul(0x9e37_79b9) >> 16;
    Duration::from_micros(u64::from(mixed) % 300_000)
}

/// Kills the program in one way, `KYMO_KILLS` times.
fn survives(signal: i32, name: &str, output: &str, processes: usize, more: &[&str]) {
    let program = Guest::compiled("counts_what_it_pushed.c");
    let kills = std::env::var("KYMO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let (mut pushed, mut said) = (0, String::new());
    for n in 0..kills {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::start(&program, folder.path(), output, processes, more);
        let lines = run.kill(signal, moment(n));
        said = run.end();
        assert!(said.contains(", 0 lost"), "{said}");
        let trace = Trace::open(folder.path().join(output));
        assert_all_is_there(&trace, &lines);
        let died = trace.one_i64(&format!(
            "SELECT count(*) FROM slice WHERE name = 'killed by {name}' AND dur = 0"
        ));
        assert!(died >= 1, "nobody says that it was killed by {name}: {said}");
        pushed += lines.iter().map(|line| line.pushes).sum::<u64>();
    }
    println!(
        "{kills} kills by {name}, {output}, {processes} processes: {pushed} ranges, all there"
    );
    drop(said);
}

#[test]
fn sigkill_loses_nothing_of_one_process() {
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace", 1, &[]);
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace.gz", 1, &[]);
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace", 1, &["--set", "COMPRESS=packets"]);
}

#[test]
fn sigkill_loses_nothing_of_four_processes() {
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace", 4, &[]);
    survives(libc::SIGKILL, "SIGKILL", "t.pftrace.gz", 4, &[]);
}

#[test]
fn sigterm_and_sigsegv_lose_nothing() {
    survives(libc::SIGTERM, "SIGTERM", "t.pftrace", 4, &[]);
    survives(libc::SIGSEGV, "SIGSEGV", "t.pftrace", 1, &[]);
}

#[test]
fn a_flight_recorder_is_written_when_its_program_is_killed() {
    let program = Guest::compiled("counts_what_it_pushed.c");
    let folder = tempfile::tempdir().unwrap();
    let flight = ["--flight", "60s", "--dump-on", "crash"];
    let run = Run::start(&program, folder.path(), "t.pftrace", 1, &flight);
    let lines = run.kill(libc::SIGKILL, moment(0));
    let said = run.end();
    let trace = Trace::open(folder.path().join("t.1.pftrace"));
    assert_all_is_there(&trace, &lines);
    assert!(said.contains("t.1.pftrace"), "{said}");
}

#[test]
fn the_workers_of_a_pool_that_are_terminated_lose_nothing() {
    let source = "import multiprocessing, nvtx\n\
        def f(n):\n    with nvtx.annotate('work'): return n\n\
        if __name__ == '__main__':\n    \
            with multiprocessing.Pool(4) as p: assert p.map(f, range(400)) == list(range(400))\n";
    let rounds = std::env::var("KYMO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for _ in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let (script, output) = (folder.path().join("pool.py"), folder.path().join("t.pftrace"));
        std::fs::write(&script, source).unwrap();
        let mut command: Command = kymo::kymo();
        command.args(["record", "-q", "-o"]).arg(&output).arg("--").arg(oracle::venv_python());
        assert!(command.arg(&script).status().unwrap().success());
        let trace = Trace::open(&output);
        trace.assert_clean();
        assert_eq!(guest::count(&trace, "work"), 400);
        assert_eq!(guest::lost(&trace), 0);
    }
}
