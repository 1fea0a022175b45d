//! HTA: Holistic Trace Analysis 0.5.0, and its successor `traceinsight` 0.6.
//!
//! What they do to a trace before they analyse it:
//!
//! 1. Times of a trace that has fractions of microseconds are rounded inwards to whole ones,
//!    which gives what is shorter a duration of -1. (`HTA_DISABLE_NS_ROUNDING=1` leaves it;
//!    [`Rules::rounding`].)
//! 2. Launches are joined with what they launched, steps found.
//! 3. The last step is left out, where there are several ([`Rules::last_step`]), and device work
//!    that no remaining call launched. Device events now come before those of the host, and
//!    twice where two calls have the number of one.

mod classes;
mod table;

pub use classes::class;
pub use table::table;

use hashbrown::HashMap;

use crate::model::events::Events;
use crate::model::steps::Steps;

pub use crate::reading::{Rules, Version};

/// Puts the events that were just read in HTA's order, and gives them its times.
pub(crate) fn retime(events: &mut Events, rules: Rules) {
    in_file_order(events);
    if rules.rounding {
        round(events);
    } else {
        coarsen(events);
    }
}

/// Rows in the order of the file: what HTA does to rows of equal keys depends on it.
fn in_file_order(events: &mut Events) {
    if !events.positions.is_sorted() {
        let mut rows: Vec<u32> = (0..events.len() as u32).collect();
        events.sort_by_position(&mut rows);
        *events = events.select(&rows);
    }
}

/// Microseconds as HTA has them: floating point.
fn micros(nanos: i64) -> f64 {
    // Exact up to a hundred days; beyond, whole microseconds and the rest apart are.
    if nanos.unsigned_abs() < 1 << 53 {
        nanos as f64 / 1e3
    } else {
        nanos.div_euclid(1000) as f64 + nanos.rem_euclid(1000) as f64 / 1e3
    }
}

/// Rounds beginnings up and ends down, if any time has a fraction.
fn round(events: &mut Events) {
    let whole = |times: &[i64]| times.iter().all(|time| time % 1000 == 0);
    if whole(&events.starts) && whole(&events.durs) {
        return;
    }
    for (start, dur) in events.starts.iter_mut().zip(&mut events.durs) {
        let end = micros(*start) + micros(*dur);
        let (from, to) = (micros(*start).ceil(), end.floor());
        (*start, *dur) = (from as i64 * 1000, (to - from) as i64 * 1000);
    }
}

/// Floating point cannot hold microseconds since 1970 to more than a quarter of one.
fn coarsen(events: &mut Events) {
    for start in &mut events.starts {
        let whole = start.div_euclid(1000);
        let rest = (micros(*start) - whole as f64) * 1e3;
        *start = whole * 1000 + rest.round() as i64;
    }
}

/// The rows that are left without the last step; `None` where there are fewer than two steps.
/// `device_side` tells which end of a launch HTA takes a row for.
pub(crate) fn without_last_step(
    events: &Events,
    steps: &Steps,
    device_side: impl Fn(usize) -> bool,
) -> Option<Vec<u32>> {
    let mut names: Vec<_> = steps.all.iter().map(|step| events.names[step.row as usize]).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 {
        return None;
    }
    let of_host = steps.all.iter().filter(|step| !device_side(step.row as usize));
    let last = of_host.map(|step| events.starts[step.row as usize]).max()?;
    let mut calls: HashMap<i64, u32> = HashMap::new();
    let mut host = Vec::new();
    for row in 0..events.len() {
        if !device_side(row) && events.starts[row] < last {
            *calls.entry(events.correlations[row]).or_default() += 1;
            host.push(row as u32);
        }
    }
    let mut kept = Vec::new();
    for row in (0..events.len()).filter(|row| device_side(*row)) {
        let times = calls.get(&events.correlations[row]).copied().unwrap_or(0);
        kept.extend(std::iter::repeat_n(row as u32, times as usize));
    }
    kept.extend(host);
    Some(kept)
}
