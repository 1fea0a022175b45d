//! With the feature `off`, instrumentation stays in the source and leaves the program.

/// Runs the other half of this file, compiled with `off`, in a folder of its own: the
/// library of the other tests must stay what it is.
#[cfg(not(feature = "off"))]
#[test]
fn with_the_feature_off() {
    use std::process::Command;

    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap().join("off");
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["test", "--quiet", "--no-default-features", "--features", "off,tracing"])
        .args(["--test", "compiled_out_nothing_is_recorded", "--target-dir"])
        .arg(target)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[cfg(feature = "off")]
#[test]
fn nothing_is_recorded() {
    use kymograph::{
        APP, Category, Config, Counter, Recording, Scope, Track, instant, range, scope,
        set_process_name, set_thread_name,
    };
    static IO: Category = Category::new("io");
    static COUNT: Counter = Counter::new("count");

    fn evaluated() -> u64 {
        panic!("arguments are not even evaluated")
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let recording = Recording::start(Config::to_file(&path)).unwrap();
    IO.set_enabled(true);
    assert!(!IO.is_enabled());
    set_thread_name("a name");
    set_process_name("a name");
    let track = Track::new("row");
    for _ in 0..100 {
        let scope = scope!("scope", n = evaluated());
        let _named = Scope::named(&APP, "named");
        let _range = range!(track: &track, IO, "range", n = evaluated());
        instant!(IO, "instant", n = evaluated());
        COUNT.set(3);
        scope.end_with([("n", &1)]);
    }
    #[cfg(feature = "tracing")]
    {
        use tracing_subscriber::layer::SubscriberExt;
        let subscriber = tracing_subscriber::registry().with(kymograph::layer::Layer::new());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!("span").in_scope(|| tracing::info!("event"));
        });
    }
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost, summary.threads), (0, 0, 0), "{summary:?}");
    // The recording itself works: the trace says who was recorded, and that it did nothing.
    let trace = oracle::Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice"), 0);
    assert_eq!(trace.one_i64("SELECT count(*) FROM counter"), 0);
}
