//! Rotating files: each part is a trace of its own, with what was begun or said before it;
//! together they have every event; old ones are removed.

use harness::{alone, kymo, native};

#[cfg(feature = "inject")]
#[cfg(feature = "inject")]
use kymograph::{Category, Config, Counter, Recording, Track, range, scope};
use oracle::Trace;
use std::path::{Path, PathBuf};
use std::time::Duration;

static TIMEOUT: Duration = Duration::from_secs(60);

static WORK: Category = Category::new("work");
static STEADY: Counter = Counter::new("steady").category(&WORK);

fn config(folder: &Path, more: &[(&str, &str)]) -> Config {
    let mut config = Config::to_file(folder.join("t.pftrace"));
    for (key, value) in [("ROTATE", "64K"), ("POLICY", "stall:10s")].iter().chain(more) {
        config.set(key, value).unwrap();
    }
    config
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let numbers = 1..1000;
    numbers.map(|n| folder.join(format!("t.{n}.pftrace"))).filter(|path| path.exists()).collect()
}

#[test]
fn each_part_has_what_still_holds() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(config(folder.path(), &[])).unwrap();
    STEADY.set(7);
    let track = Track::new("requests");
    let request = range!(track: &track, WORK, "request", id = 1);
    {
        let _epoch = scope!(WORK, "epoch", number = 3);
        for n in 0..4 * 1000 {
            let _step = scope!("step", n = n);
            if n % 1000 == 999 {
                // A part is looked at when it is written.
                assert!(recording.flush(TIMEOUT));
            }
        }
    }
    request.end();
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.failure), (0, None));
    assert!(!folder.path().join("t.pftrace").exists());
    let parts = parts(folder.path());
    assert!(parts.len() >= 2, "{}", parts.len());
    let mut steps = 0;
    for part in &parts {
        assert!(part.metadata().unwrap().len() < 256 << 10);
        let trace = Trace::open(part);
        trace.assert_clean();
        // One that is cut ends in the part after.
        let ended = "SELECT count(*) FROM slice WHERE name = 'step' AND dur >= 0";
        steps += trace.one_i64(ended);
        let long = trace.rows(
            "SELECT name, extract_arg(arg_set_id, 'debug.number') FROM slice \
             WHERE name IN ('epoch', 'request') ORDER BY name",
        );
        assert_eq!(long.len(), 2, "{long:?}");
        assert_eq!(long[0][1], 3);
        let steady = "SELECT CAST(value AS INT) FROM counter";
        assert_eq!(trace.one_i64(steady), 7);
        let row = "SELECT count(*) FROM slice s JOIN track t ON t.id = s.track_id \
                   WHERE s.name = 'request' AND t.name = 'requests'";
        assert_eq!(trace.one_i64(row), 1);
    }
    assert_eq!(steps, 4000);
}

/// A program with two copies of NVTX domains: `a` and `b` are begun and ended so that they cross,
/// a part at a time goes by while both are open, and while nobody knows yet that they cross.
#[test]
#[cfg(feature = "inject")]
fn what_is_undecided_at_a_cut_is_in_each_part() {
    alone!();
    const PROGRAM: &str = "import nvtx, os, sys, time
a, b = nvtx.get_domain('a'), nvtx.get_domain('b')
def push(domain, name):
    domain.push_range(domain.get_event_attributes(message=name))
count = 0
def steps_until(part):
    global count
    while not os.path.exists(os.path.join(sys.argv[1], 't.%d.pftrace' % part)):
        for n in range(1000):
            with nvtx.annotate('step', domain='a'): pass
        count += 1000
        time.sleep(0.01)
push(a, 'outer')
push(b, 'crosses')
steps_until(2)
push(a, 'inner')
steps_until(3)
a.pop_range()
a.pop_range()
steps_until(4)
b.pop_range()
print(count)
";
    let folder = tempfile::tempdir().unwrap();
    let mut command = kymo::kymo();
    command.args(["record", "--rotate", "64K", "--flush-interval", "5ms", "-o"]);
    command.arg(folder.path().join("t.pftrace")).arg("--");
    command.arg(oracle::venv_python()).args(["-c", PROGRAM]).arg(folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let count: i64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    let parts = parts(folder.path());
    assert!(parts.len() >= 4, "{} parts: {said}", parts.len());
    let mut ends = [0; 3];
    let (mut steps, mut last) = (0, [0; 3]);
    for part in &parts {
        let trace = Trace::open(part);
        trace.assert_clean();
        steps += trace.one_i64("SELECT count(*) FROM slice WHERE name = 'step' AND dur >= 0");
        for (at, name) in ["outer", "crosses", "inner"].into_iter().enumerate() {
            let of = format!("FROM slice WHERE name = '{name}'");
            let found = trace.one_i64(&format!("SELECT count(*) {of}"));
            assert!(found <= 1, "{found} of {name} in {}", part.display());
            ends[at] += trace.one_i64(&format!("SELECT count(*) {of} AND dur >= 0"));
            // Once it has begun it is in every part until it ends, and in none after that.
            assert!(ends[at] == 0 || found == 1 || last[at] == 2, "{name} in {}", part.display());
            last[at] = if ends[at] > 0 { 2 } else { found };
            if found == 1 {
                let begun = trace.one_i64(&format!("SELECT ts {of}"));
                // The last part may have none.
                let first =
                    format!("SELECT coalesce(min(ts), {begun}) FROM slice WHERE name = 'step'");
                let first = trace.one_i64(&first);
                assert!(name == "inner" || begun <= first, "{name} in {}", part.display());
            }
        }
    }
    assert_eq!((steps, ends), (count, [1; 3]), "{said}");
}

#[test]
fn only_so_many_are_kept_and_each_may_be_compressed() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let more = [("KEEP", "2"), ("COMPRESS", "gzip")];
    let recording = Recording::start(config(folder.path(), &more)).unwrap();
    let mut made = 0;
    while parts(folder.path()).iter().all(|part| !part.ends_with("t.5.pftrace")) {
        assert!(made < 100_000, "{made}");
        for _ in 0..1000 {
            drop(scope!("step", n = made));
            made += 1;
        }
        assert!(recording.flush(TIMEOUT));
    }
    recording.stop();
    let parts = parts(folder.path());
    let names = [4, 5].map(|n| folder.path().join(format!("t.{n}.pftrace")));
    assert_eq!(parts, names);
    for part in parts {
        Trace::open(part).assert_clean();
    }
}

#[test]
#[cfg(feature = "inject")]
fn processes_of_one_recording_go_on_together() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let program = native::compile("cc", "-std=c11", "tests/data/c/flight.c", folder.path());
    let mut command = kymo::kymo();
    command.args(["record", "--rotate", "64K", "--flush-interval", "5ms", "-o"]);
    command.arg(folder.path().join("t.pftrace")).arg("--").arg(&program);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let parts = parts(folder.path());
    assert!(parts.len() >= 2, "{said}");
    // How many of them come to a part before it is full is their affair.
    assert!(said.contains(": 2 processes") || said.contains(": 3 processes"), "{said}");
    assert!(!folder.path().join("t.pftrace").exists());
    // One that is cut ends in the part after.
    let steps = "SELECT count(*) FROM slice WHERE name = 'step' AND dur >= 0";
    let all = parts.iter().map(|part| {
        let trace = Trace::open(part);
        trace.assert_clean();
        trace.one_i64(steps)
    });
    // The one that aborted has flushed its first thousand.
    let all: i64 = all.sum();
    assert!((4000..=5000).contains(&all), "{all}: {said}");
}

#[test]
fn there_is_no_one_trace_that_could_go_elsewhere_as_well() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pftrace");
    let error = Recording::start(config(folder.path(), &[("ALSO", copy.to_str().unwrap())]));
    let error = error.expect_err("several traces").to_string();
    assert!(error.contains("unset one of them") && error.contains("copy.pftrace"), "{error}");
    assert!(!copy.exists() && parts(folder.path()).is_empty());
}
