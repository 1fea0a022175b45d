//! A program that speaks `tracing`, recorded:
//! `cargo run --features tracing --example tracing_layer`.

use std::thread;

use kymograph::layer::{Layer, Style};
use kymograph::{Config, Recording};
use tracing::{Span, info, info_span, instrument};
use tracing_subscriber::layer::SubscriberExt;

#[instrument]
fn parse(text: &str) -> usize {
    info!(bytes = text.len(), "parsed");
    text.split(' ').count()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("tracing_layer.pftrace".into());
    // `ranges` as a second argument: spans as long as they live, instead of where they ran.
    let ranges = std::env::args().nth(2).is_some_and(|style| style == "ranges");
    let style = if ranges { Style::Ranges } else { Style::Threads };
    let subscriber = tracing_subscriber::registry().with(Layer::new().style(style));
    tracing::subscriber::set_global_default(subscriber)?;

    let _recording = Recording::start(Config::to_file(path))?;
    let request = info_span!("request", id = 7, words = tracing::field::Empty);
    let words = request.in_scope(|| parse("to be or not to be"));
    request.record("words", words);

    // It goes on elsewhere: an arrow leads there.
    let reply = info_span!(parent: &request, "reply");
    reply.follows_from(&request);
    let replying: thread::JoinHandle<Span> = thread::spawn(move || {
        request.in_scope(|| reply.in_scope(|| info!("sent")));
        request
    });
    drop(replying.join());
    Ok(())
}
