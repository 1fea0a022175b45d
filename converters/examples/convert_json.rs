//! Reads a trace in JSON and writes it again: `convert_json IN OUT [chrome]`.
use kymograph_converters::{chrome, json, kineto};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (input, output) = (args.next().ok_or("IN")?, args.next().ok_or("OUT")?);
    let start = std::time::Instant::now();
    let file = std::fs::File::open(&input)?;
    let size = file.metadata()?.len() as f64;
    let trace = chrome::read(file, &json::Limits::default())?;
    let read = start.elapsed().as_secs_f64();
    let start = std::time::Instant::now();
    if args.next().is_some() {
        chrome::write(&trace, std::fs::File::create(&output)?)?;
    } else {
        kineto::write(&trace, std::fs::File::create(&output)?)?;
    }
    let wrote = start.elapsed().as_secs_f64();
    let out = std::fs::metadata(&output)?.len() as f64;
    eprintln!(
        "read {:.0} MB/s, write {:.0} MB/s; {} slices {} activities {} instants; {:?}",
        size / read / 1e6,
        out / wrote / 1e6,
        trace.slices.len(),
        trace.activities.len(),
        trace.instants.len(),
        trace.facts.kinds
    );
    for warning in &trace.facts.warnings {
        eprintln!("  {warning:?}");
    }
    Ok(())
}
