//! Named tracks.

use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::record::{ArgType, Extra, Kind, Record};
use kymograph_protos::{Recorder, StrId};

use super::range::unique;
use crate::intern::INTERNER;
use crate::recorder::PIPELINE;
use crate::recording;
use crate::{clock, lifecycle};

/// A row of its own, under the process or another track, for ranges and instants.
///
/// ```
/// use kymograph::{Track, instant, range};
///
/// let requests = Track::new("requests").rank(1);
/// let request = range!(track: &requests, "GET /", bytes = 512);
/// instant!(track: &requests, "cache miss");
/// std::thread::spawn(move || request.end()).join().unwrap();
/// ```
#[derive(Debug)]
pub struct Track {
    id: u64,
    name: Box<str>,
    parent: u64,
    rank: Option<i32>,
    /// The recording in which it was described.
    described: AtomicU64,
}

impl Track {
    /// A track called `name`, under the process.
    pub fn new(name: &str) -> Track {
        Track {
            id: unique(),
            name: name.into(),
            parent: 0,
            rank: None,
            described: AtomicU64::new(0),
        }
    }

    /// Puts it under another track.
    #[must_use]
    pub fn under(mut self, parent: &Track) -> Track {
        self.parent = parent.id();
        self
    }

    /// Its place among its siblings: lower ranks come first.
    #[must_use]
    pub fn rank(mut self, rank: i32) -> Track {
        self.rank = Some(rank);
        self
    }

    /// Its id, once it is described in the running recording.
    pub(crate) fn id(&self) -> u64 {
        lifecycle::before_first_event();
        let current = recording::generation();
        if current != 0 && self.described.swap(current, Ordering::Relaxed) != current {
            self.describe();
        }
        self.id
    }

    fn describe(&self) {
        let site = INTERNER.intern(StrId::NONE, StrId::NONE, self.name.as_bytes());
        let head = Record {
            time: clock::ticks(),
            other: self.id,
            arg: self.parent,
            site,
            kind: Kind::Track as u8,
            ..Record::default()
        };
        let rank = self.rank.map(|rank| Extra::new(StrId::NONE, ArgType::I64, rank as i64 as u64));
        let name: &[u8] = if site.is_none() { self.name.as_bytes() } else { &[] };
        PIPELINE.push_named(head, rank.as_slice(), name);
    }
}
