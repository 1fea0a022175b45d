//! The thread that reads PTI's buffers.

use std::time::{Duration, Instant};

use kymograph_protos::ColdRecorder;

use super::buffers::BUFFERS;
use super::collect::describe;
use super::decode::Decoder;
use super::layout::Sizes;
use super::library::Found;
use super::selection::Selection;
use super::share;
use super::sys::{END_OF_BUFFER, SUCCESS};
use crate::device::buffers::Reading;
use crate::device::names;
use crate::device::pool::Full;
use crate::device::raw::Raw;
use crate::device::reader::{Reader, Round, keep_pace};
use crate::device::remark::{counts, fact};
use crate::device::worker::{self, Worker};

/// How long a pipeline that does not keep up is waited for.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(1);

/// A recording of this source.
pub(crate) struct Session {
    recorder: &'static dyn ColdRecorder,
    found: &'static Found,
    selection: Selection,
    sizes: Sizes,
    decoder: Decoder,
    reading: Reading,
    /// Records that another user of PTI had got by then.
    shared: u64,
    refused: Option<i32>,
}

impl Reader for Session {
    const NAP: Duration = Duration::from_millis(10);
    /// PTI's flush hands buffers over without the lock that insertion takes (view_handler.h,
    /// `FlushBuffers`): each may lose a record that is being written.
    const FLUSH_EVERY: Duration = Duration::from_secs(1);

    fn round(&mut self, _worker: &Worker, round: Round) {
        if round.due {
            self.flush();
        }
        self.read(false);
    }

    fn end(mut self, _worker: &Worker) {
        let started = Instant::now();
        self.flush();
        self.read(false);
        for kind in self.selection.kinds() {
            if share::disabled(kind) {
                // SAFETY: a number.
                unsafe { (self.found.pti.disable)(kind) };
            }
        }
        self.flush();
        self.read(true);
        share::reading(false);
        self.state(started);
    }
}

impl Session {
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        found: &'static Found,
        selection: Selection,
        sizes: Sizes,
        decoder: Decoder,
    ) -> Session {
        Session {
            recorder,
            found,
            selection,
            sizes,
            decoder,
            reading: Reading::new(&BUFFERS, recorder, END_OF_BUFFER),
            shared: share::copied(),
            refused: None,
        }
    }

    fn flush(&mut self) {
        self.decoder.clock.look();
        // SAFETY: this is not one of PTI's callbacks.
        let result = unsafe { (self.found.pti.flush_all)() };
        if result != SUCCESS {
            self.refused = Some(result);
        }
        self.decoder.flushed();
        worker::moves();
    }

    /// Decodes all buffers that were handed over.
    fn read(&mut self, last: bool) {
        while let Some(full) = BUFFERS.take_full() {
            self.buffer(&full);
            BUFFERS.recycle(full);
            worker::moves();
        }
        self.reading.count_discarded();
        self.decoder.settle(last);
    }

    fn buffer(&mut self, full: &Full) {
        let (sizes, recorder) = (self.sizes, self.recorder);
        let size = |kind| sizes.of(kind);
        let pace = || keep_pace(recorder, BACKLOG_TIMEOUT, || false);
        let decoder = &mut self.decoder;
        // SAFETY: names in the records are PTI's C strings.
        let read = |raw: Raw<'_>| unsafe { decoder.record(raw) };
        // SAFETY: the buffer is ours now.
        unsafe { self.reading.buffer(full, size, read, pace) };
    }

    /// What came of it, in the trace.
    fn state(&self, stopping: Instant) {
        let now = self.reading.counts();
        let missing = self.decoder.missing().saturating_sub(now.discarded);
        self.recorder.lost(missing);
        let decoded = self.decoder.counts;
        let rows = [
            ("kernels", decoded.kernels),
            ("copies", decoded.copies),
            ("fills", decoded.fills),
            ("calls", decoded.calls),
            ("waits", decoded.waits),
            ("collectives", decoded.collectives),
            ("overheads", decoded.overheads),
            ("records_skipped", decoded.skipped),
            ("lost.without_times", self.decoder.present.timeless),
            ("lost.in_the_future", self.decoder.present.future),
            ("lost.discarded", now.discarded),
            ("lost.never_reported", missing),
            ("buffers", now.completed.saturating_sub(now.foreign)),
            ("buffers_of_others", now.foreign),
            ("records_shared", share::copied() - self.shared),
            ("buffers_broken", self.reading.broken),
            ("stop_us", stopping.elapsed().as_micros() as u64),
        ];
        counts(self.recorder, names::INTEL, &rows);
        if let Some(code) = self.refused {
            let why = format!("ptiFlushAllViews: {}", describe(&self.found.pti, code));
            fact(self.recorder, &names::INTEL.of_process("error"), &why);
        }
    }
}
