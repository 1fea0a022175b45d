//! Says whether two traces in JSON say the same: `compare_json ORIGINAL AGAIN`.

#[path = "../tests/same_events/mod.rs"]
mod same_events;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (original, again) = (args.next().ok_or("ORIGINAL")?, args.next().ok_or("AGAIN")?);
    let (original, again) = (std::fs::read_to_string(original)?, std::fs::read_to_string(again)?);
    let found = same_events::compare(&original, &again, true);
    for difference in found.differences.iter().take(20) {
        println!("{difference}");
    }
    println!(
        "{} events, {} differences; ac2g ends: {} without another end gone, {} added; \
         {} metadata events added",
        found.events,
        found.differences.len(),
        found.arrows_gone,
        found.arrows_added,
        found.metadata_added
    );
    Ok(())
}
