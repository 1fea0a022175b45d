//! What converting costs: speed, memory, size.
//!
//! `cargo bench -p kymograph-converters --bench convert [-- [--quick] FILE.json…]`; without
//! files, synthetic traces of 200 MB and 1 GB (`benches/synthetic_kineto.py`), with `--quick`
//! one of 64 MB.
//!
//! Every conversion runs in a process of its own, so that its peak of resident memory is its
//! own, and is timed by the processor time of all its threads, of several runs the least: so
//! others on the machine count little. Output goes to nowhere; what the other direction reads
//! was written before. Rates are megabytes of JSON, read or written, per second.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use kymograph_converters::perfetto::Packets;
use kymograph_converters::trace::Trace;
use kymograph_converters::{chrome, json, kineto, packed, perfetto};

const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let Some(work) = args.first().and_then(|arg| arg.strip_prefix("--do=")) {
        return child(work, Path::new(&args[1]));
    }
    let quick = args.first().is_some_and(|arg| arg == "--quick");
    args.retain(|arg| !arg.starts_with("--"));
    let folder = tempfile::tempdir()?;
    let mut files: Vec<PathBuf> = args.into_iter().map(PathBuf::from).collect();
    if files.is_empty() {
        for megabytes in if quick { &[64][..] } else { &[200, 1000] } {
            files.push(synthetic(folder.path(), *megabytes)?);
        }
    }
    println!("### Converting");
    for file in files {
        println!();
        table(&file, folder.path())?;
    }
    Ok(())
}

fn synthetic(folder: &Path, megabytes: u32) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join(format!("synthetic_{megabytes}.json"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/synthetic_kineto.py");
    let made =
        Command::new("python3").args([script, &megabytes.to_string()]).arg(&path).status()?;
    if made.success() { Ok(path) } else { Err("python3 is needed".into()) }
}

/// What a child measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    seconds: f64,
    peak: f64,
    written: f64,
}

fn table(json: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let size = std::fs::metadata(json)?.len() as f64;
    let pftrace = folder.join("bench.pftrace");
    let trace = chrome::read(File::open(json)?, &json::Limits::default())?;
    let packed = perfetto::write_packets(&trace, File::create(&pftrace)?, Packets::Deflated)?.bytes;
    let plain = perfetto::write(&trace, io::sink())?.bytes;
    let hub = bytes_per_event(&trace);
    drop(trace);

    let name = json.file_name().unwrap_or_default().to_string_lossy();
    println!("`{name}`, {:.1} MB; {hub}", size / 1e6);
    println!();
    println!("| what | MB/s | × serde_json | peak memory | × the JSON | target | |");
    println!("|---|--:|--:|--:|--:|---|---|");
    // Parsing into a tree takes ten times the file.
    let serde = (size < 500e6).then(|| best("serde", json)).transpose()?;
    let serde_rate = serde.map(|serde| size / serde.seconds);
    let row = |what: &str, m: Measured, bytes: f64, target: &str, met: bool| {
        let rate = bytes / m.seconds;
        let ratio = serde_rate.map_or("–".to_owned(), |serde| format!("{:.1}", rate / serde));
        println!(
            "| {what} | {:.0} | {ratio} | {:.0} MB | {:.2} | {target} | {} |",
            rate / 1e6,
            m.peak / 1e6,
            m.peak / bytes,
            if target.is_empty() {
                ""
            } else if met {
                "met"
            } else {
                "**not met**"
            }
        );
    };
    if let Some(serde) = serde {
        row("serde_json, into `Value`", serde, size, "", true);
    }
    let target = if size >= 200e6 { "≥ 300 MB/s, ≤ 0.5 ×" } else { "≥ 300 MB/s" };
    let is_met = |m: Measured, bytes: f64| {
        bytes / m.seconds >= 300e6 && (size < 200e6 || m.peak <= bytes * 0.5)
    };
    let there = best("to-perfetto", json)?;
    row("JSON → `.pftrace`", there, size, target, is_met(there, size));
    let back = best("to-json", &pftrace)?;
    row("`.pftrace` → JSON", back, back.written, target, is_met(back, back.written));
    let share = |bytes: u64| 100.0 * bytes as f64 / size;
    println!();
    println!(
        "`.pftrace`: {:.1} % of the JSON (target ≤ 12 %: {}); with `--plain` {:.1} %",
        share(packed),
        if share(packed) <= 12.0 { "met" } else { "**not met**" },
        share(plain)
    );
    Ok(())
}

fn bytes_per_event(trace: &Trace) -> String {
    let events = trace.slices.len() + trace.activities.len() + trace.instants.len();
    let args = trace.args.bytes() as f64 / events.max(1) as f64;
    let all = trace.bytes() as f64 / events.max(1) as f64;
    format!("in the hub, {events} events of {all:.0} bytes each, {args:.0} of them arguments")
}

fn best(work: &str, file: &Path) -> Result<Measured, Box<dyn Error>> {
    let mut best: Option<Measured> = None;
    for _ in 0..RUNS {
        let child = Command::new(std::env::current_exe()?)
            .arg(format!("--do={work}"))
            .arg(file)
            .output()?;
        let text = String::from_utf8(child.stdout)?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let &[seconds, peak, written] = &numbers[..] else {
            return Err(format!("{work}: {}", String::from_utf8_lossy(&child.stderr)).into());
        };
        let known = best.get_or_insert(Measured { seconds, peak, written });
        known.seconds = known.seconds.min(seconds);
        known.peak = known.peak.max(peak);
    }
    best.ok_or_else(|| "no runs".into())
}

/// Does the work once; prints seconds, the peak of resident memory, and bytes written.
fn child(work: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let start = processor_time()?;
    let mut out = Count(0);
    match work {
        "serde" => {
            let bytes = std::fs::read(file)?;
            std::hint::black_box(serde_json::from_slice::<serde_json::Value>(&bytes)?);
        }
        "to-perfetto" => {
            let trace = chrome::read(File::open(file)?, &json::Limits::default())?;
            perfetto::write_packets(&trace, &mut out, Packets::Deflated)?;
        }
        _ => {
            let trace = perfetto::read(File::open(file)?, packed::Limits::default())?;
            kineto::write(&trace, &mut out)?;
        }
    }
    let seconds = processor_time()? - start;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("VmHWM")?;
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse()?;
    println!("{seconds} {} {}", peak * 1024.0, out.0);
    Ok(())
}

/// Seconds of processor time that all threads of this process have taken so far, those that have
/// ended included; to a hundredth.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program may have spaces.
    let (_, fields) = stat.rsplit_once(')').ok_or("stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / 100.0)
}

/// Counts what is written.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
