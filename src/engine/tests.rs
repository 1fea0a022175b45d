//! The engine encodes what another process has recorded.

use std::sync::Mutex;
use std::time::Duration;

use kymograph_protos::StrId;
use kymograph_protos::record::{ArgType, Extra, Kind, Record};
use oracle::Trace;

use super::control_block::Request;
use super::ending::Ending;
use super::host::Host;
use super::window::Window;
use super::*;
use crate::config::{CategoryFilter, Config};
use crate::engine::names::Names;
use crate::intern::Interner;
use crate::queue::{Pool, Producer};
use crate::sink::Memory;

/// No process has this number: it is larger than `/proc/sys/kernel/pid_max` may be.
const PID: u32 = (1 << 22) + 7;
const MILLI: u64 = 1_000_000;

/// What the engine asked of the process.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<&'static str>>>);

impl Host for Asked {
    fn record(&self, wanted: Option<&CategoryFilter>) {
        self.0.lock().unwrap().push(if wanted.is_some() { "record" } else { "no more" });
    }

    fn flush_sources(&self) -> bool {
        self.0.lock().unwrap().push("flush");
        true
    }

    fn thread_name(&self, tid: u32) -> Option<Vec<u8>> {
        (tid == this_thread()).then(|| b"as the program said".to_vec())
    }

    fn over(&self, _: bool) {
        self.0.lock().unwrap().push("over");
    }
}

fn this_thread() -> u32 {
    kymograph_backends::environment::gettid() as u32
}

/// Another process: its queues, its names, and when it began.
struct Other {
    pool: Arc<Pool>,
    strings: Arc<Interner>,
    names: Arc<Names>,
    began: u64,
}

impl Other {
    fn new() -> Other {
        let pool = Pool::new();
        assert!(pool.provide(1 << 20));
        let began = clock::system(libc::CLOCK_BOOTTIME) - 1000 * MILLI;
        let names = Arc::new(Names::new(Arc::new(pool), None, 0));
        Other { pool: names.pool.clone(), strings: names.interner.clone(), names, began }
    }

    fn name(&self, category: StrId, text: &str) -> StrId {
        self.strings.intern(
            category,
            self.strings.intern_static(StrId::NONE, StrId::NONE, "n"),
            text.as_bytes(),
        )
    }

    /// A record, so many milliseconds after the beginning.
    fn at(&self, millis: u64, kind: Kind, name: &str) -> Record {
        let category = self.strings.intern_static(StrId::NONE, StrId::NONE, "of the other");
        let (site, kind) = (self.name(category, name), kind as u8);
        Record { time: self.began + millis * MILLI, site, kind, ..Record::default() }
    }

    fn begins(&self, thread: &Producer, millis: u64, name: &str) {
        let head =
            Record { arg: millis, tag: ArgType::U64 as u8, ..self.at(millis, Kind::Begin, name) };
        assert!(thread.begin(&self.pool, head, 0, &[], &[]));
    }

    fn ends(&self, thread: &Producer, millis: u64) {
        let head = Record {
            time: self.began + millis * MILLI,
            kind: Kind::End as u8,
            ..Record::default()
        };
        assert!(thread.end(&self.pool, head, 0, &[]));
    }

    /// What it says of itself.
    fn metadata(&self) -> Vec<(String, String)> {
        let ended = self.strings.intern_static(StrId::NONE, StrId::NONE, "ended");
        [
            ("name", "other"),
            ("command", "/bin/other"),
            ("command", "--fast"),
            ("started", "77"),
            ("counter", "false"),
            ("about/kymograph.host", "elsewhere"),
            ("place/rank", "3"),
            ("word/ended", &ended.0.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// Its engine, which has begun, and where it writes to.
    fn engine(&self, config: Config, asked: &Asked) -> (Engine, Memory) {
        let shared = Shared::new(config, Window::all(), PID, Box::new(asked.clone()));
        let origin = Origin::from_metadata(PID, &self.metadata(), self.names.clone());
        let first = Anchor { ticks: self.began, nanos: self.began };
        let converter = Converter::calibrate(first, origin.counter);
        let sink = Memory::new();
        let to = Box::new(sink.clone());
        let mut engine = Engine::new(Arc::new(shared), origin, to, None, first, converter);
        engine.begin();
        (engine, sink)
    }
}

fn open(sink: &Memory) -> Trace {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), sink.bytes()).unwrap();
    let trace = Trace::open(file.path());
    trace.assert_clean();
    trace
}

/// Slices as name, beginning and duration in milliseconds, depth, and what ended them.
fn slices(other: &Other, trace: &Trace) -> Vec<String> {
    let began = other.began;
    trace.strings(&format!(
        "SELECT name || ' ' || ((ts - {began}) / {MILLI}) || ' ' || iif(dur < 0, dur, dur / {MILLI})
                || ' ' || depth || coalesce(' ' || extract_arg(arg_set_id, 'debug.ended'), '')
         FROM slice ORDER BY ts, depth"
    ))
}

fn fact(trace: &Trace, key: &str) -> Vec<String> {
    let of = format!("trace_attribute.kymograph.{PID}.{key}");
    trace.strings(&format!(
        "SELECT coalesce(str_value, int_value || '') FROM metadata WHERE name = '{of}'"
    ))
}

#[test]
fn a_process_is_shown_as_it_is_and_not_as_the_one_that_encodes() {
    let (other, asked) = (Other::new(), Asked::default());
    let (mut engine, sink) = other.engine(Config::default(), &asked);
    let here = Producer::new();
    other.begins(&here, 10, "work");
    other.ends(&here, 30);
    engine.tick(Request::None);
    let tid = std::thread::scope(|scope| {
        let recorded = scope.spawn(|| {
            let there = Producer::new();
            let value =
                Record { arg: 42, tag: ArgType::I64 as u8, ..other.at(40, Kind::Counter, "level") };
            assert!(there.event(&other.pool, value, &[], &[]));
            assert!(there.event(&other.pool, other.at(50, Kind::Instant, "seen"), &[], &[]));
            this_thread()
        });
        recorded.join().unwrap()
    });
    engine.tick(Request::Flush(1));
    other.begins(&here, 60, "more work");
    other.ends(&here, 61);
    let summary = engine.end(Ending::Exited, None);
    assert_eq!((summary.events, summary.lost, summary.threads), (4, 0, 2));
    assert_eq!(*asked.0.lock().unwrap(), ["no more", "over"]);

    let trace = open(&sink);
    let processes = "SELECT pid || ' ' || name FROM process WHERE pid != 0";
    assert_eq!(trace.strings(processes), [format!("{PID} rank 3 · other")]);
    let me = this_thread();
    let threads = format!(
        "SELECT thread.name FROM thread JOIN process USING (upid)
         WHERE pid = {PID} AND tid = {me}"
    );
    assert_eq!(trace.strings(&threads), ["as the program said"]);
    let of = "SELECT slice.name || ' ' || category || ' ' || coalesce(extract_arg(slice.arg_set_id, 'debug.n'), '')
                     || ' ' || tid
              FROM slice JOIN thread_track ON track_id = thread_track.id
              JOIN thread USING (utid) ORDER BY ts";
    let expected = [
        format!("work of the other 10 {me}"),
        format!("seen of the other  {tid}"),
        format!("more work of the other 60 {me}"),
    ];
    assert_eq!(trace.strings(of), expected);
    assert_eq!(trace.one_i64("SELECT CAST(value AS INT) FROM counter"), 42);
    assert_eq!(fact(&trace, "rank"), ["3"]);
    assert_eq!(fact(&trace, "events"), ["4"]);
    assert!(fact(&trace, "ended").is_empty());
    assert_eq!(trace.one_i64("SELECT count(*) FROM metadata WHERE str_value = 'elsewhere'"), 1);
}

#[test]
fn what_a_killed_process_has_left_open_ends_with_it() {
    let (other, asked) = (Other::new(), Asked::default());
    let (mut engine, sink) = other.engine(Config::default(), &asked);
    let thread = Producer::new();
    other.begins(&thread, 10, "outer");
    let range = Record { other: 5, ..other.at(15, Kind::RangeBegin, "range") };
    assert!(thread.event(&other.pool, range, &[], &[]));
    other.begins(&thread, 20, "inner");
    other.begins(&thread, 30, "leaf");
    engine.tick(Request::Flush(1));
    other.ends(&thread, 40);
    other.begins(&thread, 50, "last");
    let at = other.began + 90 * MILLI;
    let summary = engine.end(Ending::Killed { signal: Some(libc::SIGTERM) }, Some(at));
    assert_eq!((summary.events, summary.lost), (5, 0));
    let trace = open(&sink);
    let expected = [
        "outer 10 80 0 killed by SIGTERM",
        "range 15 75 0 killed by SIGTERM",
        "inner 20 70 1 killed by SIGTERM",
        "leaf 30 10 2",
        "last 50 40 2 killed by SIGTERM",
        "killed by SIGTERM 90 0 0",
    ];
    assert_eq!(slices(&other, &trace), expected);
    assert_eq!(fact(&trace, "ended"), ["killed by SIGTERM"]);
    let told = "SELECT process.pid FROM slice JOIN process_track ON track_id = process_track.id
                JOIN process USING (upid) WHERE slice.name = 'killed by SIGTERM'";
    assert_eq!(trace.one_i64(told), i64::from(PID));
}

#[test]
fn what_a_flight_recorder_holds_of_a_killed_process_is_written() {
    let (other, asked) = (Other::new(), Asked::default());
    let config = Config { flight: Some(Duration::from_secs(60)), ..Config::default() };
    let (mut engine, sink) = other.engine(config, &asked);
    let thread = Producer::new();
    other.begins(&thread, 10, "outer");
    other.begins(&thread, 20, "inner");
    engine.tick(Request::Flush(1));
    assert!(sink.bytes().is_empty(), "it only keeps");
    other.ends(&thread, 25);
    let at = other.began + 30 * MILLI;
    let summary = engine.end(Ending::Killed { signal: None }, Some(at));
    assert_eq!((summary.events, summary.discarded, summary.lost), (2, 0, 0));
    let expected = ["outer 10 20 0 killed", "inner 20 5 1", "killed 30 0 0"];
    assert_eq!(slices(&other, &open(&sink)), expected);
}

/// A record of a track, which lies under the track `parent` (0: under the process).
fn describes(other: &Other, thread: &Producer, (id, parent): (u64, u64), name: &str) {
    let head = Record { other: id, arg: parent, ..other.at(5, Kind::Track, name) };
    assert!(thread.event(&other.pool, head, &[], &[]));
}

/// An instant on a track.
fn happens(other: &Other, thread: &Producer, millis: u64, track: u64, name: &str) {
    let on = Extra::new(StrId::NONE, ArgType::Track, track);
    assert!(thread.event(&other.pool, other.at(millis, Kind::Instant, name), &[on], &[]));
}

#[test]
fn tracks_are_stated_again_where_something_lies_on_them() {
    let (other, asked) = (Other::new(), Asked::default());
    let config = Config { flight: Some(Duration::from_secs(60)), ..Config::default() };
    let (mut engine, sink) = other.engine(config, &asked);
    let thread = Producer::new();
    for id in 1..=100 {
        describes(&other, &thread, (2 * id, 0), "outer row");
        describes(&other, &thread, (2 * id + 1, 2 * id), "inner row");
        happens(&other, &thread, 10, 2 * id + 1, "once");
    }
    engine.tick(Request::Flush(1));
    let before = std::mem::take(&mut engine.output.packets).len();
    let preamble = engine.restart();
    assert!(preamble.len() < before / 10, "{} of {before} bytes", preamble.len());

    happens(&other, &thread, 20, 7, "again");
    engine.tick(Request::Flush(2));
    engine.end(Ending::Killed { signal: None }, Some(other.began + 30 * MILLI));
    let rows = open(&sink).strings(
        "SELECT slice.name || ' in ' || track.name || ' in ' || above.name FROM slice
         JOIN track ON slice.track_id = track.id JOIN track above ON track.parent_id = above.id
         WHERE slice.name != 'killed'",
    );
    assert_eq!(rows, ["again in inner row in outer row"]);
}
