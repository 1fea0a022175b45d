//! Named threads, and arrows that show which of them works on what another asked for.

use std::sync::mpsc;
use std::thread;

use kymograph::{Config, Flow, Recording, instant, scope, set_thread_name};

/// A job takes its arrow along.
struct Job {
    number: u64,
    flow: Flow,
}

fn work(jobs: mpsc::Receiver<Job>) -> u64 {
    set_thread_name("worker");
    let mut sum = 0;
    for job in jobs {
        // The arrow ends here; `flow = job.flow` would let it go on to the next event.
        let scope = scope!("run", number = job.number, flow = job.flow.end());
        let primes = (2..5000).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d > 0));
        let found = primes.count() as u64;
        sum += found;
        // What is only known at the end is an argument of the end.
        scope.end_with([("primes", &found)]);
    }
    instant!("no more jobs", sum = sum);
    sum
}

fn main() -> Result<(), kymograph::Error> {
    let path = std::env::args().nth(1).unwrap_or("threads_and_flows.pftrace".into());
    let recording = Recording::start(Config::to_file(path))?;
    let (sender, jobs) = mpsc::channel();
    let worker = thread::spawn(|| work(jobs));
    for number in 0..10 {
        let job = Job { number, flow: Flow::new() };
        let _scope = scope!("submit", number = number, flow = job.flow);
        let _ = sender.send(job);
    }
    drop(sender);
    let _ = worker.join();
    let summary = recording.stop();
    println!("{} events, {} lost", summary.events, summary.lost);
    Ok(())
}
