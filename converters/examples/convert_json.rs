//! Converts by hand, with figures (of processor time): `convert_json IN OUT`, where `.pftrace`
//! is Perfetto's format, its packets packed unless the name ends with `.plain.pftrace`,
//! `.chrome.json` plain JSON and anything else Kineto's.

use std::fs::File;

use kymograph_converters::perfetto::Packets;
use kymograph_converters::{chrome, json, kineto, packed, perfetto};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (input, output) = (args.next().ok_or("IN")?, args.next().ok_or("OUT")?);
    let start = cpu();
    let file = File::open(&input)?;
    let trace = if input.ends_with(".pftrace") {
        perfetto::read(file, packed::Limits::default())?
    } else {
        chrome::read(file, &json::Limits::default())?
    };
    let read = cpu() - start;
    let start = cpu();
    let file = File::create(&output)?;
    if output.ends_with(".pftrace") {
        let plain = output.ends_with(".plain.pftrace");
        let packets = if plain { Packets::Plain } else { Packets::Deflated };
        println!("{:?}", perfetto::write_packets(&trace, file, packets)?);
    } else if output.ends_with(".chrome.json") {
        chrome::write(&trace, file)?;
    } else {
        kineto::write(&trace, file)?;
    }
    let wrote = cpu() - start;
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

/// Seconds that this thread has run so far: what others on the machine do counts little.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0.0) / 1e9
}
