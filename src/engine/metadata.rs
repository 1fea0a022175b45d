//! What a trace says of itself.

use kymograph_protos::packet::{self, Fact};

use super::Engine;
use crate::process::identity::mix;
use crate::process::job;

impl Engine {
    /// What it says first.
    pub(super) fn introduce(&mut self) {
        let metadata = [("kymograph.version", Fact::Text(env!("CARGO_PKG_VERSION")))];
        packet::trace_attributes(&mut self.output.packets, self.process.sequence.id(), &metadata);
        self.state_place();
        // Of several processes that write a trace, the first speaks for all.
        if self.process.devices.serial <= 1 {
            self.state_system();
        }
    }

    fn state_system(&mut self) {
        let sequence = self.process.sequence.id();
        let system = job::system();
        let names = std::array::from_fn(|at| system.names[at].as_slice());
        let host = system.host.as_slice();
        let (page_size, processors) = (system.page_size, system.processors);
        let stated = packet::System { names, host, page_size, processors };
        packet::system_info(&mut self.output.packets, sequence, &stated);
        // No two recordings of a process start at the same time, and no two parts of one.
        let now = self.clocks;
        let of = |salt| mix(&[self.process.uuid, now.boottime, now.realtime, salt]);
        packet::trace_uuid(&mut self.output.packets, sequence, [of(1), of(2)]);
    }

    /// Where the process runs: what joins its trace with those of others.
    fn state_place(&mut self) {
        let prefix = format!("kymograph.{}", self.process.pid);
        let place = self.process.place.iter();
        let place: Vec<_> = place.map(|(key, n)| (format!("{prefix}.{key}"), *n)).collect();
        let about = self.origin.about.iter().map(|(key, text)| (key.as_str(), Fact::Text(text)));
        let place = place.iter().map(|(key, n)| (key.as_str(), Fact::Number(*n)));
        let metadata: Vec<_> = about.chain(place).collect();
        packet::trace_attributes(&mut self.output.packets, self.process.sequence.id(), &metadata);
    }

    /// The counts that people ask for, in the trace itself.
    pub(super) fn state_metadata(&mut self) {
        let summary = self.summary();
        let number = |n: u64| Fact::Number(n as i64);
        let prefix = format!("kymograph.{}", self.process.pid);
        let rows = [
            ("events", self.totals.events),
            ("lost", summary.lost),
            ("reentrant", summary.reentrant),
            ("truncated_strings", summary.truncated),
            ("unmatched_ends", summary.unmatched_ends),
            ("misnested", summary.misnested),
            ("clamped_times", summary.clamped),
            ("unknown_records", summary.unknown),
            ("launches_without_work", self.process.spans.without_work),
            ("launches_unfollowed", self.process.spans.unfollowed),
            ("launches_ambiguous", self.process.spans.ambiguous),
            ("device_ranges_too_deep", self.process.spans.too_deep),
            ("device_ranges_moved", self.process.spans.moved),
            ("gpu_counters_lost", self.process.gpu_counters.lost),
        ];
        let keys = rows.map(|(key, _)| format!("{prefix}.{key}"));
        let metadata: Vec<_> =
            keys.iter().zip(rows).map(|(k, (_, n))| (k.as_str(), number(n))).collect();
        packet::trace_attributes(&mut self.output.packets, self.process.sequence.id(), &metadata);
        let window = self.shared.window.bounds(&self.converter);
        if !window.is_all() && window.is_open() {
            let (opened, closed) = window.nanos(&self.converter);
            let keys = ["opened", "closed"].map(|edge| format!("{prefix}.window.{edge}"));
            let metadata = [(keys[0].as_str(), number(opened)), (keys[1].as_str(), number(closed))];
            packet::trace_attributes(
                &mut self.output.packets,
                self.process.sequence.id(),
                &metadata,
            );
        }
        for (key, value) in self.shared.metadata() {
            let key = format!("{prefix}.{key}");
            let metadata = [(key.as_str(), Fact::Text(&value))];
            packet::trace_attributes(
                &mut self.output.packets,
                self.process.sequence.id(),
                &metadata,
            );
        }
        let lanes = self.lanes.threads.iter().flatten().filter(|t| t.reader.losses().dropped > 0);
        let lanes: Vec<_> = lanes
            .map(|t| (format!("{prefix}.lost.thread.{}", t.tid), t.reader.losses().dropped))
            .collect();
        let metadata: Vec<_> = lanes.iter().map(|(k, n)| (k.as_str(), number(*n))).collect();
        if !metadata.is_empty() {
            packet::trace_attributes(
                &mut self.output.packets,
                self.process.sequence.id(),
                &metadata,
            );
        }
    }
}
