//! Kymograph itself.

use std::hint::black_box;

use kymograph::{Config, Recording, scope};

use crate::work::{Outcome, Output, Work};

pub fn run(work: &Work) -> Outcome {
    let output = Output::new();
    let mut config = Config::default();
    config.output = output.path();
    let recording = Recording::start(config).expect("a file, and no other recording");
    let (nanos, _) = work.on_threads(|batches| {
        batches.run(|scopes| {
            for n in 0..scopes {
                let _scope = scope!("step", n = black_box(n));
            }
        });
    });
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost), (work.scopes(), 0));
    Outcome { nanos, bytes: output.bytes(), arrived: output.slices() }
}
