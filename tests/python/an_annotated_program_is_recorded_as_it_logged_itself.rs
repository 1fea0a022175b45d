//! `kymo record` on an unmodified Python program: the slices of the trace equal, in number,
//! name, category, nesting and duration, what the program logged about itself.

use harness::kymo;
use std::collections::HashMap;

use oracle::Trace;
use serde_json::{Map, Value};

/// How far a slice may lie outside the interval in which the program says it happened.
const TOLERANCE: i64 = 2_000;

/// A range as the program saw it. Begin and end are moments between two readings of the
/// clock.
#[derive(Debug)]
struct Logged {
    pid: i64,
    name: String,
    category: String,
    /// The range around it on its thread; none for ranges that lie on a track.
    parent: Option<String>,
    begin: [i64; 2],
    end: [i64; 2],
}

#[derive(Debug)]
struct Slice {
    pid: i64,
    name: String,
    category: String,
    /// The range around it on its track.
    parent: Option<String>,
    /// The innermost range around it on its thread, if one of the two is aside.
    around: Option<String>,
    thread: Option<i64>,
    /// It is not on the thread's own track, but on one beside it.
    aside: bool,
    begin: i64,
    end: i64,
}

impl Slice {
    fn read(row: &Map<String, Value>) -> Slice {
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let (begin, tid) = (row["ts"].as_i64().unwrap(), row["tid"].as_i64());
        let category = text("category").unwrap();
        let beside = text("track").and_then(|track| number_in(&track, &category));
        Slice {
            pid: row["pid"].as_i64().unwrap(),
            name: text("name").unwrap(),
            parent: text("parent"),
            around: None,
            thread: tid.or(beside),
            aside: beside.is_some(),
            begin,
            end: begin + row["dur"].as_i64().unwrap(),
            category,
        }
    }

    fn find_around(&self, all: &[Slice]) -> Option<String> {
        let around = all.iter().filter(|other| other.is_around(self));
        let innermost = around.max_by_key(|other| other.begin)?;
        (self.aside || innermost.aside).then(|| innermost.name.clone())
    }

    fn is_around(&self, inner: &Slice) -> bool {
        self.thread.is_some()
            && (self.pid, self.thread) == (inner.pid, inner.thread)
            && self.begin < inner.begin
            && inner.end < self.end
    }
}

/// The thread's number in `NAME NUMBER · DOMAIN`, which a track beside its own is called.
fn number_in(track: &str, domain: &str) -> Option<i64> {
    track.strip_suffix(domain)?.strip_suffix(" · ")?.rsplit_once(' ')?.1.parse().ok()
}

impl Logged {
    fn read(line: &str) -> Logged {
        let row: Value = serde_json::from_str(line).unwrap();
        let times = |key: &str| [row[key][0].as_i64().unwrap(), row[key][1].as_i64().unwrap()];
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        Logged {
            pid: row["pid"].as_i64().unwrap(),
            name: text("name").unwrap(),
            category: text("domain").unwrap_or("nvtx".into()),
            parent: text("parent"),
            begin: times("begin"),
            end: times("end"),
        }
    }

    fn is(&self, slice: &Slice) -> bool {
        let near = |[from, to]: [i64; 2], at| from - TOLERANCE <= at && at <= to + TOLERANCE;
        self.pid == slice.pid
            && self.name == slice.name
            && self.category == slice.category
            && (self.parent == slice.parent
                || slice.around.is_some() && self.parent == slice.around)
            && near(self.begin, slice.begin)
            && near(self.end, slice.end)
    }

    /// Both ends within their intervals bound the duration by construction; said anew so
    /// that a systematic shift cannot hide in it.
    fn lasts_as_long_as(&self, slice: &Slice) -> bool {
        let shortest = self.end[0] - self.begin[1] - TOLERANCE;
        let longest = self.end[1] - self.begin[0] + TOLERANCE;
        (shortest..=longest).contains(&(slice.end - slice.begin))
    }
}

fn slices(trace: &Trace) -> Vec<Slice> {
    let rows = trace.query(
        "SELECT COALESCE(tp.pid, pp.pid) AS pid, s.name, s.category, p.name AS parent, s.ts, s.dur,
                t.tid, k.name AS track
         FROM slice s
         JOIN track k ON k.id = s.track_id
         LEFT JOIN slice p ON p.id = s.parent_id
         LEFT JOIN thread_track tt ON tt.id = s.track_id
         LEFT JOIN thread t ON t.utid = tt.utid
         LEFT JOIN process tp ON tp.upid = t.upid
         LEFT JOIN process_track pt ON pt.id = s.track_id
         LEFT JOIN process pp ON pp.upid = pt.upid
         WHERE s.name != 'milestone'
         ORDER BY s.ts",
    );
    let mut slices: Vec<Slice> = rows.iter().map(Slice::read).collect();
    let around: Vec<_> = slices.iter().map(|slice| slice.find_around(&slices)).collect();
    slices.iter_mut().zip(around).for_each(|(slice, around)| slice.around = around);
    slices
}

#[test]
fn an_annotated_program_is_recorded_as_it_logged_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (output, log) = (folder.path().join("t.pftrace"), folder.path().join("log"));
    let ran = kymo::kymo()
        .args(["record", "-o"])
        .arg(&output)
        .arg("--")
        .arg(oracle::venv_python())
        .arg("tests/data/annotated.py")
        .arg(&log)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("3 processes, 6 threads, 1,255 events, 0 lost"), "{said}");

    let trace = Trace::open(&output);
    trace.assert_clean();
    let log = std::fs::read_to_string(&log).unwrap();
    let logged: Vec<Logged> = log.lines().map(Logged::read).collect();
    let mut found: HashMap<(i64, String), Vec<Slice>> = HashMap::new();
    let all = slices(&trace);
    assert_eq!(all.len(), logged.len());
    assert_eq!(logged.len(), 1_249);
    for slice in all {
        found.entry((slice.pid, slice.name.clone())).or_default().push(slice);
    }
    for range in &logged {
        let candidates = found.get_mut(&(range.pid, range.name.clone())).expect("no such slice");
        let Some(at) = candidates.iter().position(|slice| range.is(slice)) else {
            panic!("{range:?} is none of {candidates:#?}");
        };
        let slice = candidates.remove(at);
        assert!(range.lasts_as_long_as(&slice), "{range:?} {slice:?}");
    }

    assert_eq!(
        trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'milestone' AND dur = 0"),
        6,
        "marks"
    );
    let arguments = "SELECT COUNT(*) FROM slice s JOIN args a USING (arg_set_id)
                     WHERE s.name = 'step' AND a.key = 'debug.payload' AND a.int_value BETWEEN 0 AND 49";
    assert_eq!(trace.one_i64(arguments), 240, "payloads");
}
