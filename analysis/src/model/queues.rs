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
    let mut streams: HashMap<i64, Vec<QueueChange>> = HashMap::new();
    let mut launched = vec![false; events.len()];
    for row in (0..events.len() as u32).filter(|row| is_launch(model, *row)) {
        let time = events.starts[row as usize];
        for work in model.work().of(events.correlations[row as usize]) {
            launched[work as usize] = true;
            let stream = events.streams[work as usize].into();
            streams.entry(stream).or_default().push(QueueChange { row, work, time, length: 1 });
        }
    }
    for row in (0..events.len() as u32).filter(|row| launched[*row as usize]) {
        let (stream, time) = (events.streams[row as usize].into(), events.starts[row as usize]);
        let change = QueueChange { row, work: row, time, length: -1 };
        streams.entry(stream).or_default().push(change);
    }
    let mut streams: Vec<_> = streams.into_iter().collect();
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
