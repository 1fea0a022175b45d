//! Strings that are no text, that are enormous, and more of them than anybody keeps.

use harness::child;
use kymograph::__private::PIPELINE;
use kymograph::{
    APP, Config, Counter, Recording, Scope, Track, instant, range, scope, set_process_name,
    set_thread_name,
};
use kymograph_protos::Recorder;
use kymograph_protos::record::{Kind, Record, StrId};
use oracle::Trace;
use std::path::Path;
use std::time::Duration;

/// Each part in a process of its own: the interner is the process's, and one is filled.
#[track_caller]
fn recorded(part: &str) -> (tempfile::TempDir, Trace) {
    let folder = tempfile::tempdir().unwrap();
    let output = child::command(module_path!(), part, "record", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    (folder, trace)
}

fn config(folder: &Path) -> Config {
    Config::to_file(folder.join("t.pftrace"))
}

/// As a backend does it: bytes of any kind.
fn instant_named(name: &[u8]) {
    let site = PIPELINE.intern(StrId::NONE, name);
    let time = PIPELINE.now();
    let head = Record { time, site, kind: Kind::Instant as u8, ..Record::default() };
    assert!(PIPELINE.push_named(head, &[], if site.is_none() { name } else { &[] }));
}

const ODD: [(&[u8], &str); 7] = [
    (b"invalid \xff\xfe\x80 end", "invalid \u{fffd}\u{fffd}\u{fffd} end"),
    (b"cut \xe2\x82", "cut \u{fffd}"),
    (b"nul \0 inside", "nul \u{2400} inside"),
    (b"\0", "\u{2400}"),
    ("bell \u{7} tab \t newline \n escape \u{1b}[31m".as_bytes(), ""),
    ("\u{202e}right to left \u{1f600} \u{feff}".as_bytes(), ""),
    (b"'; DROP TABLE slice; -- \" \\ %s {}", ""),
];

#[test]
fn that_are_no_text() {
    if child::part().is_some() {
        let recording = Recording::start(config(&child::folder())).unwrap();
        for (name, _) in ODD {
            instant_named(name);
        }
        instant!("args", text = "nul \0 \u{7f}", empty = "");
        set_thread_name("thread \0 name");
        set_process_name("process \u{1b} name");
        let _scope = Scope::named(&APP, "");
        drop(recording);
        return;
    }
    let (_folder, trace) = recorded("that_are_no_text");
    let expected = ODD.map(|(bytes, shown)| match shown {
        "" => std::str::from_utf8(bytes).unwrap(),
        shown => shown,
    });
    let rows = trace.rows("SELECT name FROM slice WHERE arg_set_id IS NULL AND dur = 0");
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(names, expected);
    assert_eq!(
        trace
            .rows("SELECT display_value FROM args WHERE flat_key LIKE 'debug.%' ORDER BY flat_key"),
        [[""], ["nul \u{2400} \u{7f}"]]
    );
    assert_eq!(
        trace.rows(
            "SELECT thread.name, process.name FROM slice JOIN thread_track t ON t.id = track_id
                    JOIN thread USING (utid) JOIN process USING (upid) LIMIT 1"
        ),
        [["thread \u{2400} name", "process \u{1b} name"]]
    );
}

#[test]
fn of_a_megabyte() {
    let long = |n: usize| format!("{n} {}", "x".repeat(1 << 20));
    if child::part().is_some() {
        let recording = Recording::start(config(&child::folder())).unwrap();
        for n in 0..20 {
            let _scope = Scope::named(&APP, &long(n));
        }
        let summary = recording.stop();
        assert_eq!((summary.events, summary.lost), (20, 0), "{summary:?}");
        // Sixteen are kept; what follows by value is shortened, and that is counted.
        assert!((4..=6).contains(&summary.truncated), "{summary:?}");
        return;
    }
    let (_folder, trace) = recorded("of_a_megabyte");
    let rows = trace.rows("SELECT name FROM slice ORDER BY ts");
    assert_eq!(rows.len(), 20);
    for (n, row) in rows.iter().enumerate() {
        let name = row[0].as_str().unwrap();
        assert!(long(n).starts_with(name) && name.len() >= 8000, "{n}: {}", name.len());
        assert!(n > 13 || name.len() == long(n).len(), "{n}: {}", name.len());
    }
}

static LATE: Counter = Counter::new("late counter");
static LATER: Counter = Counter::new("later counter");

/// Once the interner is full, all names travel by value: also those of threads, tracks
/// and counters.
#[test]
fn of_seventy_thousand_names() {
    const NAMES: usize = 70_000;
    if child::part().is_some() {
        let mut config = config(&child::folder());
        config.set("FLUSH", "20ms").unwrap();
        let recording = Recording::start(config).unwrap();
        for n in 0..NAMES {
            let _scope = Scope::named(&APP, &format!("name {n}"));
            // The first ones again, which are known.
            let _again = Scope::named(&APP, &format!("name {}", n % 50));
        }
        std::thread::spawn(|| {
            set_thread_name("late thread");
            let track = Track::new("late track");
            let late = range!(track: &track, "late range", n = 1);
            instant!("late instant", first = 7, second = "text", third = true);
            {
                let _outer = scope!("late scope", text = "by value");
                let _inner = scope!("late leaf");
                assert!(recording_flush());
            }
            LATE.set(5);
            LATER.set(6);
            drop(late);
        })
        .join()
        .unwrap();
        set_process_name("late process");
        let summary = recording.stop();
        assert_eq!((summary.lost, summary.truncated), (0, 0), "{summary:?}");
        assert_eq!(summary.events, NAMES as u64 * 2 + 6, "{summary:?}");
        return;
    }
    let (_folder, trace) = recorded("of_seventy_thousand_names");
    assert_eq!(
        trace.one_i64("SELECT count(DISTINCT name) FROM slice WHERE name GLOB 'name *'"),
        NAMES as i64
    );
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IS NULL OR dur = -1"), 0);
    assert_eq!(
        trace.table(
            "SELECT s.name, coalesce(thread.name, t.name) AS on_, p.name AS parent FROM slice s
             LEFT JOIN slice p ON p.id = s.parent_id JOIN track t ON t.id = s.track_id
             LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread USING (utid)
             WHERE s.name GLOB 'late*' ORDER BY s.ts"
        ),
        "name          on_          parent\n\
         late range    late track   NULL\n\
         late instant  late thread  NULL\n\
         late scope    late thread  NULL\n\
         late leaf     late thread  late scope\n"
    );
    assert_eq!(
        trace.table(
            "SELECT t.name, value FROM counter JOIN counter_track t ON t.id = track_id ORDER BY 1"
        ),
        "name           value\nlate counter   5.0\nlater counter  6.0\n"
    );
    assert_eq!(
        trace.table(
            "SELECT s.name, flat_key, display_value FROM slice s JOIN args USING (arg_set_id)
             WHERE s.name GLOB 'late*' AND flat_key GLOB 'debug.*' ORDER BY s.ts, flat_key"
        ),
        "name          flat_key      display_value\n\
         late range    debug.n       1\n\
         late instant  debug.first   7\n\
         late instant  debug.second  text\n\
         late instant  debug.third   true\n\
         late scope    debug.text    by value\n"
    );
    assert_eq!(trace.strings("SELECT DISTINCT name FROM process WHERE pid != 0"), ["late process"]);
}

/// Lets the engine look at what is open.
fn recording_flush() -> bool {
    std::thread::sleep(Duration::from_millis(60));
    Recording::is_running()
}
