//! Named tracks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::record::{ArgType, Extra, Kind, Record};
use kymograph_protos::{Recorder, StrId};

use super::range::unique;
use crate::clock;
use crate::control::lifecycle;
use crate::intern::INTERNER;
use crate::recorder::PIPELINE;
use crate::recording;

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
#[derive(Clone, Debug)]
pub struct Track {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    name: Box<[u8]>,
    parent: Option<Track>,
    rank: Option<i32>,
    /// The recording in which it was described.
    described: AtomicU64,
}

impl Track {
    /// A track called `name`, under the process. Clones are the same track.
    ///
    /// A recording remembers its tracks to its end, at a few hundred bytes each: make one for
    /// each kind of row, not for each request. Ranges of one track that lie beside each other in
    /// time are shown beside each other.
    pub fn new(name: &str) -> Track {
        Track::with(name.as_bytes(), None, None)
    }

    /// Puts it under another track.
    #[must_use]
    pub fn under(self, parent: &Track) -> Track {
        Track::with(&self.inner.name, Some(parent.clone()), self.inner.rank)
    }

    /// Its place among its siblings: lower ranks come first.
    #[must_use]
    pub fn rank(self, rank: i32) -> Track {
        Track::with(&self.inner.name, self.inner.parent.clone(), Some(rank))
    }

    /// A track with all there is to say of it.
    pub(crate) fn with(name: &[u8], parent: Option<Track>, rank: Option<i32>) -> Track {
        let described = AtomicU64::new(0);
        Track {
            inner: Arc::new(Inner { id: unique(), name: name.into(), parent, rank, described }),
        }
    }

    /// A number that no other track has.
    #[cfg(feature = "tracing")]
    pub(crate) fn key(&self) -> u64 {
        self.inner.id
    }

    /// Its id, once it is described in the running recording.
    pub(crate) fn id(&self) -> u64 {
        let inner = &*self.inner;
        lifecycle::start_if_due();
        let current = recording::generation();
        if current != 0 && inner.described.swap(current, Ordering::Relaxed) != current {
            // Again with the next event if there was no room.
            if !self.describe() {
                inner.described.store(0, Ordering::Relaxed);
            }
        }
        inner.id
    }

    fn describe(&self) -> bool {
        let inner = &*self.inner;
        let head = Record {
            time: clock::ticks(),
            other: inner.id,
            // A parent is described with its children: it may have no events of its own.
            arg: inner.parent.as_ref().map_or(0, Track::id),
            site: INTERNER.intern(StrId::NONE, StrId::NONE, &inner.name),
            kind: Kind::Track as u8,
            ..Record::default()
        };
        let rank = inner.rank.map(|rank| Extra::new(StrId::NONE, ArgType::I64, rank as i64 as u64));
        let name: &[u8] = if head.site.is_none() { &inner.name } else { &[] };
        PIPELINE.push_named(head, rank.as_slice(), name)
    }
}
