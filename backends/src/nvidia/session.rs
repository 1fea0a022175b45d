//! The thread that reads CUPTI's buffers.

use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use kymograph_protos::ColdRecorder;

use super::buffers::BUFFERS;
use super::callbacks;
use super::clock::Clock;
use super::copies;
use super::counters::Sampler;
use super::decode::Decoder;
use super::detach;
use super::device;
use super::direct;
use super::enable;
use super::kinds::{Selection, kind};
use super::layout::Sizes;
use super::library::{self, Found};
use super::other;
use super::relay;
use super::sync;
use super::sys::{CAPTURE_MODE_RELAXED, Cuda, FLUSH_FORCED, SUCCESS};
use crate::device::buffers::Reading;
use crate::device::names;
use crate::device::pool::{Counts, Full};
use crate::device::raw::Raw;
use crate::device::reader::{Reader, Round, keep_pace};
use crate::device::remark::{self, counts, fact, note};
use crate::device::worker::{self, Worker};
use crate::guard::without_signals;
use crate::source::Settings;

/// How long devices may take to finish what they do when a recording stops.
const SYNC_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a stop waits for a pipeline that does not keep up.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(1);
/// Flushes without a record, though work was asked for, that mean that records go
/// elsewhere.
const SILENCE: u32 = 8;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED`: the end of a buffer.
const END_OF_BUFFER: i32 = 12;
/// The release of CUDA 13.0 in which disabling kernels could deadlock (release notes of
/// Update 1).
const KEEPS_KERNELS: u32 = 130_000;

/// A recording of this source.
pub(crate) struct Session {
    recorder: &'static dyn ColdRecorder,
    cuda: &'static Cuda,
    found: &'static Found,
    subscriber: *mut c_void,
    selection: Selection,
    sizes: Sizes,
    /// Whether CUPTI is to leave the process afterwards.
    leaves: bool,
    decoder: Decoder,
    described: bool,
    dropped: u64,
    reading: Reading,
    /// Calls that waited, for which there was no room.
    lost_waits: u64,
    silence: u32,
    sampler: Option<Sampler>,
    seen: Counts,
}

// SAFETY: the subscriber is a handle that CUPTI takes on any thread.
unsafe impl Send for Session {}

impl Reader for Session {
    const NAP: Duration = Duration::from_millis(10);
    const FLUSH_EVERY: Duration = Duration::from_millis(250);

    fn round(&mut self, worker: &Worker, round: Round) {
        self.decoder.waited();
        if round.due {
            self.decoder.clock.look();
            self.flush(0);
            self.count_dropped();
            self.listen();
        }
        self.read(worker);
        if round.due {
            self.decoder.settle(false);
        }
        self.sample();
    }

    fn end(mut self, worker: &Worker) {
        let started = Instant::now();
        self.decoder.clock.look();
        self.flush(0);
        self.read(worker);
        self.describe_devices();
        if callbacks::context_seen() || self.reading.counts() != Counts::default() {
            self.synchronise();
            worker::moves();
        }
        let keeps = self.found.version == KEEPS_KERNELS;
        self.disable(|kind| kind != kind::CONCURRENT_KERNEL || !keeps);
        self.flush(FLUSH_FORCED);
        self.read(worker);
        self.decoder.waited();
        self.decoder.settle(true);
        self.count_dropped();
        self.sampler.iter_mut().for_each(Sampler::hurry);
        self.sample();
        match self.leaves {
            true => detach::ask(
                &self.found.cupti,
                self.found.version,
                self.subscriber,
                callbacks::watch_ends,
            ),
            false => relay::give_up(self.subscriber),
        }
        self.state(started);
    }
}

impl Session {
    #[allow(clippy::too_many_arguments, reason = "one caller")]
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        cuda: &'static Cuda,
        found: &'static Found,
        subscriber: *mut c_void,
        selection: Selection,
        sizes: Sizes,
        clock: Clock,
        settings: &Settings,
    ) -> Session {
        Session {
            recorder,
            cuda,
            found,
            subscriber,
            selection,
            decoder: Decoder::new(recorder, clock, sizes.version, settings.all_args),
            sizes,
            leaves: settings.cupti_finalize,
            described: false,
            dropped: 0,
            reading: Reading::new(&BUFFERS, recorder, END_OF_BUFFER),
            lost_waits: 0,
            silence: 0,
            sampler: settings.gpu_counters.map(|every| Sampler::new(recorder, every)),
            seen: BUFFERS.counts(),
        }
    }

    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            let cuda = self.cuda;
            sampler.sample(self.decoder.places.devices(), |number| device::uuid_of(cuda, number));
        }
    }

    fn disable(&self, which: impl Fn(u32) -> bool) {
        for kind in self.selection.kinds().filter(|kind| which(*kind)) {
            if other::disabled(kind) {
                // SAFETY: a number.
                unsafe { (self.found.cupti.disable)(kind) };
            }
        }
    }

    /// Puts the devices into the inventory, once the driver can be asked: it cannot while
    /// it initialises, and it calls us in the middle of that.
    fn describe_devices(&mut self) {
        if !self.described {
            self.described = true;
            state_versions(self.recorder, self.cuda, self.found);
            self.decoder.devices = device::inventory(self.cuda, self.recorder);
        }
    }

    fn flush(&self, flag: u32) {
        // SAFETY: this is neither one of CUPTI's callbacks nor under a lock.
        unsafe { (self.found.cupti.flush_all)(flag) };
        worker::moves();
    }

    /// Decodes all buffers that were handed over.
    fn read(&mut self, worker: &Worker) {
        if callbacks::context_seen() {
            self.describe_devices();
        }
        while let Some(full) = BUFFERS.take_full() {
            self.describe_devices();
            self.buffer(&full, worker);
            BUFFERS.recycle(full);
            worker::moves();
        }
    }

    fn buffer(&mut self, full: &Full, worker: &Worker) {
        let (sizes, recorder) = (self.sizes, self.recorder);
        let size = |kind| sizes.of(kind);
        // As long as the recording goes on.
        let pace = || keep_pace(recorder, BACKLOG_TIMEOUT, || !worker.stopping());
        let decoder = &mut self.decoder;
        // SAFETY: names in the records are CUPTI's C strings.
        let read = |raw: Raw<'_>| unsafe { decoder.record(raw) };
        // SAFETY: the buffer is ours now.
        unsafe { self.reading.buffer(full, size, read, pace) };
    }

    fn count_dropped(&mut self) {
        let mut dropped = 0;
        // SAFETY: stores a number; null and 0 mean all of them. Not under a lock: a
        // request for a buffer might wait for it.
        let result = unsafe { (self.found.cupti.dropped)(ptr::null_mut(), 0, &mut dropped) };
        self.reading.count_discarded();
        let waits = sync::lost();
        self.recorder.lost(waits);
        self.lost_waits += waits;
        if result == SUCCESS && dropped > 0 {
            self.dropped += dropped as u64;
            self.recorder.lost(dropped as u64);
            note(self.recorder, &format!("{dropped} CUDA records dropped"));
        }
    }

    /// Notices when work is asked for and no record of it arrives.
    fn listen(&mut self) {
        let now = BUFFERS.counts();
        if now != self.seen {
            self.seen = now;
            self.silence = 0;
            callbacks::launched();
        } else if callbacks::launched() {
            self.silence += 1;
        }
    }

    /// Lets the devices finish: a forced flush takes the records of what still runs before
    /// it is over. On a thread of its own, since what runs may never end.
    fn synchronise(&self) {
        let cuda = self.cuda;
        let known: Vec<usize> = callbacks::contexts().map(|c| c as usize).collect();
        let (sender, receiver) = std::sync::mpsc::channel();
        let body = move || {
            synchronise(cuda, &known);
            let _ = sender.send(());
        };
        let builder = std::thread::Builder::new().name("kymograph-sync".into());
        if without_signals(|| builder.spawn(body)).is_ok() {
            let _ = receiver.recv_timeout(SYNC_TIMEOUT);
        }
    }

    /// What came of it, in the trace.
    fn state(&self, stopping: Instant) {
        let decoded = self.decoder.counts;
        let now = self.reading.counts();
        let (errors, first) = callbacks::errors();
        let rows = [
            ("kernels", decoded.kernels),
            ("copies", decoded.copies),
            ("sets", decoded.sets),
            ("graphs", decoded.graphs),
            ("waits", decoded.waits),
            ("kernels_without_call", decoded.uncalled),
            ("records_skipped", decoded.skipped),
            ("lost.dropped_by_cupti", self.dropped),
            ("lost.without_times", self.decoder.present.timeless),
            ("lost.in_the_future", self.decoder.present.future),
            ("lost.discarded", now.discarded),
            ("lost.waits", self.lost_waits),
            ("buffers", now.completed),
            ("buffers_refused", now.refused),
            ("buffers_of_others", now.foreign),
            ("buffers_broken", self.reading.broken),
            ("records_shared", copies::copied()),
            ("errors", errors),
            ("stop_us", stopping.elapsed().as_micros() as u64),
        ];
        if let Some(sampler) = &self.sampler {
            let took = sampler.took.as_micros() as u64;
            counts(self.recorder, names::NVML, &[("rounds", sampler.rounds), ("took_us", took)]);
        }
        counts(self.recorder, names::NVIDIA, &rows);
        enable::state(self.recorder);
        let prefix = format!("cuda.{}", std::process::id());
        if direct::missed() {
            let many = decoded.uncalled;
            let what = format!(
                "{many} kernels have no arrow: the program launched them by the driver API, long \
                 after it got them, before that was noticed"
            );
            remark::tell(self.recorder, &what);
        }
        let since = direct::story(&self.found.cupti);
        fact(self.recorder, &format!("{prefix}.driver_launches_since"), &since);
        if let Some((code, message)) = first {
            fact(self.recorder, &format!("{prefix}.error"), &format!("{message} ({code})"));
        }
        if self.silence >= SILENCE {
            let why = "work was asked for, but its records went elsewhere: another user of \
                       CUPTI in the process replaced our callbacks; record without it";
            remark::not_recorded(self.recorder, names::NVIDIA, why);
        }
    }
}

/// Waits for all work of the contexts that are known, or else of the primary ones.
fn synchronise(cuda: &Cuda, known: &[usize]) {
    let (Some(set), Some(synchronise)) = (cuda.set_context, cuda.synchronize) else { return };
    if let Some(exchange) = cuda.exchange_capture_mode {
        let mut mode = CAPTURE_MODE_RELAXED;
        // A wait must not break a capture that another thread is in the middle of.
        // SAFETY: exchanges a number.
        unsafe { exchange(&mut mode) };
    }
    for context in known {
        // SAFETY: a context that was not destroyed; if it is by now, the driver says so.
        unsafe {
            if set(*context as *mut c_void) == 0 {
                synchronise();
            }
        }
    }
    if !known.is_empty() {
        return;
    }
    let mut count = 0;
    let (Some(state), Some(retain), Some(release)) =
        (cuda.primary_state, cuda.primary_retain, cuda.primary_release)
    else {
        return;
    };
    // SAFETY: each call stores what its type says. A primary context is retained only if
    // the program has made it, and only for as long as we use it.
    unsafe {
        if (cuda.device_count)(&mut count) != 0 {
            return;
        }
        for ordinal in 0..count {
            let (mut device, mut flags, mut active) = (0, 0, 0);
            let mut context = ptr::null_mut();
            if (cuda.device)(&mut device, ordinal) == 0
                && state(device, &mut flags, &mut active) == 0
                && active != 0
                && retain(&mut context, device) == 0
            {
                if set(context) == 0 {
                    synchronise();
                    set(ptr::null_mut());
                }
                release(device);
            }
        }
    }
}

fn state_versions(recorder: &dyn ColdRecorder, cuda: &Cuda, found: &Found) {
    let mut driver = 0;
    // SAFETY: stores a number.
    unsafe { (cuda.driver_version)(&mut driver) };
    let path = found.path.as_ref().map_or_else(String::new, |p| p.display().to_string());
    let whose = if found.shared { "the program's" } else { "loaded for the recording" };
    let text = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
    fact(recorder, "cuda.driver", &text(driver));
    if let Some(version) = library::runtime_version() {
        fact(recorder, "cuda.runtime", &text(version));
    }
    fact(recorder, "cuda.cupti", &format!("{} ({path}, {whose})", found.version));
}
