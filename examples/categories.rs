//! Categories: recorded or not by configuration, and switched while the program runs.

use kymograph::{Category, Config, Recording, scope};

static RENDER: Category = Category::new("render");
static DETAIL: Category = Category::new("render.detail");

fn frame(number: u32) {
    let _scope = scope!(RENDER, "frame", number = number);
    for part in 0..3 {
        // Costs about a nanosecond while it is off; its arguments are not evaluated.
        let _scope = scope!(DETAIL, "part", part = part);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("categories.pftrace".into());
    let mut config = Config::to_file(path);
    // As KYMOGRAPH_CATEGORIES would: everything but details.
    config.set("CATEGORIES", "*,-*.detail")?;
    let _recording = Recording::start(config)?;
    for number in 0..30 {
        // Look closely at ten frames in the middle.
        DETAIL.set_enabled((10..20).contains(&number));
        frame(number);
    }
    Ok(())
}
