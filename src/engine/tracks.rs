//! Named tracks, which programs and backends make for ranges and instants.
//!
//! A track is stated where its record comes, and after each restart point when something lies on
//! it again: programs may make a track for each of their requests, and a preamble that states all
//! that there ever were would soon be larger than what it precedes.

use std::collections::HashMap;

use kymograph_protos::device::Vendor;
use kymograph_protos::packet::{Sequence, ThreadTrack, Track};
use kymograph_protos::record::{Record, THREAD_TRACK};
use kymograph_protos::rows::{self, Beside};

use super::context::Context;
use super::process::Process;
use super::record::Decoded;

/// A named track.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: Box<[u8]>,
    /// The id of the track above it.
    pub parent: u64,
    pub rank: Option<i32>,
}

/// In place of a restart point.
const NEVER: u64 = u64::MAX;

/// The named tracks of a process.
#[derive(Debug, Default)]
pub struct Tracks {
    /// By id, each with the restart point after which it was last stated.
    named: HashMap<u64, (Named, u64)>,
    /// Restart points so far.
    restarts: u64,
    /// Lanes of tracks whose record has not come yet, by the id of the track.
    early: HashMap<u64, Vec<u64>>,
}

impl Tracks {
    /// Forgets what was stated: the sequences restart.
    pub fn expire(&mut self) {
        self.restarts += 1;
        self.early.clear();
    }

    pub fn get(&self, id: u64) -> Option<&Named> {
        self.named.get(&id).map(|(named, _)| named)
    }

    /// A lane of a track whose record has not come yet.
    pub fn early(&mut self, id: u64, lane: u64) {
        self.early.entry(id).or_default().push(lane);
    }

    /// The track `id`, if it is not stated since the last restart point. From now on it is.
    fn unstated(&mut self, id: u64) -> Option<Named> {
        let (named, stated) = self.named.get_mut(&id)?;
        if *stated == self.restarts {
            return None;
        }
        *stated = self.restarts;
        Some(named.clone())
    }
}

impl Context<'_> {
    /// A record that describes a track.
    pub fn track(&mut self, head: &Record, decoded: &Decoded, sequence: &Sequence) {
        let named = Named {
            name: decoded.text(head.site, self.strings).into(),
            parent: head.arg,
            rank: decoded.rank.map(|rank| rank as i32),
        };
        let (id, sequence) = (head.other, sequence.id());
        let lanes = self.process.tracks.early.remove(&id).unwrap_or_default();
        self.process.tracks.named.insert(id, (named.clone(), NEVER));
        self.state_track(id, sequence);
        for lane in lanes {
            self.write_track(lane, &named, sequence);
        }
    }

    /// States a track, and those above it, unless that is done since the last restart point.
    pub fn state_track(&mut self, id: u64, sequence: u32) {
        // Those above it first. None comes twice, so that a circle has an end.
        let mut unstated = Vec::new();
        let mut above = id;
        while let Some(named) = self.process.tracks.unstated(above) {
            let next = named.parent;
            unstated.push((above, named));
            above = next;
        }
        if above & THREAD_TRACK != 0 && !unstated.is_empty() {
            self.describe_thread(above as u32, sequence);
        }
        for (id, named) in unstated.iter().rev() {
            self.write_track(self.process.track_uuid(*id), named, sequence);
        }
    }

    /// A thread that may record nothing by itself, but has tracks under its own.
    fn describe_thread(&mut self, tid: u32, sequence: u32) {
        if self.process.threads.contains(&tid) {
            return;
        }
        let name = self.origin.thread_name(tid).unwrap_or_default();
        let (uuid, parent) = (self.process.thread_uuid(tid), self.process.uuid);
        let pid = self.process.pid;
        let rank = rows::thread_rank(pid.into(), tid.into(), &name);
        let track = ThreadTrack { uuid, parent, pid, tid, name: &name, rank };
        track.write(self.out, sequence);
    }

    /// Describes `uuid`, which is a track or one of its lanes.
    pub fn write_track(&mut self, uuid: u64, named: &Named, sequence: u32) {
        let name = std::str::from_utf8(&named.name).ok();
        if let Some(row) = name.filter(|_| named.parent == 0).and_then(Beside::named) {
            let Process { uuid: process, groups, devices, .. } = &mut *self.process;
            // CUDA's backend alone has such rows.
            let device = devices.inventory.shown(Vendor::Nvidia, row.device);
            return groups.write(self.out, *process, (uuid, Beside { device, ..row }), sequence);
        }
        Track {
            uuid,
            parent: self.process.track_uuid(named.parent),
            name: &named.name,
            counter: None,
            rank: named.rank,
            orders_children: true,
        }
        .write(self.out, sequence);
    }
}
