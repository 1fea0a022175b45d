//! Corners of the Rust API: what a program may count on beyond the examples.

use harness::alone;
use std::path::Path;

use kymograph::{
    APP, Category, Config, Counter, Flow, Range, Recording, Scope, Track, instant, range, scope,
};
use oracle::Trace;

fn open(path: &Path) -> Trace {
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    trace
}

/// Records what `body` does.
fn record(config: Config, body: impl FnOnce()) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut config = config;
    config.output.clone_from(&path);
    let recording = Recording::start(config).unwrap();
    body();
    let summary = recording.stop();
    // Looked at before the next test has its turn and records.
    assert!(!APP.is_enabled(), "nothing is recorded now");
    assert_eq!((summary.lost, summary.unmatched_ends, summary.misnested), (0, 0, 0), "{summary:?}");
    open(&path)
}

#[test]
fn scopes_and_ranges_end_with_arguments() {
    alone!();
    let trace = record(Config::default(), || {
        let scope = scope!("query", table = "users");
        let rows = [1, 2, 3];
        scope.end_with([("rows", &rows.len()), ("how", &"fast".to_owned()), ("ok", &true)]);
        range!("request").end_with([("status", &404)]);
        // Nothing is open any more.
        instant!("after");
        let early = scope!("early");
        early.end();
        instant!("after");
        // These record nothing, and may be used like the others.
        Scope::none().end_with([("n", &1)]);
        Range::none().end_with([("n", &1)]);
    });
    assert_eq!(
        trace.table(
            "SELECT s.name, s.depth, a.flat_key AS key, a.display_value AS value FROM slice s \
             LEFT JOIN (SELECT * FROM args WHERE flat_key LIKE 'debug.%') a USING (arg_set_id) \
             ORDER BY s.ts, a.id"
        ),
        "name     depth  key           value\n\
         query    0      debug.table   users\n\
         query    0      debug.rows    3\n\
         query    0      debug.how     fast\n\
         query    0      debug.ok      true\n\
         request  0      debug.status  404\n\
         after    0      NULL          NULL\n\
         early    0      NULL          NULL\n\
         after    0      NULL          NULL\n"
    );
}

#[test]
fn a_category_is_what_has_its_name() {
    alone!();
    static HERE: Category = Category::new("twice");
    static THERE: Category = Category::new("twice");
    static LATE: Category = Category::new("twice");
    static COUNT: Counter = Counter::new("count").category(&THERE);
    let mut config = Config::default();
    config.set("CATEGORIES", "-twice").unwrap();
    let trace = record(config, || {
        instant!(HERE, "off");
        instant!(THERE, "off");
        HERE.set_enabled(true);
        assert!(HERE.is_enabled() && THERE.is_enabled() && LATE.is_enabled());
        instant!(THERE, "on");
        instant!(LATE, "on");
        COUNT.set(1);
        THERE.set_enabled(false);
        assert!(!HERE.is_enabled() && !LATE.is_enabled());
        COUNT.set(2);
    });
    assert_eq!(trace.strings("SELECT name FROM slice"), ["on", "on"]);
    assert_eq!(trace.one_i64("SELECT count(*) FROM counter"), 1);
}

#[test]
fn a_track_is_whole_in_every_recording() {
    alone!();
    let parent = Track::new("parent").rank(3);
    let child = Track::new("child").under(&parent);
    for _ in 0..3 {
        let trace = record(Config::default(), || drop(range!(track: &child, "r")));
        assert_eq!(
            trace.table(
                "SELECT t.name, p.name AS parent FROM slice s JOIN track t ON t.id = s.track_id \
                 JOIN track p ON p.id = t.parent_id"
            ),
            "name   parent\nchild  parent\n"
        );
    }
}

#[test]
fn more_arguments_than_fit_are_counted() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let recording = Recording::start(Config::to_file(&path)).unwrap();
    instant!("before");
    let v = 1;
    #[rustfmt::skip]
    instant!("many",
        a0=v,a1=v,a2=v,a3=v,a4=v,a5=v,a6=v,a7=v,a8=v,a9=v,b0=v,b1=v,b2=v,b3=v,b4=v,b5=v,b6=v,
        b7=v,b8=v,b9=v,c0=v,c1=v,c2=v,c3=v,c4=v,c5=v,c6=v,c7=v,c8=v,c9=v,d0=v,d1=v,d2=v,d3=v,
        d4=v);
    assert_eq!(recording.stop().truncated, 2);
    let args = "SELECT count(*) FROM slice s JOIN args a USING (arg_set_id) \
        WHERE s.name = 'many' AND a.flat_key LIKE 'debug.%'";
    assert_eq!(open(&path).one_i64(args), 33);
}

#[test]
fn names_made_at_run_time_and_every_type_of_value() {
    alone!();
    let trace = record(Config::default(), || {
        let place = 7u8;
        for n in 0..3 {
            let _scope = Scope::named(&APP, &format!("shard {n}"));
        }
        let job = Flow::new();
        instant!("from", to = job);
        instant!(
            "values",
            small = place,
            wide = usize::MAX,
            less = i8::MIN,
            half = 0.5f32,
            place = &raw const place,
            text = "a",
            owned = String::from("b"),
            by_ref = &&place,
            to = job.end(),
        );
    });
    assert_eq!(
        trace.strings("SELECT name FROM slice WHERE name GLOB 'shard*' ORDER BY ts"),
        ["shard 0", "shard 1", "shard 2"]
    );
    assert_eq!(trace.one_i64("SELECT count(*) FROM flow"), 1);
    assert_eq!(
        trace.table(
            "SELECT a.flat_key AS key, a.value_type AS type, CASE a.flat_key \
             WHEN 'debug.place' THEN '…' ELSE a.display_value END AS value \
             FROM slice s JOIN args a USING (arg_set_id) \
             WHERE s.name = 'values' AND a.flat_key LIKE 'debug.%' ORDER BY a.id"
        ),
        "key           type     value\n\
         debug.small   uint     7\n\
         debug.wide    uint     18446744073709551615\n\
         debug.less    int      -128\n\
         debug.half    real     0.5\n\
         debug.place   pointer  …\n\
         debug.text    string   a\n\
         debug.owned   string   b\n\
         debug.by_ref  uint     7\n"
    );
}
