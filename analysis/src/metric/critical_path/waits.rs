//! What waits wait for: the work that was launched last before an event was recorded.

use hashbrown::HashMap;
use kymograph_converters::trace::Value;

use crate::model::Model;

/// Where an event or a wait stands: device and stream.
type Stream = (i64, i64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The last launch before each recorded event, by the number of the recording call.
    sources: HashMap<i64, u32>,
    /// The first launch after each call that has a stream wait.
    next: HashMap<u32, u32>,
}

impl Waits {
    pub(super) fn of(model: &Model<'_>) -> Waits {
        let events = &model.events;
        let number = |row: u32, name: &str| argument(model, row, name).unwrap_or(-1);
        // Which stream each event was recorded on.
        let mut recorded: HashMap<i64, Stream> = HashMap::new();
        for row in 0..events.len() as u32 {
            if events.kinds[row as usize] == crate::model::Kind::Sync {
                let stream = number(row, "wait_on_stream");
                if stream > -1 {
                    let event = number(row, "wait_on_cuda_event_record_corr_id");
                    recorded.entry(event).or_insert((events.lane(row).pid, stream));
                }
            }
        }
        let mut waits = Waits::default();
        let wait = model.trace.strings.find("Stream Wait Event");
        if recorded.is_empty() && !wait.is_some_and(|wait| events.names.contains(&wait)) {
            return waits;
        }
        waits.fill(model, &recorded);
        waits
    }

    fn fill(&mut self, model: &Model<'_>, recorded: &HashMap<i64, Stream>) {
        let events = &model.events;
        let peers = model.peers();
        let of_work = |row: u32| {
            let work = peers.get(row).filter(|work| events.on_device(*work))?;
            Some((events.lane(work).pid, i64::from(events.streams[work as usize])))
        };
        let mut rows: Vec<u32> =
            (0..events.len() as u32).filter(|row| !events.on_device(*row)).collect();
        events.sort_by_start(&mut rows);
        let is_launch = |row: u32| model.launches(row);
        let mut launched: HashMap<Stream, u32> = HashMap::new();
        for row in &rows {
            let name = model.name(*row);
            if is_launch(*row)
                && let Some(stream) = of_work(*row)
            {
                launched.insert(stream, *row);
            } else if name == "cudaEventRecord"
                && let correlation = events.correlations[*row as usize]
                && let Some(stream) = recorded.get(&correlation)
                && let Some(launch) = launched.get(stream)
            {
                self.sources.insert(correlation, *launch);
            }
        }
        // By thread and stream, from the last to the first.
        let mut next: HashMap<(i64, i64, i64), u32> = HashMap::new();
        for row in rows.iter().rev() {
            let (lane, Some((_, stream))) = (events.lane(*row), of_work(*row)) else { continue };
            let place = (lane.pid, lane.tid, stream);
            if is_launch(*row) {
                next.insert(place, *row);
            } else if model.name(*row) == "cudaStreamWaitEvent"
                && let Some(launch) = next.get(&place)
            {
                self.next.insert(*row, *launch);
            }
        }
    }

    /// The work that a wait waits for.
    pub(super) fn source(&self, model: &Model<'_>, wait: u32) -> Option<u32> {
        let event = argument(model, wait, "wait_on_cuda_event_record_corr_id")?;
        model.peers().get(*self.sources.get(&event)?)
    }

    /// The next launch on the same thread and stream after a call of `cudaStreamWaitEvent`.
    pub(super) fn next_launch(&self, call: u32) -> Option<u32> {
        self.next.get(&call).copied()
    }
}

fn argument(model: &Model<'_>, row: u32, name: &str) -> Option<i64> {
    let name = model.trace.strings.find(name)?;
    match model.trace.args.find(model.events.args(model.trace, row), name)? {
        Value::I64(n) => Some(n),
        Value::U64(n) => i64::try_from(n).ok(),
        _ => None,
    }
}
