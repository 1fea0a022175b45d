//! Ranges: things that last while many of them are under way, begun on one thread and
//! ended on another.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kymograph::{Category, Config, Range, Recording, Track, range};

static NET: Category = Category::new("net");

fn main() -> Result<(), kymograph::Error> {
    let path = std::env::args().nth(1).unwrap_or("async_ranges.pftrace".into());
    let _recording = Recording::start(Config::to_file(path))?;
    let requests = Track::new("requests");
    let (send, answered) = mpsc::channel::<(u64, Range)>();

    for id in 0..8u64 {
        // The range goes where the request goes, and ends where it is dropped.
        let range = range!(track: &requests, NET, "GET", id = id);
        let _ = send.send((id, range));
    }
    drop(send);
    // Answers begin when all have asked: so all of the ranges overlap.
    let answerer = thread::spawn(move || {
        for (id, range) in answered {
            thread::sleep(Duration::from_millis(1));
            range.end_with([("status", &200), ("cached", &(id % 2 == 0))]);
        }
    });
    let _ = answerer.join();
    Ok(())
}
