//! fastrace: spans below a root, handed to a collector. Above 10,240 spans below one root
//! it drops without a word, so there is a root for every thousand.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use fastrace::{Span, set_reporter};

use crate::work::{Outcome, Work};

static ARRIVED: AtomicU64 = AtomicU64::new(0);

struct Null;

impl Reporter for Null {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        ARRIVED.fetch_add(spans.len() as u64, Ordering::Relaxed);
        black_box(spans);
    }
}

pub fn run(work: &Work) -> Outcome {
    set_reporter(Null, Config::default());
    let (nanos, _) = work.on_threads(|batches| {
        batches.run(|scopes| {
            for _ in 0..scopes / 1000 {
                let root = Span::root("root", SpanContext::random());
                let _parent = root.set_local_parent();
                for n in 0..1000u64 {
                    let _span = LocalSpan::enter_with_local_parent("step")
                        .with_property(|| ("n", black_box(n).to_string()));
                }
            }
        });
    });
    fastrace::flush();
    let roots = work.scopes() / 1000;
    let arrived = Some(ARRIVED.load(Ordering::Relaxed).saturating_sub(roots));
    Outcome { nanos, bytes: None, arrived }
}
