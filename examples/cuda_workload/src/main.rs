//! Launches an exactly known amount of CUDA work and prints what it was, as JSON on one
//! line: the truth that a trace of it is compared with.
//!
//! usage: `cuda_workload [LAUNCHES] [--threads N] [--no-graph] [--no-exit-sync]`
//!
//! LAUNCHES kernels (1000), one third of each kind, go round four streams; every tenth is
//! followed by a copy to the device, one from it and one within it, and by a set; every
//! hundredth by an event that the next stream waits for. Then a graph is captured, of eight
//! kernels, a copy and a set, and launched, a hundredth as often. With `--threads` each of N threads does all
//! that on streams of its own. With `--no-exit-sync` the program ends without waiting for
//! the last work, as careless programs do.
//!
//! Ten long kernels at the end lie between two timing events each, whose distance is
//! printed: the durations in a trace must be a little less.

mod device;

use std::collections::BTreeMap;
use std::sync::Arc;

use device::{Device, Kernel, Lane, Tried};

/// How often something was done, by name.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }

    fn json(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(name, n)| format!("\"{name}\": {n}")).collect();
        format!("{{{}}}", pairs.join(", "))
    }
}

struct Arguments {
    launches: u64,
    threads: u64,
    graph: bool,
    exit_sync: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments { launches: 1000, threads: 1, graph: true, exit_sync: true };
    let mut words = std::env::args().skip(1);
    let number = |word: &str| word.parse().map_err(|_| format!("{word}: not a number"));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--threads" => found.threads = number(&words.next().unwrap_or_default())?,
            "--no-graph" => found.graph = false,
            "--no-exit-sync" => found.exit_sync = false,
            _ => found.launches = number(&word)?,
        }
    }
    Ok(found)
}

const STREAMS: u64 = 4;

/// The work of one thread.
fn work(device: &Device, arguments: &Arguments, counts: &mut Counts) -> Tried<()> {
    let mut lanes = Vec::new();
    for _ in 0..STREAMS {
        lanes.push(device.lane()?);
    }
    for i in 0..arguments.launches {
        let lane = &lanes[(i % STREAMS) as usize];
        let kernel = Kernel::ALL[(i % 3) as usize];
        lane.launch(kernel)?;
        counts.add(kernel.name(), 1);
        if i % 10 == 9 {
            transfers(lane, counts)?;
        }
        if i % 100 == 99 {
            let event = lane.record()?;
            lanes[((i + 1) % STREAMS) as usize].wait(&event)?;
            counts.add("event records", 1);
            counts.add("event waits", 1);
        }
    }
    if arguments.graph && arguments.launches > 0 {
        let graph = device.capture()?;
        let times = arguments.launches.div_ceil(100);
        for _ in 0..times {
            graph.launch()?;
        }
        counts.add("graph launches", times);
        counts.add("graph kernels", times * device::GRAPH_KERNELS);
        counts.add("graph copies", times);
        counts.add("graph sets", times);
    }
    for lane in &lanes {
        lane.synchronize()?;
        counts.add("stream waits", 1);
    }
    Ok(())
}

fn transfers(lane: &Lane, counts: &mut Counts) -> Tried<()> {
    lane.copy_to_device()?;
    lane.copy_from_device()?;
    lane.copy_within_device()?;
    lane.set()?;
    for name in ["htod", "dtoh", "dtod", "set"] {
        counts.add(name, 1);
    }
    Ok(())
}

/// Kernels of about a millisecond, and the time that their events say.
fn timed(device: &Device, counts: &mut Counts) -> Tried<Vec<f32>> {
    let lane = device.lane()?;
    let mut times = Vec::new();
    for _ in 0..10 {
        times.push(lane.time(Kernel::Spin)?);
        counts.add("spin", 1);
        counts.add("event records", 2);
        counts.add("event synchronizations", 2);
    }
    Ok(times)
}

fn run(arguments: &Arguments) -> Tried<String> {
    let device = Arc::new(Device::new()?);
    let threads: Vec<_> = (0..arguments.threads)
        .map(|_| {
            let device = Arc::clone(&device);
            let arguments = Arguments { ..*arguments };
            std::thread::spawn(move || {
                let mut counts = Counts::default();
                work(&device, &arguments, &mut counts).map(|()| counts)
            })
        })
        .collect();
    let mut total = Counts::default();
    for thread in threads {
        let counts = thread.join().expect("a thread of the workload")?;
        counts.0.into_iter().for_each(|(name, count)| total.add(name, count));
    }
    let times = timed(&device, &mut total)?;
    if arguments.exit_sync {
        device.synchronize()?;
        total.add("context waits", 1);
    } else {
        device.lane()?.launch(Kernel::Spin)?;
        total.add("spin", 1);
    }
    let bytes = device::BYTES;
    let (counts, device) = (total.json(), device.name()?);
    Ok(format!(
        "{{\"device\": \"{device}\", \"bytes\": {bytes}, \"counts\": {counts}, \"spin ms\": {times:?}}}"
    ))
}

fn main() {
    let done = arguments().and_then(|arguments| run(&arguments).map_err(|error| error.to_string()));
    match done {
        Ok(json) => println!("{json}"),
        Err(error) => {
            eprintln!("cuda_workload: {error}");
            std::process::exit(1);
        }
    }
    // No destructors: they would give contexts and streams back in an order of their own.
    std::process::exit(0);
}
