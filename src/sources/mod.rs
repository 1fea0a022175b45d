//! The backends that are told when a recording starts and stops.

mod children;

use std::time::{Duration, Instant};

use kymograph_backends::source::{Settings, Source};
use kymograph_backends::vendors::VENDORS;

use crate::config::Config;
use crate::recorder::PIPELINE;
pub use children::{Membership, take_part};

/// Starts those that have something to record in this process. May be called again, when
/// there may be more.
pub(crate) fn start(config: &Config) {
    let settings = settings(config);
    for vendor in &VENDORS {
        vendor.source.start(&PIPELINE, &settings);
    }
    children::start();
}

/// What concerns them of the configuration.
pub(crate) fn settings(config: &Config) -> Settings {
    Settings {
        activity_types: config.activity_types.clone(),
        cupti_path: config.cupti_path.clone(),
        cupti_finalize: config.cupti_finalize,
        pti_path: config.pti_path.clone(),
        gpu_counters: config.gpu_counters,
        all_args: config.all_args,
        samples: config.samples,
    }
}

/// Lets them push what is finished.
pub(crate) fn flush(timeout: Duration) {
    each(timeout, |source, left| source.flush(left));
}

/// Stops them; returns whether all have stopped. What they have to say is pushed then.
pub(crate) fn stop(timeout: Duration) -> bool {
    children::stop();
    each(timeout, |source, left| source.stop(left))
}

fn each(timeout: Duration, ask: impl Fn(&dyn Source, Duration) -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    let left = || deadline.saturating_duration_since(Instant::now());
    // Each is asked, also after one that is not done.
    VENDORS.iter().filter(|vendor| !ask(vendor.source, left())).count() == 0
}
