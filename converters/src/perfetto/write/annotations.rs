//! Ranges of the program beside the queues that worked for them: for viewers, once more.
//!
//! They are slices of tracks of their own ([`super::tracks`]), which is what readers take them
//! from; in the row beside a queue, people see them with its work. Readers of ours pass that
//! over. Traces of other formats come without it: who counts their slices by SQL gets what they
//! have.

use std::cmp::Reverse;
use std::io::{self, Write};

use hashbrown::HashMap;
use kymograph_protos::device::Stage;
use kymograph_protos::packet::{ContextEntry, Name, RenderStage, Sequence, StageEntry};
use kymograph_protos::rows::{self, Beside, Of};

use super::device::{Numbers, new_context};
use super::{FULL, Writer};
use crate::trace::{ContextId, QueueId, Slice, SliceId, Trace, Track};

impl<W: Write> Writer<'_, W> {
    /// The rows, queue by queue. `numbers`: what `sequence` was told.
    pub(super) fn annotations(
        &mut self,
        sequence: &mut Sequence,
        numbers: &mut Numbers,
        contexts: &HashMap<QueueId, ContextId>,
    ) -> io::Result<()> {
        for (queue, slices) in of_queues(self.trace) {
            let name = self.trace.strings.get(self.trace.queues[queue].name);
            let row = Row {
                queue,
                name: rows::annotations(&rows::queue(name, "")),
                context: contexts.get(&queue).copied(),
            };
            for id in slices {
                let slice = self.trace.slices.get(id);
                let time = slice.start.0.checked_add(self.shift);
                let Some(time) = time.and_then(|time| u64::try_from(time).ok()) else { continue };
                if self.ready(sequence, 0, time) {
                    numbers.forget();
                }
                self.annotation(sequence, numbers, &row, (&slice, time));
                self.flush(FULL)?;
            }
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        sequence: &mut Sequence,
        numbers: &mut Numbers,
        row: &Row,
        (slice, time): (&Slice, u64),
    ) {
        let queue = self.trace.queues[row.queue];
        let stage = StageEntry {
            number: numbers.annotation,
            name: Stage::Annotation.name().as_bytes(),
            description: Stage::Annotation.description().as_bytes(),
            category: 0,
        };
        let number = numbers.beside[row.queue.index()];
        let beside = StageEntry { number, name: row.name.as_bytes(), description: &[], ..stage };
        let (is_first, is_new) = numbers.tell_annotation(row.queue);
        let new = [(is_first, stage), (is_new, beside)].into_iter();
        let stages: Vec<_> = new.filter(|(new, _)| *new).map(|(_, entry)| entry).collect();
        let contexts: Option<ContextEntry> = new_context(self.trace, numbers, row.context);
        let stage = RenderStage {
            time,
            duration: slice.dur.0.max(0) as u64,
            gpu: self.trace.devices[queue.device].number,
            context: row.context.map(|context| numbers.contexts[context.index()]),
            queue: number,
            stage: Some(numbers.annotation),
            name: Name::Id(slice.name),
            new_stages: &stages,
            new_contexts: contexts.as_slice(),
            ..RenderStage::default()
        };
        sequence.render_stage(&mut self.packets, &self.texts, &stage);
    }
}

/// A row beside a queue.
struct Row {
    queue: QueueId,
    name: String,
    context: Option<ContextId>,
}

/// The ranges that each queue worked for, each after those around it.
fn of_queues(trace: &Trace) -> Vec<(QueueId, Vec<SliceId>)> {
    let mut rows: HashMap<_, QueueId> = HashMap::new();
    for (id, track) in trace.tracks.iter().filter(|_| trace.annotated) {
        if let Some(queue) = queue(trace, track) {
            rows.insert(id, queue);
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let finished = |id: &SliceId| trace.slices.get(*id).dur.is_finished();
    let ids = trace.slices.by_track().into_iter().filter(finished);
    let of = |id| Some((*rows.get(&trace.slices.get(id).track)?, id));
    let mut slices: Vec<(QueueId, SliceId)> = ids.filter_map(of).collect();
    slices.sort_by_key(|(queue, id)| {
        let slice = trace.slices.get(*id);
        (*queue, slice.start, Reverse(slice.dur))
    });
    let of_queue = slices.chunk_by(|a, b| a.0 == b.0);
    of_queue.map(|chunk| (chunk[0].0, chunk.iter().map(|(_, id)| *id).collect())).collect()
}

/// The queue whose annotations a track has.
fn queue(trace: &Trace, track: &Track) -> Option<QueueId> {
    let beside = Beside::named(trace.strings.get(track.name))?;
    if beside.of != Of::Annotations {
        return None;
    }
    let is_its = |id: &QueueId| {
        let device = trace.devices[trace.queues[*id].device].number;
        device == beside.device && trace.stream(*id) == beside.stream
    };
    if track.queue.is_some() {
        return track.queue;
    }
    let queues: Vec<QueueId> = trace.queues.iter().map(|(id, _)| id).filter(is_its).collect();
    // Processes that share a device are told apart by what their queues are called.
    let process = track.parent.and_then(|parent| trace.process_of(parent));
    let rank = process.and_then(|process| trace.rank(process));
    let says = |id: &QueueId| {
        let name = trace.strings.get(trace.queues[*id].name);
        rank.is_some_and(|rank| name.ends_with(&format!("rank {rank}")))
    };
    queues.iter().copied().find(says).or(queues.first().copied())
}
