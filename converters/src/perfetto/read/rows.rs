//! Rows are named for people ([`kymograph_protos::rows`]). In the hub they are called what they
//! were called before, so that every format gets the same.

use kymograph_protos::rows::{self, Beside};

use crate::trace::{Trace, TrackId};

/// Takes the names of processes, devices and grouped tracks back.
pub(super) fn take_back(trace: &mut Trace) {
    let processes: Vec<_> = trace.processes.iter().map(|(id, _)| id).collect();
    for id in processes {
        let Some(rank) = trace.rank(id) else { continue };
        let row = trace.strings.get(trace.processes[id].name);
        if let Some(name) = rows::process_name(rank, row).map(str::to_owned) {
            trace.processes[id].name = trace.strings.intern(&name);
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
        let Some(row) = grouped(trace, id) else { continue };
        let name = trace.strings.intern(&row.name());
        let above = trace.tracks[id].parent.and_then(|group| trace.tracks[group].parent);
        let track = &mut trace.tracks[id];
        (track.name, track.parent, track.rank) = (name, above, None);
    }
}

/// What a track in a group tells about a stream.
fn grouped(trace: &Trace, id: TrackId) -> Option<Beside> {
    let track = &trace.tracks[id];
    let group = &trace.tracks[track.parent?];
    Beside::in_group(trace.strings.get(group.name), trace.strings.get(track.name))
}
