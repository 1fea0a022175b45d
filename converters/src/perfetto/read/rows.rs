//! Rows are named for people ([`kymograph_protos::rows`]). In the hub they are called what they
//! were called before, so that every format gets the same.

use kymograph_protos::rows::{self, Beside};

use crate::perfetto::rows::{MADE, MEMORY, UNNAMED, is_memory_row};
use crate::trace::{Series, StrId, Trace, TrackId, TrackKind};

/// Takes the names of processes, devices and grouped tracks back.
pub(super) fn take_back(trace: &mut Trace) {
    let processes: Vec<_> = trace.processes.iter().map(|(id, _)| id).collect();
    for id in processes {
        let Some(rank) = trace.rank(id) else { continue };
        let row = trace.strings.get(trace.processes[id].name);
        if let Some(name) = rows::process_name(rank, row).map(str::to_owned) {
            let named = !name.is_empty();
            trace.processes[id].name =
                if named { trace.strings.intern(&name) } else { StrId::NONE };
        }
    }
    for (_, device) in trace.devices.iter_mut() {
        let row = trace.strings.get(device.name);
        if rows::device_model(device.number, row) == Some(trace.strings.get(device.model)) {
            device.name = device.model;
        }
    }
    let tracks: Vec<TrackId> = trace.tracks.iter().map(|(id, _)| id).collect();
    for id in tracks {
        unfold(trace, id);
        let Some(row) = grouped(trace, id) else { continue };
        let name = trace.strings.intern(&row.name());
        let above = trace.tracks[id].parent.and_then(|group| trace.tracks[group].parent);
        let track = &mut trace.tracks[id];
        (track.name, track.parent, track.rank) = (name, above, None);
    }
}

/// Takes a track of the profiler's own out of the row that was made for them.
fn unfold(trace: &mut Trace, id: TrackId) {
    let track = &trace.tracks[id];
    let made = |parent: TrackId| {
        let above = &trace.tracks[parent];
        trace.strings.get(above.description) == MADE
    };
    let folded = track.parent.is_some_and(made);
    let unnamed = trace.strings.get(track.name) == UNNAMED
        && track
            .parent
            .is_some_and(|parent| trace.strings.get(trace.tracks[parent].name).is_empty());
    if folded || unnamed {
        let name = if unnamed || trace.strings.get(track.name) == UNNAMED {
            trace.strings.intern("")
        } else {
            track.name
        };
        let track = &mut trace.tracks[id];
        track.name = name;
        if folded {
            track.parent = None;
        }
    }
}

/// Puts the moments about memory back on their threads, and forgets the counters that were
/// made of them.
pub(super) fn take_back_memory(trace: &mut Trace) {
    let Some(name) = trace.strings.find(MEMORY) else { return };
    let ids: Vec<_> = trace.instants.ids().collect();
    let mut any = false;
    for id in ids {
        let instant = trace.instants.get(id);
        let track = &trace.tracks[instant.track];
        let above = track.parent.filter(|_| instant.name == name && track.name == name);
        if let Some(above) = above
            && matches!(trace.tracks[above].kind, TrackKind::Thread(_))
        {
            trace.instants.set_track(id, above);
            any = true;
        }
    }
    if any {
        let made = |series: &Series| is_memory_row(trace.strings.get(series.name));
        let made: Vec<_> =
            trace.counters.series.iter().filter(|(_, s)| made(s)).map(|(id, _)| id).collect();
        trace.counters.forget(&made);
    }
}

/// What a track in a group tells about a stream.
fn grouped(trace: &Trace, id: TrackId) -> Option<Beside> {
    let track = &trace.tracks[id];
    let group = &trace.tracks[track.parent?];
    Beside::in_group(trace.strings.get(group.name), trace.strings.get(track.name))
}
