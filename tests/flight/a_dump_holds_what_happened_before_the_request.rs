//! A dump holds the window before the moment at which it was asked for, also if the engine
//! is long in coming to it; and says so if memory was too little for that.

use harness::alone;
use kymograph::{Config, Error, Recording, scope};
use oracle::Trace;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

static TIMEOUT: Duration = Duration::from_secs(120);
fn start(folder: &Path, window: &str, memory: &str) -> Recording {
    let mut config = Config::to_file(folder.join("t.pftrace"));
    let options = [
        ("FLIGHT", window),
        ("FLIGHT_MEMORY", memory),
        ("POLICY", "stall:60s"),
        ("DUMP_ON", "none"),
        ("FLUSH", "10ms"),
    ];
    for (key, value) in options {
        config.set(key, value).unwrap();
    }
    Recording::start(config).unwrap()
}

/// Numbered slices, and when each had been recorded.
#[derive(Default)]
struct Work {
    next: u64,
    done: VecDeque<(u64, Instant)>,
}

impl Work {
    /// So many that segments become full while the engine catches up.
    fn go_on(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            for _ in 0..100 {
                drop(scope!("step", n = self.next));
                self.done.push_back((self.next, Instant::now()));
                self.next += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The first that began after `time`, for sure.
    fn first_after(&self, time: Instant) -> u64 {
        let later = self.done.iter().find(|(_, done)| *done > time);
        later.expect("something is recorded all the time").0 + 1
    }
}

/// The first and the last step in a trace; none between them is missing.
fn steps(path: &Path) -> (u64, u64) {
    let trace = Trace::open(path);
    trace.assert_clean();
    let n = "extract_arg(arg_set_id, 'debug.n')";
    let rows = trace.rows(&format!(
        "SELECT min({n}), max({n}), count(DISTINCT {n}) FROM slice WHERE name = 'step'"
    ));
    let [first, last, count] = [0, 1, 2].map(|column| rows[0][column].as_u64().unwrap());
    assert_eq!(count, last - first + 1);
    (first, last)
}

/// What the trace says of itself under this key, of whatever process.
fn said(path: &Path, key: &str) -> Vec<String> {
    let named = format!("name LIKE 'trace_attribute.kymograph.%.{key}'");
    Trace::open(path).strings(&format!("SELECT str_value FROM metadata WHERE {named}"))
}

#[test]
fn however_late_the_engine_comes_to_it() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let window = Duration::from_millis(300);
    let recording = start(folder.path(), "300ms", "256M");
    let mut work = Work::default();
    work.go_on(window * 3);
    // A pipe that nobody empties holds the engine up, until it gives up after two seconds.
    let pipe = folder.path().join("pipe");
    let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let pipe_end = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    // SAFETY: a descriptor of ours and a number.
    unsafe { libc::fcntl(pipe_end.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    let soon = Duration::from_millis(50);
    let order = |path: &Path| {
        // Busy at the moment, or ordered; nobody waits for it.
        while matches!(recording.dump(path, soon), Err(Error::NoFlight)) {}
    };
    order(&pipe);
    // Just before it is asked for, and just after, also if the engine is free by then.
    work.go_on(soon);
    let path = folder.path().join("dump.pftrace");
    let before = work.next - 1;
    order(&path);
    let asked = Instant::now();
    work.go_on(soon);
    // Until the engine is free again, and what it held at that moment has become too old.
    while recording.stats().total.write_errors == 0 {
        assert!(asked.elapsed() < TIMEOUT);
        work.go_on(soon);
    }
    // Answered in their order.
    recording.dump(folder.path().join("last.pftrace"), TIMEOUT).unwrap();
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.write_errors), (0, 1), "{summary:?}");
    let (first, last) = steps(&path);
    let wanted = work.first_after(asked - window);
    assert!(first <= wanted && last >= before, "{first}..={last}, not {wanted}..={before}");
    assert_eq!(said(&path, "flight.short"), [""; 0]);
}

#[test]
fn what_memory_had_no_room_for_is_said() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = start(folder.path(), "1h", "2M");
    let mut n = 0u64;
    let first = recording.dump(folder.path().join("first.pftrace"), TIMEOUT).unwrap();
    assert_eq!(first.missing, Duration::ZERO, "it has not lasted longer");
    let since = Instant::now();
    while recording.stats().total.discarded == 0 {
        assert!(since.elapsed() < TIMEOUT);
        for _ in 0..10_000 {
            drop(scope!("step", n = n));
            n += 1;
        }
        recording.flush(TIMEOUT);
    }
    let path = folder.path().join("dump.pftrace");
    let dump = recording.dump(&path, TIMEOUT).unwrap();
    recording.stop();
    let hour = Duration::from_secs(3600);
    assert!(dump.missing > Duration::ZERO && dump.missing + dump.covers == hour, "{dump:?}");
    let (first, last) = steps(&path);
    assert!(first > 0 && last == n - 1, "{first}..={last} of {n}");
    let short = said(&path, "flight.short");
    assert!(
        short.len() == 1 && short[0].ends_with("of 3600s: FLIGHT_MEMORY was full"),
        "{short:?}"
    );
    assert_eq!(said(&folder.path().join("first.pftrace"), "flight.short"), [""; 0]);
}
