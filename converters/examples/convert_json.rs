//! Converts by hand, with figures: `convert_json IN OUT`, where `.pftrace` is Perfetto's format,
//! `.chrome.json` plain JSON and anything else Kineto's.

use std::fs::File;
use std::time::Instant;

use kymograph_converters::{chrome, json, kineto, packed, perfetto};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (input, output) = (args.next().ok_or("IN")?, args.next().ok_or("OUT")?);
    let start = Instant::now();
    let file = File::open(&input)?;
    let trace = if input.ends_with(".pftrace") {
        perfetto::read(file, packed::Limits::default())?
    } else {
        chrome::read(file, &json::Limits::default())?
    };
    let read = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let file = File::create(&output)?;
    if output.ends_with(".pftrace") {
        println!("{:?}", perfetto::write(&trace, file)?);
    } else if output.ends_with(".chrome.json") {
        chrome::write(&trace, file)?;
    } else {
        kineto::write(&trace, file)?;
    }
    let wrote = start.elapsed().as_secs_f64();
    let bytes = |path: &str| std::fs::metadata(path).map_or(0.0, |data| data.len() as f64);
    println!(
        "read {:.0} MB/s, written {:.0} MB/s, {:.1} % of the size; {} slices, {} activities, \
         {} moments, {} samples",
        bytes(&input) / read / 1e6,
        bytes(&output) / wrote / 1e6,
        bytes(&output) / bytes(&input) * 100.0,
        trace.slices.len(),
        trace.activities.len(),
        trace.instants.len(),
        trace.counters.len(),
    );
    for warning in &trace.facts.warnings {
        println!("  {} × {} at {:?}", warning.count, warning.what, warning.offset);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("  {peak}");
    Ok(())
}
