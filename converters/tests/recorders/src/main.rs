//! `recorders FOLDER`: a small trace of every recorder, with everything that it can say:
//! nested scopes on two threads, arguments of all types, moments, counters, arrows, tracks of
//! their own.

use std::path::Path;

mod sdk;
mod session;

fn main() {
    let folder = std::env::args().nth(1).expect("FOLDER");
    let folder = Path::new(&folder);
    perfetto_recorder(&folder.join("perfetto_recorder.pftrace"));
    tracing_perfetto(&folder.join("tracing_perfetto.pftrace"));
    sdk::record(&folder.join("perfetto_sdk.pftrace"));
}

fn perfetto_recorder(path: &Path) {
    use perfetto_recorder::{CounterUnit, ThreadTraceData, TraceBuilder, scope};
    perfetto_recorder::start().expect("compiled in");
    let mut trace = TraceBuilder::new().expect("compiled in");
    let mut percent = trace.create_counter_track("CPU", CounterUnit::Custom("%".into()), 1, false);
    let mut memory = trace.create_counter_track("Memory", CounterUnit::SizeBytes, 1024, false);
    let work = || {
        scope!("outer", size = 7_u64, change = -3_i64, text = "a \"quoted\" text");
        for step in 0..3_u64 {
            scope!("inner", step);
            scope!("innermost");
        }
    };
    work();
    percent.record_f64(perfetto_recorder::time(), 12.5);
    memory.record_i64(perfetto_recorder::time(), 64);
    memory.record_i64(perfetto_recorder::time(), 32);
    let other = std::thread::Builder::new().name("other".into()).spawn(move || {
        work();
        ThreadTraceData::take_current_thread()
    });
    let other = other.expect("a thread").join().expect("no panic");
    trace.process_thread_data(&ThreadTraceData::take_current_thread());
    trace.process_thread_data(&other);
    trace.write_to_file(path).expect("a file");
}

fn tracing_perfetto(path: &Path) {
    use tracing::{info, info_span};
    use tracing_subscriber::prelude::*;
    let file = std::sync::Mutex::new(std::fs::File::create(path).expect("a file"));
    let layer = tracing_perfetto::PerfettoLayer::new(file).with_debug_annotations(true);
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        let outer = info_span!("outer", size = 7, share = 0.5, on = true, text = "a text");
        let _outer = outer.entered();
        info!(step = 1, "something happened");
        for step in 0..3 {
            let _inner = info_span!("inner", step).entered();
        }
    });
}
