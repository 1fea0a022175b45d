//! micromegas-tracing: blocks of records in memory, handed to a sink that keeps nothing.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use micromegas_tracing::event::NullEventSink;
use micromegas_tracing::guards::{TracingSystemGuard, TracingThreadGuard};
use micromegas_tracing::span_scope;

use crate::work::{Outcome, Work};

const BUFFER: usize = 10 << 20;

/// Its fast path, which takes no arguments.
pub fn plain(work: &Work) -> Outcome {
    through(work, |scopes| {
        for n in 0..scopes {
            span_scope!("step");
            black_box(n);
        }
    })
}

/// Arguments become text.
pub fn with_arg(work: &Work) -> Outcome {
    through(work, |scopes| {
        for n in 0..scopes {
            let mut span = span_scope!(name = "step", kind = "bench");
            span.set_property("n", black_box(n));
        }
    })
}

fn through(work: &Work, batch: fn(u64)) -> Outcome {
    let sink = Arc::new(NullEventSink {});
    let _system = TracingSystemGuard::new(BUFFER, BUFFER, BUFFER, sink, HashMap::new(), true)
        .expect("the first one");
    let (nanos, _) = work.on_threads(|batches| {
        let _thread = TracingThreadGuard::new();
        batches.run(batch);
    });
    Outcome { nanos, bytes: None, arrived: None }
}
