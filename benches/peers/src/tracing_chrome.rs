//! tracing-chrome: a layer of `tracing-subscriber` that sends what it sees to a thread,
//! which writes JSON.

use std::hint::black_box;

use tracing_chrome::ChromeLayerBuilder;
use tracing_subscriber::prelude::*;

use crate::work::{Outcome, Output, Work};

pub fn run(work: &Work) -> Outcome {
    let output = Output::new();
    let (layer, flush) = ChromeLayerBuilder::new().file(output.path()).include_args(true).build();
    tracing_subscriber::registry().with(layer).init();
    let (nanos, _) = work.on_threads(|batches| {
        batches.run(|scopes| {
            for n in 0..scopes {
                let _span = tracing::info_span!("step", n = black_box(n)).entered();
            }
        });
    });
    drop(flush);
    let begins = |line: &&str| line.contains(r#""ph":"B""#);
    let lines = std::fs::read_to_string(output.path()).unwrap_or_default();
    let arrived = Some(lines.lines().filter(begins).count() as u64);
    Outcome { nanos, bytes: output.bytes(), arrived }
}
