//! The thread that waits for the end, and then reads everything.

use std::ffi::c_int;
use std::ptr;
use std::time::{Duration, Instant};

use kymograph_protos::ColdRecorder;

use super::clock::{self, Clock};
use super::collect::take_running;
use super::decode::Decoder;
use super::layout::{Trace, unit};
use super::sys::{FORMAT_TEF, SUCCESS, Synapse};
use crate::device::clock::Both;
use crate::device::error::{Error, Result};
use crate::device::names;
use crate::device::reader::{Reader, Round, keep_pace};
use crate::device::remark::{counts, fact, note, number};
use crate::device::worker::Worker;

/// How long a pipeline that does not keep up is waited for.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of a trace at most: a number that lies must not end the process.
const MAX_TRACE_BYTES: usize = 8 << 30;

/// A device that is being profiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) device: u32,
    /// `synTraceType`.
    pub(crate) what: c_int,
    pub(crate) start: Both,
}

/// A recording of this source.
pub(crate) struct Session {
    recorder: &'static dyn ColdRecorder,
    synapse: &'static Synapse,
    decoder: Decoder,
}

impl Reader for Session {
    const NAP: Duration = Duration::from_millis(10);
    /// Nothing can be had before the end.
    const FLUSH_EVERY: Duration = Duration::MAX;

    fn round(&mut self, _worker: &Worker, _round: Round) {}

    fn end(mut self, _worker: &Worker) {
        let started = Instant::now();
        for running in take_running() {
            if let Err(why) = self.finish(running) {
                // How much is missing is unknown.
                self.recorder.lost(1);
                let text = why.on_device(running.device).to_string();
                note(self.recorder, &format!("Gaudi: {text}"));
                fact(self.recorder, &format!("{}.error", prefix()), &text);
            }
        }
        self.state(started);
    }
}

impl Session {
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        synapse: &'static Synapse,
        all_args: bool,
    ) -> Session {
        Session { recorder, synapse, decoder: Decoder::new(recorder, all_args, pace) }
    }

    fn finish(&mut self, running: Running) -> Result<()> {
        let Running { device, what, start } = running;
        if let Some(synchronize) = self.synapse.synchronize {
            // SAFETY: a number. What the device still does belongs to the recording.
            unsafe { synchronize(device) };
        }
        let stop = clock::compare(self.synapse);
        // SAFETY: numbers.
        check("synProfilerStop", unsafe { (self.synapse.stop)(what, device) })?;
        let (buffer, size, count) = self.fetch(what, device)?;
        if count == 0 {
            return Ok(());
        }
        // SAFETY: `size` bytes of the buffer, which were initialised.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), size) };
        let trace = Trace::new(bytes, count)?;
        let clock = Clock::new(start, stop);
        let scale = unit(&trace, stop.unwrap_or(start).theirs);
        let rows = [
            ("trace_version", trace.version()),
            ("trace_event_bytes", trace.layout().stride() as u64),
            ("trace_unit_ns", scale),
            ("clock_jumps", clock.jumped.into()),
        ];
        for (key, value) in rows {
            number(self.recorder, &format!("{}.{device}.{key}", prefix()), value);
        }
        self.decoder.trace(&trace, device, clock, scale);
        Ok(())
    }

    /// The trace of a device: asked for its size first.
    fn fetch(&self, what: c_int, device: u32) -> Result<(Vec<u128>, usize, usize)> {
        let (mut size, mut count) = (0, 0);
        let get = self.synapse.trace;
        // SAFETY: stores two numbers.
        let result =
            unsafe { get(what, device, FORMAT_TEF, ptr::null_mut(), &mut size, &mut count) };
        check("synProfilerGetTrace", result)?;
        if size > MAX_TRACE_BYTES {
            return Err(format!("synProfilerGetTrace wants {size} bytes").into());
        }
        let room = size;
        // Aligned to 16 bytes, as `long double` is; zero where nothing is written.
        let mut buffer = vec![0_u128; size.div_ceil(16)];
        if count > 0 {
            // SAFETY: as many bytes as are said to be needed.
            let result = unsafe {
                get(what, device, FORMAT_TEF, buffer.as_mut_ptr().cast(), &mut size, &mut count)
            };
            check("synProfilerGetTrace", result)?;
        }
        Ok((buffer, size.min(room), count))
    }

    /// What came of it, in the trace.
    fn state(&self, stopping: Instant) {
        let decoded = self.decoder.counts;
        let rows = [
            ("kernels", decoded.kernels),
            ("copies", decoded.copies),
            ("sets", decoded.sets),
            ("others", decoded.others),
            ("calls", decoded.calls),
            ("noise", decoded.noise),
            ("arrows_ambiguous", decoded.ambiguous),
            ("names_lost", self.decoder.unnamed),
            ("lost.of_unknown_kind", decoded.skipped),
            ("lost.without_times", self.decoder.present.timeless),
            ("lost.in_the_future", self.decoder.present.future),
            ("lost.unfinished", decoded.unfinished),
            ("lost.unbegun", decoded.unbegun),
            ("stop_us", stopping.elapsed().as_micros() as u64),
        ];
        counts(self.recorder, names::GAUDI, &rows);
    }
}

pub(crate) fn prefix() -> String {
    format!("hpu.{}", std::process::id())
}

pub(crate) fn check(function: &'static str, result: c_int) -> Result<()> {
    if result == SUCCESS {
        Ok(())
    } else {
        Err(Error::call(function, format!("synStatus {result}")))
    }
}

fn pace(recorder: &dyn ColdRecorder) {
    keep_pace(recorder, BACKLOG_TIMEOUT, || false);
}
