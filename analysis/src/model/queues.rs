//! How many activities each stream had waiting.

use hashbrown::HashMap;
use kymograph_converters::order::Order as _;

use super::Model;
use crate::reading::Version;

/// A moment at which the length of a queue changes.
#[derive(Clone, Copy, Debug)]
pub struct QueueChange {
    /// The launch, or the work that begins.
    pub row: u32,
    /// The work.
    pub work: u32,
    /// When.
    pub time: i64,
    /// The length from then on.
    pub length: i64,
}

/// The changes of each stream, in the order of its number.
pub(super) fn queues(model: &Model<'_>) -> Vec<(i64, Vec<QueueChange>)> {
    let events = &model.events;
    let mut streams: Vec<(i64, Vec<QueueChange>)> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    // Mostly a change is on the same stream as the one before.
    let mut last = None;
    let mut put = |stream: i32, change: QueueChange| {
        let stream = i64::from(stream);
        let place = match last {
            Some((own, place)) if own == stream => place,
            _ => *places.entry(stream).or_insert_with(|| {
                streams.push((stream, Vec::new()));
                streams.len() - 1
            }),
        };
        last = Some((stream, place));
        streams[place].1.push(change);
    };
    let mut launched = vec![false; events.len()];
    for row in (0..events.len() as u32).filter(|row| is_launch(model, *row)) {
        let time = events.starts[row as usize];
        for work in model.work().of(events.correlations[row as usize]) {
            launched[work as usize] = true;
            put(events.streams[work as usize], QueueChange { row, work, time, length: 1 });
        }
    }
    for row in (0..events.len() as u32).filter(|row| launched[*row as usize]) {
        let time = events.starts[row as usize];
        put(events.streams[row as usize], QueueChange { row, work: row, time, length: -1 });
    }
    streams.sort_unstable_by_key(|(stream, _)| *stream);
    for (_, changes) in &mut streams {
        changes.order_by_numbers(|change| [change.time]);
        let mut length = 0;
        for change in changes {
            length += change.length;
            change.length = length;
        }
    }
    streams
}

/// Whether an event is a call that launched something that counts.
pub(super) fn is_launch(model: &Model<'_>, row: u32) -> bool {
    let has_peer = model.peers().get(row).is_some();
    has_peer
        && match model.reading.hta() {
            Some(rules) => is_named_launch(rules.version, model.name(row)),
            None => !model.events.on_device(row),
        }
}

fn is_named_launch(version: Version, name: &str) -> bool {
    match name {
        "cudaLaunchKernel"
        | "cudaLaunchKernelExC"
        | "cuLaunchKernel"
        | "cudaMemcpyAsync"
        | "cudaMemsetAsync"
        | "runFunction - job_prep_and_submit_for_execution"
        | "hipLaunchKernel"
        | "hipExtModuleLaunchKernel"
        | "hipMemsetAsync"
        | "hipMemcpyAsync"
        | "hipMemcpyWithStream" => true,
        "cuLaunchKernelEx" => version == Version::TraceInsight,
        _ => false,
    }
}
