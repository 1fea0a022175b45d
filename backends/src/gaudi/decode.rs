//! The events of one trace become records.
//!
//! A beginning and an end belong together by engine and context, in the order in which they
//! come; complete events stand alone. Host events lie on tracks of their own, one for each of
//! Synapse's threads; what devices did, on queues that are their engines.

use std::collections::{HashMap, VecDeque};

use kymograph_protos::device::{DeviceSlot, GpuApi, Stage, Vendor};
use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::args::Keys;
use super::arrows::{Arrows, Launch};
use super::clock::Clock;
use super::engines::{Engines, Role, stage};
use super::layout::{Event, NAME, OPERATION, Trace};
use super::texts::Texts;
use crate::device::args::Args;
use crate::device::names;
use crate::device::present::Present;
use crate::device::ranges::{Ids, Ranges};
use crate::device::sample;

/// What a call is named that launches a recipe.
const LAUNCH: &[u8] = b"enqueueWithExternalEvents";
/// Upper bits of our ids of ranges and tracks ("HP"): other sources number theirs too.
const OURS: Ids = Ids::of(*b"HP");
/// Queues that are at hand.
const RECENT: usize = 64;
/// Events that are decoded between two looks at whether the pipeline keeps up.
const BATCH: u64 = 512;

/// What was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kernels: u64,
    pub(crate) copies: u64,
    pub(crate) sets: u64,
    pub(crate) others: u64,
    pub(crate) calls: u64,
    pub(crate) noise: u64,
    /// Events of a letter that is not understood.
    pub(crate) skipped: u64,
    /// Activities that may be of several launches, and have no arrow.
    pub(crate) ambiguous: u64,
    /// Beginnings without an end, and ends without a beginning.
    pub(crate) unfinished: u64,
    pub(crate) unbegun: u64,
}

/// What stays the same from trace to trace of a process.
pub(crate) struct Decoder {
    pub(crate) recorder: &'static dyn ColdRecorder,
    pub(crate) counts: Counts,
    pub(crate) present: Present,
    keys: Keys,
    all_args: bool,
    queues: HashMap<(u32, u32, u32), u32>,
    /// The queues before, by the lower bits of their engines' numbers.
    recent: [((u32, u32, u32), u32); RECENT],
    tracks: HashMap<u32, u64>,
    ranges: Ranges,
    launches: u64,
    /// Names that lie elsewhere than in the buffer.
    pub(crate) unnamed: u64,
    pace: fn(&dyn ColdRecorder),
}

/// One trace.
struct Reading<'a> {
    trace: &'a Trace<'a>,
    engines: Engines,
    clock: Clock,
    scale: u64,
    device: u32,
    texts: Texts,
    arrows: Arrows,
    /// What devices did.
    work: Vec<Finished>,
}

/// An event with both its ends, by its number.
#[derive(Clone, Copy)]
struct Finished {
    event: u32,
    start: u64,
    end: u64,
}

impl Decoder {
    /// `pace` is called now and then, and may wait for the pipeline.
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        all_args: bool,
        pace: fn(&dyn ColdRecorder),
    ) -> Decoder {
        Decoder {
            recorder,
            counts: Counts::default(),
            present: Present::default(),
            keys: Keys::new(recorder),
            all_args,
            queues: HashMap::new(),
            recent: [((u32::MAX, 0, 0), 0); RECENT],
            tracks: HashMap::new(),
            ranges: Ranges::new(recorder, OURS),
            launches: 0,
            unnamed: 0,
            pace,
        }
    }

    /// An event, by its letter and the type of its engine, and what it points to: of that, nothing
    /// would be left.
    #[cold]
    fn sample(&self, event: &Event<'_>) {
        let what = format!("record.{}.{}", event.kind(), event.engine().0);
        let texts = event.texts().map(|(at, text)| {
            let text = String::from_utf8_lossy(text).replace(char::is_control, " ");
            format!("{at}={text}")
        });
        let texts: Vec<_> = texts.collect();
        sample::bytes(self.recorder, names::GAUDI.key, what.clone(), event.bytes());
        sample::text(self.recorder, names::GAUDI.key, format!("texts.{what}"), &texts.join("\t"));
    }

    /// Everything of a trace of device `device`, whose times are `scale` nanoseconds.
    pub(crate) fn trace(&mut self, trace: &Trace<'_>, device: u32, clock: Clock, scale: u64) {
        let mut reading = Reading {
            trace,
            engines: Engines::of(trace),
            clock,
            scale,
            device,
            texts: Texts::new(),
            arrows: Arrows::default(),
            work: Vec::new(),
        };
        self.unnamed += trace.strays();
        if sample::is_on() {
            trace.events().for_each(|event| self.sample(&event));
        }
        // Calls first: activities look for theirs.
        self.pass(&mut reading, true);
        self.pass(&mut reading, false);
        let mut launches = vec![0; reading.work.len()];
        self.counts.ambiguous += std::mem::take(&mut reading.arrows)
            .each(|number, launch| launches[number as usize] = launch);
        let work = std::mem::take(&mut reading.work);
        for (number, (finished, launch)) in (0_u64..).zip(work.iter().zip(launches)) {
            if number.is_multiple_of(BATCH) {
                (self.pace)(self.recorder);
            }
            self.activity(&mut reading, finished, launch);
        }
    }

    fn pass(&mut self, reading: &mut Reading<'_>, host: bool) {
        let trace = reading.trace;
        let mut open: HashMap<(u32, u32, u64), VecDeque<u32>> = HashMap::new();
        for (number, event) in (0_u32..).zip(trace.events()) {
            if u64::from(number).is_multiple_of(BATCH) {
                (self.pace)(self.recorder);
            }
            let (ty, index) = event.engine();
            if event.kind() == b'M' || (reading.engines.role(ty) == Role::Host) != host {
                continue;
            }
            let key = (ty, index, event.context());
            match event.kind() {
                b'B' => open.entry(key).or_default().push_back(number),
                b'E' => match open.get_mut(&key).and_then(VecDeque::pop_front) {
                    Some(begin) => {
                        let started = trace.event(begin as usize).time(reading.scale);
                        let times = (started, event.time(reading.scale));
                        // What is known only at the end stands there.
                        let which = if event.name().is_empty() { begin } else { number };
                        self.finished(reading, host, which, times);
                    }
                    None => {
                        self.counts.unbegun += 1;
                        self.recorder.lost(1);
                    }
                },
                b'X' => {
                    let start = event.time(reading.scale);
                    let dur = event.duration(reading.scale);
                    let end = start.zip(dur).map(|(start, dur)| start.saturating_add(dur));
                    self.finished(reading, host, number, (start, end));
                }
                // Nothing: the last one ends the list.
                0 => {}
                _ => {
                    self.counts.skipped += 1;
                    self.recorder.lost(1);
                }
            }
        }
        let unfinished: usize = open.values().map(VecDeque::len).sum();
        self.counts.unfinished += unfinished as u64;
        self.recorder.lost(unfinished as u64);
    }

    fn finished(
        &mut self,
        reading: &mut Reading<'_>,
        host: bool,
        event: u32,
        times: (Option<u64>, Option<u64>),
    ) {
        // What is missing is as good as 0.
        let times = (times.0.unwrap_or(0), times.1.unwrap_or(0));
        let nanos = |clock: &Clock, time| clock.nanos(time);
        let times = self.present.times(times, &mut reading.clock, nanos, |_| {}, self.recorder);
        let Some((start, end)) = times else { return };
        let finished = Finished { event, start, end };
        match host {
            true => self.call(reading, &finished),
            false => self.note(reading, finished),
        }
    }

    /// Something that a device did, which looks for its launch.
    fn note(&mut self, reading: &mut Reading<'_>, finished: Finished) {
        let event = reading.trace.event(finished.event as usize);
        if event.recipe() != 0 {
            let mut id =
                |at| reading.texts.get(self.recorder, event.pointer(at), || event.text(at)).id.0;
            let (engine, index) = event.engine();
            let node = (id(NAME), id(OPERATION), engine, index);
            let number = reading.work.len() as u32;
            let (recipe, stream) = (event.recipe(), event.stream());
            reading.arrows.work(recipe, stream, node, finished.start, number);
        }
        reading.work.push(finished);
    }

    /// Something that Synapse did on the host.
    fn call(&mut self, reading: &mut Reading<'_>, finished: &Finished) {
        self.counts.calls += 1;
        let event = &reading.trace.event(finished.event as usize);
        let mut args = Args::new();
        self.keys.describe(event, &mut reading.texts, self.all_args, &mut args);
        if contains(event.name(), LAUNCH) {
            self.launches += 1;
            let Finished { start, end, .. } = *finished;
            let (stream, thread, id) = (event.stream(), event.engine().1, self.launches);
            reading.arrows.launch(event.recipe(), Launch { start, end, thread, stream, id });
            let id = Vendor::Gaudi.call(self.launches);
            args.push(Extra::new(StrId::NONE, ArgType::Launch, id));
        }
        let (ty, index) = event.engine();
        let track = self.track(index, || reading.engines.name((ty, index)));
        args.push(Extra::new(StrId::NONE, ArgType::Track, track));
        let site = self.recorder.intern_or_wait(self.keys.host, function(event.name()));
        self.ranges.push(site, (finished.start, finished.end), args.extras());
    }

    /// The track of one of Synapse's threads.
    fn track(&mut self, index: u32, name: impl FnOnce() -> String) -> u64 {
        if let Some(track) = self.tracks.get(&index) {
            return *track;
        }
        let track = OURS.id(index.into());
        self.tracks.insert(index, track);
        let head = Record {
            other: track,
            site: self.keys.intern(format!("Synapse/{}", name()).as_bytes()),
            kind: Kind::Track as u8,
            ..Record::default()
        };
        self.recorder.push(head, &[]);
        track
    }

    /// Something that a device did.
    fn activity(&mut self, reading: &mut Reading<'_>, finished: &Finished, launch: u64) {
        let event = &reading.trace.event(finished.event as usize);
        let mut text = |at| reading.texts.get(self.recorder, event.pointer(at), || event.text(at));
        let (name, operation) = (text(NAME), text(OPERATION));
        if name.noise {
            self.counts.noise += 1;
            return;
        }
        let name = if operation.id.is_none() { name } else { operation };
        let (ty, index) = event.engine();
        let stage = stage(reading.engines.role(ty), name.operation);
        match stage {
            Stage::Kernel => self.counts.kernels += 1,
            Stage::MemoryTransfer => self.counts.copies += 1,
            Stage::MemorySet => self.counts.sets += 1,
            _ => self.counts.others += 1,
        }
        let queue = self.queue(reading, (ty, index));
        let gpu = Vendor::Gaudi.gpu(reading.device);
        let slot = DeviceSlot { queue, gpu, stage: stage as u8, ..DeviceSlot::default() };
        let mut args = Args::new();
        args.slot(slot.extras());
        self.keys.describe(event, &mut reading.texts, self.all_args, &mut args);
        let site = if name.id.is_none() { self.keys.intern(b"<unknown>") } else { name.id };
        let head = Record {
            time: finished.start,
            other: finished.end,
            arg: if launch == 0 { 0 } else { Vendor::Gaudi.call(launch) },
            site,
            kind: Kind::Device as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
    }

    /// The queue that is an engine.
    fn queue(&mut self, reading: &Reading<'_>, engine: (u32, u32)) -> u32 {
        let key = (reading.device, engine.0, engine.1);
        let slot = (engine.0.wrapping_mul(31) ^ engine.1) as usize % RECENT;
        if self.recent[slot].0 == key {
            return self.recent[slot].1;
        }
        let next = Vendor::Gaudi.queue(self.queues.len() as u32);
        let queue = *self.queues.entry(key).or_insert(next);
        if queue == next {
            let mut args = Args::new();
            args.unsigned(self.keys.device, reading.device);
            args.unsigned(self.keys.context, reading.device);
            args.unsigned(self.keys.stream, engine.1);
            args.unsigned(self.keys.api, GpuApi::Unsaid as u64);
            let head = Record {
                other: queue.into(),
                site: self.keys.intern(reading.engines.name(engine).as_bytes()),
                kind: Kind::Queue as u8,
                ..Record::default()
            };
            self.recorder.push(head, args.extras());
        }
        self.recent[slot] = (key, queue);
        queue
    }
}

/// A function's name without what the call was about, which differs from call to call
/// (`enqueueWithExternalEvents recipeHandle 0x… seqId 7 …`, queue_compute_scal.cpp).
fn function(name: &[u8]) -> &[u8] {
    match name.starts_with(LAUNCH) {
        true => name.split(|byte| *byte == b' ').next().unwrap_or(name),
        false => name,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
