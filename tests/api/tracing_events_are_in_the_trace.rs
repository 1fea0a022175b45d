//! Spans, events, fields and causes of `tracing` are in the trace as they happened.

use harness::alone;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kymograph::layer::{Layer, Style};
use kymograph::{Config, Recording, Summary};
use oracle::Trace;
use tracing::{Dispatch, Span, dispatcher, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// Records what `body` does under a subscriber with `layer`.
fn record(config: &str, layer: Layer, body: impl FnOnce(&Dispatch)) -> (Trace, Summary) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let (mut config, problems) = Config::parse_text(config);
    assert_eq!(problems, []);
    config.output.clone_from(&path);
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    let recording = Recording::start(config).unwrap();
    dispatcher::with_default(&dispatch, || body(&dispatch));
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.unmatched_ends, summary.misnested), (0, 0, 0), "{summary:?}");
    let trace = Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IS NULL"), 0);
    (trace, summary)
}

fn a_moment() {
    thread::sleep(Duration::from_millis(2));
}

const SLICES: &str = "SELECT s.name, s.depth, coalesce(p.name, '') AS inside \
    FROM slice s LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.ts";
const ARROWS: &str = "SELECT o.name AS source, i.name AS target FROM flow f \
    JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in ORDER BY i.ts, o.ts";

fn args(trace: &Trace, name: &str) -> String {
    trace.table(&format!(
        "SELECT a.flat_key AS key, a.display_value AS value, a.value_type AS type \
         FROM slice s JOIN args a USING (arg_set_id) \
         WHERE s.name = '{name}' AND a.flat_key LIKE 'debug.%' ORDER BY a.id"
    ))
}

#[test]
fn spans_are_slices_and_fields_are_typed() {
    alone!();
    let (trace, summary) = record("", Layer::new(), |_| {
        let outer = info_span!(
            "outer",
            yes = true,
            n = -3i64,
            big = u64::MAX,
            half = 0.5,
            path = "a/b",
            list = ?[1, 2],
            later = tracing::field::Empty
        );
        let entered = outer.enter();
        info_span!("inner").in_scope(|| info!(target: "net", bytes = 512u64, "got {}", "it"));
        outer.record("later", "known at last");
        drop(entered);
    });
    assert_eq!(summary.events, 3);
    assert_eq!(
        trace.table(SLICES),
        "name    depth  inside\nouter   0\ninner   1      outer\ngot it  2      inner\n"
    );
    assert_eq!(
        args(&trace, "outer"),
        "key          value                 type\n\
         debug.yes    true                  bool\n\
         debug.n      -3                    int\n\
         debug.big    18446744073709551615  uint\n\
         debug.half   0.5                   real\n\
         debug.path   a/b                   string\n\
         debug.list   [1, 2]                string\n\
         debug.later  known at last         string\n"
    );
    assert_eq!(args(&trace, "got it"), "key          value  type\ndebug.bytes  512    uint\n");
    assert_eq!(
        trace.strings("SELECT DISTINCT category FROM slice ORDER BY 1"),
        [module_path!(), "net"]
    );
    assert_eq!(trace.one_i64("SELECT count(*) FROM flow"), 0);
}

#[test]
fn a_span_that_migrates_is_a_chain_of_slices() {
    alone!();
    let (trace, _) = record("", Layer::new(), |dispatch| {
        let task = info_span!("task", id = 7u64);
        for name in ["one", "two", "three"] {
            let (task, dispatch) = (task.clone(), dispatch.clone());
            thread::Builder::new()
                .name(name.into())
                .spawn(move || {
                    dispatcher::with_default(&dispatch, || {
                        task.in_scope(|| {
                            info_span!("poll").in_scope(a_moment);
                            // To trace_processor, the last value is the value.
                            task.record("id", 8u64);
                        });
                    });
                })
                .unwrap()
                .join()
                .unwrap();
        }
    });
    assert_eq!(
        trace.table(
            "SELECT s.name, t.name AS thread, extract_arg(s.arg_set_id, 'debug.id') AS id \
             FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) \
             ORDER BY s.ts"
        ),
        "name  thread  id\n\
         task  one     8\n\
         poll  one     NULL\n\
         task  two     8\n\
         poll  two     NULL\n\
         task  three   8\n\
         poll  three   NULL\n"
    );
    assert_eq!(trace.table(ARROWS), "source  target\ntask    task\ntask    task\n");
}

#[test]
fn a_span_may_be_on_several_threads_at_once() {
    alone!();
    let (trace, summary) = record("", Layer::new(), |dispatch| {
        let shared = info_span!("shared");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    dispatcher::with_default(dispatch, || {
                        for _ in 0..100 {
                            shared.in_scope(|| info!("here"));
                        }
                    });
                });
            }
        });
    });
    assert_eq!(summary.events, 800);
    assert_eq!(
        trace.one_i64(
            "SELECT count(*) FROM slice s JOIN slice p ON p.id = s.parent_id \
             WHERE s.name = 'here' AND p.name = 'shared'"
        ),
        400
    );
}

#[test]
fn exits_in_another_order_cut_slices_where_they_must() {
    alone!();
    // While b and c begin, are cut and end, b may be there without c.
    let mut apart = Duration::ZERO;
    let (trace, _) = record("", Layer::new(), |_| {
        let (a, b, c) = (info_span!("a"), info_span!("b"), info_span!("c"));
        let a = a.entered();
        let beginning = Instant::now();
        let (b, c) = (b.entered(), c.entered());
        apart += beginning.elapsed();
        a_moment();
        let cutting = Instant::now();
        drop(a);
        apart += cutting.elapsed();
        a_moment();
        let ending = Instant::now();
        drop(c);
        drop(b);
        apart += ending.elapsed();
    });
    assert_eq!(
        trace.table(SLICES),
        "name  depth  inside\n\
         a     0\n\
         b     1      a\n\
         c     2      b\n\
         b     0\n\
         c     1      b\n"
    );
    // Each spent its time somewhere, to some microseconds by which clocks may differ.
    let sum = |name| {
        trace.one_i64(&format!("SELECT cast(sum(dur) AS int) FROM slice WHERE name = '{name}'"))
    };
    assert!(sum("a") >= 2_000_000 && sum("b") >= 4_000_000);
    let most = apart.as_nanos() as i64 + 10_000;
    assert!((0..=most).contains(&(sum("b") - sum("c"))), "{apart:?}");
}

#[test]
fn causes_have_arrows_to_what_follows_from_them() {
    alone!();
    let (trace, _) = record("", Layer::new(), |dispatch| {
        let cause = info_span!("cause");
        cause.in_scope(a_moment);
        let follower = info_span!("follower");
        follower.follows_from(&cause);
        let dispatch = dispatch.clone();
        thread::spawn(move || {
            dispatcher::with_default(&dispatch, || follower.in_scope(a_moment));
        })
        .join()
        .unwrap();
        // Entered again: no arrow leads back from the follower.
        cause.in_scope(a_moment);
        // Never entered, or itself: nothing that an arrow could start from.
        let lone = info_span!("lone");
        lone.follows_from(info_span!("never").id());
        lone.follows_from(lone.id());
        lone.in_scope(a_moment);
        // Already running: the arrow is found at its end.
        let late = info_span!("late").entered();
        Span::current().follows_from(&cause);
        drop(late);
    });
    assert_eq!(trace.table(ARROWS), "source  target\ncause   follower\ncause   late\n");
}

#[test]
fn ranges_last_from_creation_to_close_and_rows_are_the_tree_of_spans() {
    alone!();
    let (trace, summary) = record("", Layer::new().style(Style::Ranges), |dispatch| {
        let requests: Vec<Span> = (0..3u64).map(|id| info_span!("request", id)).collect();
        let (send, receive) = mpsc::channel::<Span>();
        let dispatch = dispatch.clone();
        let closer = thread::spawn(move || {
            dispatcher::with_default(&dispatch, || {
                for span in receive {
                    span.in_scope(a_moment);
                    span.record("id", 99u64);
                    drop(span);
                }
            });
        });
        let mut last: Option<Span> = None;
        for request in &requests {
            let query = info_span!(parent: request, "query", rows = tracing::field::Empty);
            query.record("rows", 3u64);
            if let Some(last) = &last {
                query.follows_from(last);
            }
            last = Some(query);
        }
        drop(last);
        requests.into_iter().for_each(|request| send.send(request).unwrap());
        drop(send);
        closer.join().unwrap();
    });
    assert_eq!(summary.events, 6);
    assert_eq!(
        trace.table(
            "SELECT s.name, count(*) AS n, t.name AS row, coalesce(p.name, '') AS below, \
                    min(s.depth) || '-' || max(s.depth) AS depth \
             FROM slice s JOIN track t ON t.id = s.track_id \
             LEFT JOIN track p ON p.id = t.parent_id GROUP BY 1, 3, 4 ORDER BY 1"
        ),
        "name     n  row      below    depth\n\
         query    3  query    request  0-0\n\
         request  3  request           0-0\n"
    );
    assert_eq!(
        trace.table(
            "SELECT name, extract_arg(arg_set_id, 'debug.rows') AS rows, \
                    extract_arg(arg_set_id, 'debug.id') AS id FROM slice ORDER BY name, ts"
        ),
        "name     rows  id\n\
         query    3     NULL\n\
         query    3     NULL\n\
         query    3     NULL\n\
         request  NULL  99\n\
         request  NULL  99\n\
         request  NULL  99\n"
    );
    assert_eq!(trace.table(ARROWS), "source  target\nquery   query\nquery   query\n");
}

#[test]
fn targets_are_categories() {
    alone!();
    let (trace, summary) = record("CATEGORIES=app*,-app.noisy", Layer::new(), |_| {
        let kept = info_span!(target: "app.core", "kept").entered();
        let noisy = info_span!(target: "app.noisy", "noisy").entered();
        info!(target: "other", "other");
        info!(target: "app", "heard");
        drop(noisy);
        drop(kept);
    });
    assert_eq!(summary.events, 2);
    assert_eq!(trace.table(SLICES), "name   depth  inside\nkept   0\nheard  1      kept\n");
}

#[test]
fn without_a_recording_spans_need_not_exist() {
    alone!();
    let subscriber = tracing_subscriber::registry().with(Layer::new().alone());
    tracing::subscriber::with_default(subscriber, || {
        let make = || info_span!("span");
        assert!(make().is_disabled());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.pftrace");
        let recording = Recording::start(Config::to_file(&path)).unwrap();
        let span = make();
        assert!(!span.is_disabled());
        span.in_scope(|| {});
        assert_eq!(recording.stop().events, 1);
        span.in_scope(|| {});
        assert!(make().is_disabled());
    });
}
