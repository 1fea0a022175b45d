//! What it costs to decode the records of vendors, and how large they get. See
//! `docs/BENCHMARKS.md`.
//!
//! `cargo bench --bench decode`

mod measure;

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kymograph::{Config, Recording};
use kymograph_backends::{amd, gaudi, intel, nvidia};
use kymograph_protos::{ColdRecorder, Extra, Record, Recorder, StrId};
use measure::cores;
use measure::turns::{best, median};

/// Records in a buffer.
const BUFFER: usize = 10_000;
const ROUNDS: usize = 300;
/// When the first record's work began, by a clock that starts with the machine.
const START: u64 = 1_000_000_000;
const TARGET_PER_SECOND: f64 = 5e6;
const TARGET_BYTES: f64 = 110.0;

/// A recorder that keeps nothing: what is measured is the decoder.
struct Nowhere(AtomicU64);

impl Recorder for Nowhere {
    fn now(&self) -> u64 {
        0
    }

    fn intern(&self, _category: StrId, text: &[u8]) -> StrId {
        StrId(1 + text.len() as u32)
    }

    fn push_named(&self, head: Record, extras: &[Extra], _name: &[u8]) -> bool {
        black_box((head, extras));
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn enabled(&self, _category: StrId) -> bool {
        true
    }
}

impl ColdRecorder for Nowhere {}

/// A buffer of some vendor's records, made anew for every round.
trait Replay {
    fn renew(&mut self);
    /// Decodes it; returns how many records there are.
    fn decode(&mut self) -> usize;
}

macro_rules! replays {
    ($($vendor:ident)*) => {
        $(impl Replay for $vendor::replay::Replay {
            fn renew(&mut self) {
                self.renew();
            }

            fn decode(&mut self) -> usize {
                self.decode()
            }
        })*
    };
}

replays! { amd gaudi intel nvidia }

/// Makes a buffer of so many records that begin at a time.
type Make = fn(&'static dyn ColdRecorder, usize, u64) -> Box<dyn Replay>;

const VENDORS: [(&str, Make); 4] = [
    ("CUDA", |recorder, count, now| Box::new(nvidia::replay::Replay::new(recorder, count, now))),
    ("HIP", |recorder, count, now| Box::new(amd::replay::Replay::new(recorder, count, now))),
    ("Intel GPU", |recorder, count, _| {
        // PTI's clock is the system's; what is read is over.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() - 3_600;
        Box::new(intel::replay::Replay::new(recorder, count, now * 1_000_000_000))
    }),
    ("Gaudi", |recorder, count, now| Box::new(gaudi::replay::Replay::new(recorder, count, now))),
];

/// A sink that counts.
struct Count(Arc<AtomicU64>);

impl kymograph::sink::Sink for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() {
    static NOWHERE: Nowhere = Nowhere(AtomicU64::new(0));
    cores::pin(&[cores::two()[0]]);
    println!("\n### From vendors' records to ours\n");
    println!("| vendor | what | best ns | median ns | M/s | bytes | target | |");
    println!("|---|---|--:|--:|--:|--:|---|---|");
    for (vendor, make) in VENDORS {
        let alone = decode(make(&NOWHERE, BUFFER, START), |replay| replay.decode());
        let (queued, bytes) = recorded(make);
        row(vendor, "decoded", &alone, None);
        row(vendor, "decoded and queued", &queued, Some(bytes));
    }
}

fn row(vendor: &str, what: &str, nanos: &[f64], bytes: Option<f64>) {
    let per_second = 1e9 / median(nanos);
    let size = bytes.map_or(String::new(), |bytes| format!("{bytes:.1}"));
    let target = format!("≥ {} M/s, ≤ {TARGET_BYTES} bytes", TARGET_PER_SECOND / 1e6);
    let met = per_second >= TARGET_PER_SECOND && bytes.is_none_or(|b| b <= TARGET_BYTES);
    println!(
        "| {vendor} | {what} | {:.1} | {:.1} | {:.1} | {size} | {target} | {} |",
        best(nanos),
        median(nanos),
        per_second / 1e6,
        if met { "met" } else { "**missed**" }
    );
}

/// Nanoseconds per record, for every buffer.
fn decode(mut replay: Box<dyn Replay>, mut run: impl FnMut(&mut dyn Replay) -> usize) -> Vec<f64> {
    let once = |_| {
        replay.renew();
        let start = Instant::now();
        let count = run(&mut *replay);
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(once).collect()
}

/// The same into a recording, and the bytes of an activity in its trace.
fn recorded(make: Make) -> (Vec<f64>, f64) {
    let written = Arc::new(AtomicU64::new(0));
    let mut config = Config::default();
    config.set("BUFFER", "256M").expect("an option");
    let recording = Recording::start_with(config, Count(written.clone())).expect("a recording");
    let replay = make(kymograph::recorder(), BUFFER, START);
    let nanos = decode(replay, |replay| {
        let count = replay.decode();
        // The writer is not to fall behind: that is another benchmark.
        if recording.stats().queued_bytes > 64 << 20 {
            recording.flush(Duration::from_secs(60));
        }
        count
    });
    let summary = recording.stop();
    assert_eq!(summary.lost, 0, "a lost record costs less");
    (nanos, written.load(Ordering::Relaxed) as f64 / (ROUNDS * BUFFER) as f64)
}
