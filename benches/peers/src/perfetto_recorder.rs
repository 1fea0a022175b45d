//! perfetto-recorder: a vector per thread, turned into packets at the end.

use std::hint::black_box;

use perfetto_recorder::{ThreadTraceData, TraceBuilder, scope};

use crate::work::{Outcome, Output, Work};

pub fn run(work: &Work) -> Outcome {
    perfetto_recorder::start().expect("compiled in");
    let (nanos, threads) = work.on_threads(|batches| {
        batches.run(|scopes| {
            for n in 0..scopes {
                scope!("step", n = black_box(n));
            }
        });
        ThreadTraceData::take_current_thread()
    });
    let output = Output::new();
    let mut trace = TraceBuilder::new().expect("compiled in");
    for thread in &threads {
        trace.process_thread_data(thread);
    }
    trace.write_to_file(output.path()).expect("a file");
    Outcome { nanos, bytes: output.bytes(), arrived: output.slices() }
}
