//! The work that everybody does.

use std::time::{Duration, Instant};

use kymograph_protos::perfetto::Trace;
use kymograph_protos::perfetto::trace_packet::Data;
use kymograph_protos::perfetto::track_event::Type;
use prost::Message;

use crate::cores;
use crate::turns::{Meeting, best, median};

const BATCHES: usize = 60;
const WARM: usize = 5;
const SCOPES: u64 = 10_000;
/// After each batch, for those whose writer needs longer than the thread that records.
const PAUSE: Duration = Duration::from_millis(20);

/// How much there is to do.
pub struct Work {
    threads: usize,
}

/// What came of it.
pub struct Outcome {
    /// Nanoseconds per scope, by batch.
    pub nanos: Vec<f64>,
    /// The file's length, if there is one.
    pub bytes: Option<u64>,
    /// How many scopes arrived, where that can be counted.
    pub arrived: Option<u64>,
}

impl Outcome {
    pub fn print(self) {
        let threads = std::env::args().next_back().and_then(|n| n.parse().ok()).unwrap_or(1);
        let scopes = Work::new(threads).scopes() as f64;
        let bytes = self.bytes.map_or("–".to_owned(), |n| format!("{:.1}", n as f64 / scopes));
        let lost = self.arrived.map_or("–".to_owned(), |n| (scopes - n as f64).to_string());
        println!("result {:.1} {:.1} {bytes} {lost}", best(&self.nanos), median(&self.nanos));
    }
}

impl Work {
    pub fn new(threads: usize) -> Work {
        Work { threads }
    }

    /// Scopes in all.
    pub fn scopes(&self) -> u64 {
        self.threads as u64 * (WARM + BATCHES) as u64 * SCOPES
    }

    /// Runs `each` on every thread, on a core of its own. Returns what the batches took and
    /// what `each` returned.
    pub fn on_threads<R: Send>(
        &self,
        each: impl Fn(&mut Batches<'_>) -> R + Sync,
    ) -> (Vec<f64>, Vec<R>) {
        let meeting = Meeting::of(self.threads);
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|index| {
                    let (each, meeting) = (&each, &meeting);
                    scope.spawn(move || {
                        cores::pin(&[cores::two()[index % 2]]);
                        let mut batches = Batches { meeting, nanos: Vec::new() };
                        let result = each(&mut batches);
                        (batches.nanos, result)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let (nanos, results): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        (nanos.concat(), results)
    }
}

/// The batches of one thread.
pub struct Batches<'a> {
    meeting: &'a Meeting,
    nanos: Vec<f64>,
}

impl Batches<'_> {
    /// Runs `batch`, which is told how many scopes to record, again and again.
    pub fn run(&mut self, mut batch: impl FnMut(u64)) {
        for round in 0..WARM + BATCHES {
            self.meeting.wait();
            let start = Instant::now();
            batch(SCOPES);
            let nanos = start.elapsed().as_nanos() as f64 / SCOPES as f64;
            if round >= WARM {
                self.nanos.push(nanos);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A file to write to, in a folder that goes when this is dropped.
pub struct Output(tempfile::TempDir);

impl Output {
    pub fn new() -> Output {
        Output(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.0.path().join("trace")
    }

    pub fn bytes(&self) -> Option<u64> {
        std::fs::metadata(self.path()).ok().map(|file| file.len())
    }

    /// How many slices begin in it, if it is a Perfetto trace.
    pub fn slices(&self) -> Option<u64> {
        let bytes = std::fs::read(self.path()).ok()?;
        let trace = Trace::decode(bytes.as_slice()).ok()?;
        let begins = trace.packet.iter().filter(|packet| match &packet.data {
            Some(Data::TrackEvent(event)) => event.r#type() == Type::SliceBegin,
            _ => false,
        });
        Some(begins.count() as u64)
    }
}
