//! The thread that reads PTI's buffers.

use std::time::{Duration, Instant};

use kymograph_protos::Recorder;

use super::buffers;
use super::collect::describe;
use super::decode::Decoder;
use super::layout::Sizes;
use super::library::Found;
use super::selection::Selection;
use super::share;
use super::sys::{END_OF_BUFFER, SUCCESS};
use crate::device::pool::{Counts, Full};
use crate::device::remark::{counts, fact};
use crate::device::thread::wait;
use crate::device::walk;
use crate::device::worker::{self, Worker};

/// How often finished buffers are looked for.
const NAP: Duration = Duration::from_millis(10);
/// How often PTI is asked for buffers that are not full.
///
/// Its flush hands buffers over without the lock that insertion takes (view_handler.h,
/// `FlushBuffers`): each may lose a record that is being written.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long a pipeline that does not keep up is waited for.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(1);

/// A recording of this source.
pub(crate) struct Session {
    recorder: &'static dyn Recorder,
    found: &'static Found,
    selection: Selection,
    sizes: Sizes,
    decoder: Decoder,
    flushed: Instant,
    discarded: u64,
    /// Buffers whose records ended in something that PTI could not step over.
    broken: u64,
    before: Counts,
    /// Records that another user of PTI had got by then.
    shared: u64,
    refused: Option<i32>,
}

impl Session {
    pub(crate) fn new(
        recorder: &'static dyn Recorder,
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
            flushed: Instant::now(),
            discarded: 0,
            broken: 0,
            before: buffers::counts(),
            shared: share::copied(),
            refused: None,
        }
    }

    /// Until the recording stops.
    pub(crate) fn run(mut self, worker: &Worker) {
        while !worker.stopping() {
            let wanted = worker.wanted();
            if wanted.is_some() || self.flushed.elapsed() >= FLUSH_EVERY {
                self.flush();
            }
            self.read(false);
            if let Some(ticket) = wanted {
                worker.flushed(ticket);
            }
            std::thread::park_timeout(NAP);
        }
        self.end();
    }

    fn end(mut self) {
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

    fn flush(&mut self) {
        self.flushed = Instant::now();
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
        while let Some(full) = buffers::take_full() {
            self.buffer(&full);
            buffers::recycle(full);
            worker::moves();
        }
        let discarded = buffers::counts().discarded - self.before.discarded;
        self.recorder.lost(discarded - self.discarded);
        self.discarded = discarded;
        self.decoder.settle(last);
    }

    fn buffer(&mut self, full: &Full) {
        let next = self.found.pti.next_record;
        let (sizes, recorder) = (self.sizes, self.recorder);
        let size = |kind| sizes.of(kind);
        let pace = || keep_pace(recorder);
        // SAFETY: the buffer is ours now; names in its records are PTI's C strings.
        let whole = unsafe {
            walk::records(next, END_OF_BUFFER, full, size, |raw| self.decoder.record(raw), pace)
        };
        if !whole {
            // How many records that are is unknown: one at least.
            self.broken += 1;
            self.recorder.lost(1);
        }
    }

    /// What came of it, in the trace.
    fn state(&self, stopping: Instant) {
        let missing = self.decoder.missing().saturating_sub(self.discarded);
        self.recorder.lost(missing);
        let decoded = self.decoder.counts;
        let now = buffers::counts();
        let foreign = now.foreign - self.before.foreign;
        let rows = [
            ("kernels", decoded.kernels),
            ("copies", decoded.copies),
            ("fills", decoded.fills),
            ("calls", decoded.calls),
            ("waits", decoded.waits),
            ("collectives", decoded.collectives),
            ("overheads", decoded.overheads),
            ("records_skipped", decoded.skipped),
            ("lost.without_times", decoded.timeless),
            ("lost.in_the_future", decoded.future),
            ("lost.discarded", self.discarded),
            ("lost.never_reported", missing),
            ("buffers", (now.completed - self.before.completed).saturating_sub(foreign)),
            ("buffers_of_others", foreign),
            ("records_shared", share::copied() - self.shared),
            ("buffers_broken", self.broken),
            ("stop_us", stopping.elapsed().as_micros() as u64),
        ];
        counts(self.recorder, "xpu", &rows);
        if let Some(code) = self.refused {
            let why = format!("ptiFlushAllViews: {}", describe(&self.found.pti, code));
            fact(self.recorder, &format!("xpu.{}.error", std::process::id()), &why);
        }
    }
}

/// Waits for the pipeline rather than lose records: the buffers that PTI fills meanwhile are
/// bounded, too.
fn keep_pace(recorder: &dyn Recorder) {
    worker::moves();
    wait(BACKLOG_TIMEOUT, || !recorder.crowded());
}
