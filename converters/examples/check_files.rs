//! Converts traces in JSON and back, and says what became of them:
//! `check_files FILE.json[.gz]…`
//!
//! Of every file: whether trace_processor finds nothing wrong with the Perfetto trace and counts
//! in it what the JSON says; whether both JSON → JSON and JSON → Perfetto → JSON say the same;
//! and how large all of them are. Ends with 1 when anything differs.

#[path = "../tests/same_events/mod.rs"]
mod same_events;
#[path = "../tests/same_sums/mod.rs"]
mod same_sums;

use std::error::Error;
use std::io::Read;

use kymograph_converters::perfetto::Packets;
use kymograph_converters::{chrome, format, json, kineto, packed, perfetto};
use same_events::Through;

fn main() -> Result<(), Box<dyn Error>> {
    let mut wrong = 0;
    for path in std::env::args().skip(1) {
        println!("{path}");
        wrong += check(&path)?;
    }
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} differences").into()) }
}

fn check(path: &str) -> Result<usize, Box<dyn Error>> {
    let file = std::fs::File::open(path)?;
    let mut json = String::new();
    packed::Unpacked::new(file, packed::Limits::default())?.read_to_string(&mut json)?;
    let trace = chrome::read(json.as_bytes(), &json::Limits::default())?;
    for warning in &trace.facts.warnings {
        println!("  read: {} × {} at {:?}", warning.count, warning.what, warning.offset);
    }
    let mut again = Vec::new();
    kineto::write(&trace, &mut again)?;
    let mut differences = compare(&json, &again, Through::Json)?;

    let folder = tempfile::tempdir()?;
    let pftrace = folder.path().join("trace.pftrace");
    let out = std::fs::File::create(&pftrace)?;
    let written = perfetto::write_packets(&trace, out, Packets::Deflated)?;
    println!("  {written:?}");
    if written.before_zero + written.flow_ends > 0 {
        differences.push("something could not be written".to_owned());
    }
    let opened = oracle::Trace::open(&pftrace);
    opened.assert_clean();
    differences.extend(same_sums::differences(&json, &opened));
    let back = perfetto::read(std::fs::File::open(&pftrace)?, packed::Limits::default())?;
    let mut again = Vec::new();
    kineto::write(&back, &mut again)?;
    differences.extend(compare(&json, &again, Through::Perfetto)?);

    for difference in differences.iter().take(20) {
        println!("  ! {difference}");
    }
    let gzip = |bytes: &[u8]| -> std::io::Result<usize> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut out, bytes)?;
        Ok(out.finish()?.len())
    };
    let mut packed = Vec::new();
    format::write(&trace, &mut packed, format::Format::Perfetto, packed::Packing::Gzip)?;
    let (size, packed_json) = (json.len() as f64, gzip(json.as_bytes())? as f64);
    println!(
        "  {} bytes of JSON; .pftrace {:.1} % of it; .pftrace.gz {:.2} of .json.gz; \
         {} differences",
        json.len(),
        100.0 * written.bytes as f64 / size,
        packed.len() as f64 / packed_json,
        differences.len()
    );
    Ok(differences.len())
}

fn compare(json: &str, again: &[u8], through: Through) -> Result<Vec<String>, Box<dyn Error>> {
    let found = same_events::compare(json, std::str::from_utf8(again)?, through);
    println!(
        "  through {through:?}: {} events; arrows without another end: {}; arrows that only \
         correlation numbers told of: {}; metadata events added: {}",
        found.events, found.arrows_gone, found.arrows_added, found.metadata_added
    );
    Ok(found.differences)
}
