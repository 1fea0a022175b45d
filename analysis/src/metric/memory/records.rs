//! Allocations and releases, as PyTorch's profiler writes them.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use kymograph_converters::trace::{ArgsId, TrackId};

use crate::compat::tensorboard::{Plugin, interval};
use crate::model::{Model, whole};
use crate::{Error, Options};

/// An allocation or a release.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) time: i64,
    /// The thread: its process and its number.
    pub(super) thread: (i64, i64),
    /// The kind of device as PyTorch numbers kinds, and the number of the device.
    device: (i64, i64),
    /// Where; unknown before PyTorch 1.10.
    pub(super) address: Option<i64>,
    /// What was allocated; below 0 what was freed.
    pub(super) bytes: i64,
    /// What is in use and what the allocator holds afterwards.
    pub(super) totals: Option<(i64, i64)>,
}

impl Record {
    /// What the device is called.
    pub(super) fn device(&self) -> String {
        let (kind, number) = self.device;
        match kind {
            0 => "CPU".to_owned(),
            1 | 6 => format!("GPU{number}"),
            12 => format!("XPU{number}"),
            13 => format!("MPS{number}"),
            15 => format!("HPU{number}"),
            19 => format!("MTIA{number}"),
            kind => format!("device {kind}:{number}"),
        }
    }
}

/// All of a trace in the order of time.
pub(super) fn records(model: &Model<'_>, plugin: Option<Plugin>) -> Result<Vec<Record>, Error> {
    let found = read(model, plugin);
    if found.is_empty() {
        return Err(Error::Nothing(format!(
            "rank {} has no allocations: torch.profiler records them with profile_memory=True",
            model.rank
        )));
    }
    Ok(found)
}

fn read(model: &Model<'_>, plugin: Option<Plugin>) -> Vec<Record> {
    let trace = model.trace;
    let find = |name| trace.strings.find(name);
    let Some(memory) = find("[memory]") else { return Vec::new() };
    let (kind, number, address) = (find("Device Type"), find("Device Id"), find("Addr"));
    let (bytes, allocated, reserved) =
        (find("Bytes"), find("Total Allocated"), find("Total Reserved"));
    let int = |args: Option<ArgsId>, name| whole(trace.args.find(args, name?)?);
    let mut found = Vec::new();
    for instant in trace.instants.iter().filter(|instant| instant.name == memory) {
        let Some(of) = thread_of(model, instant.track) else { continue };
        let device = (int(instant.args, kind), int(instant.args, number).unwrap_or(-1));
        let address = int(instant.args, address);
        let Some(kind) = device.0 else { continue };
        // The plugin knows two kinds.
        if plugin.is_some() && !matches!(kind, 0 | 1) {
            continue;
        }
        found.push(Record {
            time: interval(plugin, (instant.time.0, instant.time.0)).0,
            thread: of,
            device: (kind, device.1),
            address,
            bytes: int(instant.args, bytes).unwrap_or(0),
            totals: int(instant.args, allocated).zip(int(instant.args, reserved)),
        });
    }
    found.order_by_numbers(|record| [record.time]);
    found
}

/// Process and thread of a track; none if it is another process's than the one looked at.
fn thread_of(model: &Model<'_>, track: TrackId) -> Option<(i64, i64)> {
    let lane = model.events.lanes.get(track.index())?;
    model.takes(track).then_some((lane.pid, lane.tid))
}

/// Only what `options` want.
pub(super) fn within(records: &mut Vec<Record>, model: &Model<'_>, options: &Options) {
    if let Some((from, to)) = options.times {
        let since = |record: &Record| record.time.saturating_sub(model.origin);
        records.retain(|record| (from..to).contains(&since(record)));
    }
    if !options.devices.is_empty() {
        records.retain(|record| record.device.0 == 0 || options.devices.contains(&record.device.1));
    }
}

/// The most that was in use on each device, by its number; not of the host.
pub(in crate::metric) fn peaks(model: &Model<'_>) -> BTreeMap<i64, i64> {
    let mut peaks = BTreeMap::new();
    for record in read(model, None) {
        if let (1.., Some((allocated, _))) = (record.device.0, record.totals) {
            let peak: &mut i64 = peaks.entry(record.device.1).or_default();
            *peak = (*peak).max(allocated);
        }
    }
    peaks
}
