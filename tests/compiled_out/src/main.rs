//! Uses all of the instrumentation, and writes a trace to the path that is given.

use kymograph::{
    APP, Category, Config, Counter, Recording, Scope, Track, instant, range, scope,
    set_process_name, set_thread_name,
};
use tracing_subscriber::layer::SubscriberExt;

static IO: Category = Category::new("io");
static COUNT: Counter = Counter::new("count");

fn evaluated() -> u64 {
    panic!("arguments are not even evaluated")
}

fn main() {
    let path = std::env::args_os().nth(1).expect("the path of the trace");
    let recording = Recording::start(Config::to_file(path)).unwrap();
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
    let subscriber = tracing_subscriber::registry().with(kymograph::layer::Layer::new());
    tracing::subscriber::with_default(subscriber, || {
        tracing::info_span!("span").in_scope(|| tracing::info!("event"));
    });
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost, summary.threads), (0, 0, 0), "{summary:?}");
}
