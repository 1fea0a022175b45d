//! The writer: events that begin and end functions, thread by thread.

use std::io::{self, Write};

use super::SCHEMA;
use crate::json::{write_int, write_string};
use crate::numbered::Numbered;
use crate::perfetto::deal;
use crate::trace::{Nanos, QueueId, Slice, SliceId, Slices, StrId, Trace, TrackId, Warning};

/// Writes a trace. Gives back what the format has no place for.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(trace: &Trace, out: &mut impl Write) -> io::Result<Vec<Warning>> {
    let mut profiles = host(trace);
    profiles.extend(devices(trace));
    let first = profiles.iter().filter_map(Profile::first).min().unwrap_or(0);
    let mut frames = Numbered::default();
    let mut text = Vec::new();
    for (number, profile) in profiles.iter().enumerate() {
        if number > 0 {
            text.push(b',');
        }
        profile.write(&mut text, &mut frames, first);
    }
    out.write_all(format!("{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"kymo\",").as_bytes())?;
    out.write_all(b"\"shared\":{\"frames\":[")?;
    for (number, name) in frames.all.iter().enumerate() {
        let mut frame = if number > 0 { b",".to_vec() } else { Vec::new() };
        frame.extend_from_slice(b"{\"name\":");
        write_string(&mut frame, trace.strings.get(*name));
        frame.push(b'}');
        out.write_all(&frame)?;
    }
    out.write_all(b"]},\"profiles\":[")?;
    out.write_all(&text)?;
    out.write_all(b"]}\n")?;
    Ok(lost(trace))
}

/// What has no place in the format.
fn lost(trace: &Trace) -> Vec<Warning> {
    let args = trace.slices.args().iter().filter(|args| args.is_some()).count()
        + trace.activities.iter().filter(|activity| activity.args.is_some()).count();
    let arrows = trace.flows.points.len() + trace.flows.links.len();
    let all = [
        ("arguments of an event, for which speedscope has no place", args),
        ("moment, for which speedscope has no place", trace.instants.len()),
        ("value of a counter, for which speedscope has no place", trace.counters.len()),
        ("end of an arrow, for which speedscope has no place", arrows),
    ];
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(what, count)| Warning { what: what.to_owned(), count: count as u64, offset: None })
        .collect()
}

/// Slices that nest, in the order of their beginnings.
struct Profile {
    name: String,
    slices: Vec<(i64, i64, StrId)>,
}

impl Profile {
    fn first(&self) -> Option<i64> {
        self.slices.first().map(|slice| slice.0)
    }

    fn write(&self, out: &mut Vec<u8>, frames: &mut Numbered, first: i64) {
        let last = self.slices.iter().map(|slice| slice.1).max().unwrap_or(first);
        out.extend_from_slice(b"{\"type\":\"evented\",\"name\":");
        write_string(out, &self.name);
        out.extend_from_slice(b",\"unit\":\"nanoseconds\",\"startValue\":");
        write_int(out, self.first().unwrap_or(first).saturating_sub(first));
        out.extend_from_slice(b",\"endValue\":");
        write_int(out, last.saturating_sub(first));
        out.extend_from_slice(b",\"events\":[");
        let mut event = |kind: u8, time: i64, name, after: bool| {
            let comma: &[u8] = if after { b"," } else { b"" };
            out.extend_from_slice(comma);
            out.extend_from_slice(b"{\"type\":\"");
            out.push(kind);
            out.extend_from_slice(b"\",\"at\":");
            write_int(out, time.saturating_sub(first));
            out.extend_from_slice(b",\"frame\":");
            write_int(out, frames.number(name) as i64);
            out.push(b'}');
        };
        let mut open: Vec<(i64, StrId)> = Vec::new();
        let mut after = false;
        for &(start, end, name) in &self.slices {
            while let Some((end, name)) = open.pop_if(|(end, _)| *end <= start) {
                event(b'C', end, name, true);
            }
            event(b'O', start, name, after);
            after = true;
            open.push((end, name));
        }
        while let Some((end, name)) = open.pop() {
            event(b'C', end, name, true);
        }
        out.extend_from_slice(b"]}");
    }
}

/// A profile for each lane of each track.
fn host(trace: &Trace) -> Vec<Profile> {
    let order = trace.slices.by_track();
    let track = |id: &SliceId| trace.slices.tracks()[id.index()];
    let groups = order.chunk_by(|a, b| track(a) == track(b));
    groups.flat_map(|ids| lanes(&trace.slices, ids, name(trace, track(&ids[0])))).collect()
}

/// A profile for each lane of each queue.
fn devices(trace: &Trace) -> Vec<Profile> {
    let mut queues: Vec<(QueueId, Slices)> = Vec::new();
    for activity in trace.activities.iter() {
        let known = queues.iter().position(|(queue, _)| *queue == activity.queue);
        let at = known.unwrap_or_else(|| {
            queues.push((activity.queue, Slices::default()));
            queues.len() - 1
        });
        let slice = Slice::new(TrackId::at(0), activity.start, activity.dur.max(Nanos(0)));
        queues[at].1.push(Slice { name: activity.name, ..slice });
    }
    let name = |queue: QueueId| {
        let queue = trace.queues[queue];
        let device = &trace.devices[queue.device];
        format!("device {} {}", device.number, trace.strings.get(queue.name))
    };
    let lanes =
        |(queue, slices): (QueueId, Slices)| lanes(&slices, &slices.by_track(), name(queue));
    queues.into_iter().flat_map(lanes).collect()
}

fn lanes(slices: &Slices, ids: &[SliceId], name: String) -> Vec<Profile> {
    let last = ids.iter().filter_map(|id| slices.get(*id).end()).max().unwrap_or(Nanos(i64::MIN));
    let times = |id: &SliceId| {
        let slice = slices.get(*id);
        // What has no end lasts as long as anything here.
        let end = slice.end().unwrap_or(last).max(slice.start);
        (slice.start.0, end.0, slice.name)
    };
    let profile = |lane: Vec<SliceId>| {
        let mut slices: Vec<_> = lane.iter().map(times).collect();
        // What lies around an end that is not known ends no earlier.
        let mut until = Vec::new();
        for slice in &mut slices {
            while until.last().is_some_and(|end| *end <= slice.0) {
                until.pop();
            }
            slice.1 = until.last().map_or(slice.1, |end: &i64| slice.1.min(*end));
            until.push(slice.1);
        }
        Profile { name: name.clone(), slices }
    };
    deal(slices, ids).into_iter().map(profile).collect()
}

/// What a track is called: process, thread, and its own names.
fn name(trace: &Trace, track: TrackId) -> String {
    let own = |track: &crate::trace::Track| match track.kind {
        crate::trace::TrackKind::Process(id) => {
            let process = &trace.processes[id];
            format!("{} {}", trace.strings.get(process.name), process.pid)
        }
        crate::trace::TrackKind::Thread(id) => {
            let thread = &trace.threads[id];
            format!("{} {}", trace.strings.get(thread.name), thread.tid)
        }
        _ => trace.strings.get(track.name).to_owned(),
    };
    let mut names: Vec<String> = trace.ancestors(track).map(|(_, track)| own(track)).collect();
    names.reverse();
    names.iter().map(|name| name.trim()).collect::<Vec<_>>().join(" / ")
}
