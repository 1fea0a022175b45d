//! What takes time and belongs to no queue and no thread: overheads and waits.

use kymograph_protos::StrId;

use super::decode::Decoder;
use super::kinds::Overhead;
use super::names;
use super::places::Track;
use super::sync::{Action, Called};
use super::waits::Wait;
use crate::device::args::Args;

impl Decoder {
    /// What recording itself costs.
    pub(super) fn overhead(&mut self, record: Overhead<'_>) {
        let name = names::overhead(record.what());
        let times = (record.start(), record.end());
        self.timed(self.keys.overhead, name, times, Some(Track::Overhead), &Args::new());
    }

    /// A wait, when it is known what it was for.
    pub(super) fn wait(&mut self, wait: &Wait) {
        self.counts.waits += 1;
        let Called { action, start, end, context, stream, .. } = wait.called;
        let device = self.places.device_of(context);
        let mut args = Args::new();
        wait.describe(&self.keys, device, &mut args);
        let of_stream = action == Action::Stream;
        let track = device.map(|device| Track::Waits { device, stream, of_stream });
        self.range(self.keys.cuda_sync, names::wait(action), (start, end), track, &args);
    }

    /// The same as `range`, of times of CUPTI's.
    pub(super) fn timed(
        &mut self,
        category: StrId,
        name: &str,
        (start, end): (u64, u64),
        track: Option<Track>,
        args: &Args,
    ) {
        if let Some(times) = self.times(start, end) {
            self.range(category, name, times, track, args);
        }
    }

    /// A slice that belongs to no queue and no thread. Without a track it lies on one that
    /// is called like its category.
    fn range(
        &mut self,
        category: StrId,
        name: &str,
        times: (u64, u64),
        track: Option<Track>,
        args: &Args,
    ) {
        let mut all = Args::new();
        if let Some(track) = track {
            all.push(self.places.track(track, self.recorder));
        }
        args.extras().iter().for_each(|arg| all.push(*arg));
        let site = self.recorder.intern_or_wait(category, name.as_bytes());
        self.ranges.push(site, times, all.extras());
    }
}
