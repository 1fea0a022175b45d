//! The buffer of a trace: events, strings, and two numbers. Offsets are those of
//! `synTraceEvent` in synapse_common_types.h, of Intel_Gaudi3_Software ("new") and of
//! SynapseAI_Core ("old").

use std::collections::HashMap;
use std::ffi::CStr;

use crate::profiler::now;
use crate::report::{self, Sample};
use crate::seam::{Nanos, Task, Work};
use crate::settings;

/// Something that happened.
pub(crate) enum Item {
    /// Times are of the profiler's clock.
    Call { name: &'static CStr, id: u32, start: Nanos, end: Nanos, thread: u32 },
    /// Times are of the system's; the profiler's is so much less.
    Work(Work, Nanos),
}

pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: usize,
}

/// Types of engines.
const HOST: u32 = 1;
const TPC: u32 = 2;
const DMA: u32 = 3;

struct Maker {
    events: Vec<Vec<u8>>,
    strings: Vec<u8>,
    known: HashMap<String, usize>,
    /// Where in events addresses of strings stand: event, offset, string.
    pointers: Vec<(usize, usize, usize)>,
    kernels: u64,
    others: u64,
    /// What calls ask for: their recipes, streams and recipes' names.
    asked: HashMap<u32, (u16, u64, String)>,
}

fn stride() -> usize {
    match () {
        () if settings::fault("other-layout") => 240,
        () if settings::is_old() => 112,
        () => 208,
    }
}

pub(crate) fn make(items: &[&Item], address: usize) -> Made {
    let mut maker = Maker {
        events: Vec::new(),
        strings: Vec::new(),
        known: HashMap::new(),
        pointers: Vec::new(),
        kernels: 0,
        others: 0,
        asked: HashMap::new(),
    };
    let samples = report::samples("hpu");
    if !samples.is_empty() {
        maker.replay(samples);
        return maker.finish(address);
    }
    maker.learn(items);
    maker.metadata(items);
    match settings::fault("out-of-order") {
        false => items.iter().for_each(|item| maker.item(item)),
        true => items.iter().rev().for_each(|item| maker.item(item)),
    }
    maker.finish(address)
}

impl Maker {
    /// A recipe is one of what it does: it is launched again and again.
    fn learn(&mut self, items: &[&Item]) {
        let mut recipes: HashMap<String, u16> = HashMap::new();
        for item in items {
            let Item::Work(work, _) = item else { continue };
            let name = match &work.task {
                _ if work.graph != 0 => format!("graph {}", work.graph),
                Task::Kernel(kernel) => kernel.name.to_string_lossy().into_owned(),
                Task::Copy(_) => "copy".to_owned(),
                Task::Set { .. } => "set".to_owned(),
                Task::Graph => continue,
            };
            let next = recipes.len() as u16 + 1;
            let recipe = *recipes.entry(name).or_insert(next);
            let stream = 0x5000 + u64::from(work.place.stream);
            let named = compiled(work).unwrap_or("recipe_of_a_script").to_owned();
            self.asked.insert(work.correlation, (recipe, stream, named));
        }
    }

    /// The events that a self-test has seen on real hardware, with times moved to now.
    fn replay(&mut self, samples: Vec<Sample>) {
        let time = |sample: &Sample, at: usize| nanos(&sample.bytes[at..at + 16]);
        let ended = |sample: &Sample| match sample.bytes[16] {
            b'M' => 0,
            b'X' => time(sample, 32) + time(sample, 48),
            _ => time(sample, 32),
        };
        let latest = samples.iter().map(ended).max().unwrap_or(0);
        let ahead = now().wrapping_sub(latest);
        for sample in samples.into_iter().filter(Sample::is_record) {
            assert_eq!(sample.bytes.len(), stride(), "fake Synapse: the size of events");
            let number = self.events.len();
            let (texts, begun) = (report::texts(&sample), time(&sample, 32));
            let is_metadata = sample.bytes[16] == b'M';
            self.events.push(sample.bytes);
            if !is_metadata {
                self.time(number, 32, begun.wrapping_add(ahead));
            }
            // Names and arguments that lay elsewhere.
            for at in [0, 8, 80, 88, 104, 128, 136].into_iter().filter(|at| at + 8 <= stride()) {
                self.put(number, at, [0; 8]);
            }
            texts.iter().for_each(|(at, text)| self.text(number, *at, text));
        }
    }

    fn metadata(&mut self, items: &[&Item]) {
        for (ty, name) in [(HOST, "***Host"), (TPC, "*TPC "), (DMA, "*PDMA")] {
            self.name(ty, 0, name);
        }
        let mut engines: Vec<_> = items.iter().flat_map(|item| engines(item)).collect();
        engines.sort_unstable();
        engines.dedup();
        for (ty, index) in engines {
            let name = match ty {
                HOST => format!("thread {index}"),
                TPC => format!("TPC {index:02}"),
                _ => format!("PDMA {index:02}"),
            };
            self.name(ty, index, &name);
        }
    }

    fn name(&mut self, ty: u32, index: u32, name: &str) {
        let event = self.event(b'M', (ty, index), "");
        self.text(event, 80, name);
    }

    fn event(&mut self, kind: u8, (ty, index): (u32, u32), name: &str) -> usize {
        let number = self.events.len();
        let mut event = vec![0; stride()];
        event[16] = kind;
        event[64..68].copy_from_slice(&ty.to_le_bytes());
        event[68..72].copy_from_slice(&index.to_le_bytes());
        self.events.push(event);
        self.text(number, 0, name);
        number
    }

    fn put<const N: usize>(&mut self, event: usize, at: usize, value: [u8; N]) {
        if let Some(field) = self.events[event].get_mut(at..at + N) {
            field.copy_from_slice(&value);
        }
    }

    fn text(&mut self, event: usize, at: usize, text: &str) {
        if text.is_empty() || at + 8 > stride() {
            return;
        }
        let next = self.strings.len();
        let place = *self.known.entry(text.to_owned()).or_insert(next);
        if place == next {
            self.strings.extend_from_slice(text.as_bytes());
            self.strings.push(0);
        }
        self.pointers.push((event, at, place));
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Call { name, id, start, end, .. } => {
                let mut name = name.to_string_lossy().into_owned();
                if let Some((recipe, ..)) = self.asked.get(id)
                    && name.starts_with("enqueue")
                {
                    // queue_compute_scal.cpp.
                    name += &format!(" recipeHandle 0x7f{recipe:04x} seqId {id} inFlight 1");
                }
                for (kind, time) in [(b'B', start), (b'E', end)] {
                    let event = self.event(kind, engine(item), &name);
                    self.time(event, 32, *time);
                    self.recipe(event, *id);
                }
            }
            Item::Work(work, offset) => self.work(item, work, *offset),
        }
        self.others += 1;
        if settings::befalls("unknown-kind", self.others) {
            self.event(b'Z', engine(item), "?");
        }
    }

    fn work(&mut self, item: &Item, work: &Work, offset: Nanos) {
        let (start, end) = (work.start - offset, work.end - offset);
        let hit = |fault| settings::befalls(fault, self.kernels + 1);
        let (drop, zero, odd) = (hit("drop"), hit("zero-times"), hit("odd-times"));
        let end = if hit("future") { end + settings::HOUR } else { end };
        let recipe = if hit("no-recipe") { 0 } else { work.correlation };
        match &work.task {
            Task::Kernel(kernel) => {
                self.kernels += 1;
                // A node of the compiler's is called as it likes.
                let name =
                    compiled(work).map_or(kernel.name.to_string_lossy(), |_| "memcpy".into());
                let halves = [(b'B', start), (b'E', end)];
                for (engine, (kind, time)) in engines(item).flat_map(|e| halves.map(|h| (e, h))) {
                    if kind == b'E' && drop {
                        continue;
                    }
                    let event = self.event(kind, engine, "TPC task");
                    self.time(event, 32, if zero { 0 } else { time });
                    if odd {
                        self.put(event, 40, 0x7fff_u16.to_le_bytes());
                    }
                    self.describe(event, &name, recipe);
                }
            }
            Task::Copy(copy) => {
                self.complete(item, (start, end), "memcpy", recipe, copy.bytes);
            }
            Task::Set { bytes, .. } => self.complete(item, (start, end), "memset", recipe, *bytes),
            Task::Graph => {}
        }
    }

    fn complete(
        &mut self,
        item: &Item,
        times: (Nanos, Nanos),
        name: &str,
        recipe: u32,
        bytes: u64,
    ) {
        let event = self.event(b'X', engine(item), "DMA task");
        self.time(event, 32, times.0);
        self.time(event, 48, times.1 - times.0);
        self.describe(event, name, recipe);
        if settings::is_old() {
            return;
        }
        // One extra argument among the strings, aligned: {key*, type 0, value}.
        self.strings.resize(self.strings.len().next_multiple_of(8), 0);
        let place = self.strings.len();
        self.strings.resize(place + 24, 0);
        self.strings[place + 16..place + 24].copy_from_slice(&bytes.to_le_bytes());
        self.put(event, 128, [1]);
        self.pointers.push((event, 136, place));
        // The key's address is put there when addresses are known: `usize::MAX` is no event.
        let key = self.strings.len();
        self.strings.extend_from_slice(b"bytes\0");
        self.pointers.push((usize::MAX, place, key));
    }

    fn describe(&mut self, event: usize, operation: &str, recipe: u32) {
        self.text(event, 80, "bf16");
        self.text(event, 88, operation);
        self.recipe(event, recipe);
    }

    fn recipe(&mut self, event: usize, id: u32) {
        if settings::is_old() || id == 0 {
            return;
        }
        let Some((recipe, stream, named)) = self.asked.get(&id).cloned() else { return };
        self.put(event, 96, recipe.to_le_bytes());
        self.put(event, 112, stream.to_le_bytes());
        self.text(event, 104, &named);
    }

    /// `long double`: microseconds, or nanoseconds in old releases.
    fn time(&mut self, event: usize, at: usize, nanos: Nanos) {
        self.put(event, at, long_double(nanos, if settings::is_old() { 1 } else { 1000 }));
    }

    fn finish(mut self, address: usize) -> Made {
        let base = (self.events.len() + 1) * stride();
        for (event, at, place) in std::mem::take(&mut self.pointers) {
            let wild = settings::fault_every("wild-pointers", 1);
            let hit = wild > 0 && (event as u64).wrapping_add(1).is_multiple_of(wild);
            let shift = if hit { 1 << 40 } else { 0 };
            let pointer = (address + base + place + shift) as u64;
            match self.events.get_mut(event) {
                Some(event) => event[at..at + 8].copy_from_slice(&pointer.to_le_bytes()),
                None => self.strings[at..at + 8].copy_from_slice(&pointer.to_le_bytes()),
            }
        }
        let count = self.events.len() + 1;
        let mut bytes = self.events.concat();
        if settings::fault("truncated") {
            bytes.truncate(base - stride() / 2);
            return Made { bytes, count };
        }
        // The last entry is no event: who knows what is in it.
        bytes.extend(std::iter::repeat_n(0xa5, stride()));
        bytes.extend_from_slice(&self.strings);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend_from_slice(&(count as u64).to_le_bytes());
        bytes.extend_from_slice(&3_u64.to_le_bytes());
        Made { bytes, count }
    }
}

/// The name of the recipe that a program had compiled.
fn compiled(work: &Work) -> Option<&'static str> {
    let Task::Kernel(kernel) = work.task else { return None };
    kernel.name.to_str().ok().filter(|name| name.starts_with("kymo_selftest_"))
}

/// The engines of something: two, where they share the work.
fn engines(item: &Item) -> impl Iterator<Item = (u32, u32)> {
    let (ty, index) = engine(item);
    let shared = matches!(item, Item::Work(work, _) if compiled(work).is_some());
    std::iter::once((ty, index)).chain(shared.then_some((ty, index + 100)))
}

fn engine(item: &Item) -> (u32, u32) {
    match item {
        Item::Call { thread, .. } => (HOST, *thread),
        Item::Work(work, _) => match work.task {
            Task::Kernel(_) => (TPC, work.place.stream),
            // There is a first engine of a type, too, whose metadata has the type's number.
            _ => (DMA, work.place.stream.saturating_sub(7)),
        },
    }
}

/// What [`long_double`] was given.
fn nanos(bytes: &[u8]) -> Nanos {
    let unit: u128 = if settings::is_old() { 1 } else { 1000 };
    let significand = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let exponent = i32::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let shift = 16_383 + 63 - exponent;
    if significand == 0 {
        return 0;
    }
    assert!((1..128).contains(&shift), "fake Synapse: a time of the report");
    ((u128::from(significand) * unit) >> (shift - 1)).div_ceil(2) as Nanos
}

/// `nanos / unit` as the x87 has it: 64 bits with their first one, and the exponent.
fn long_double(nanos: Nanos, unit: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    if nanos == 0 {
        return bytes;
    }
    // As many bits as there is room for, rounded to nearest.
    let value = u128::from(nanos) << 64;
    let quotient = value / u128::from(unit);
    let bits = 128 - quotient.leading_zeros();
    let shift = bits as i32 - 64;
    let mut significand =
        if shift > 0 { (quotient + (1 << (shift - 1))) >> shift } else { quotient << -shift };
    let mut exponent = shift - 64;
    if significand >> 64 != 0 {
        significand >>= 1;
        exponent += 1;
    }
    bytes[..8].copy_from_slice(&(significand as u64).to_le_bytes());
    bytes[8..10].copy_from_slice(&((exponent + 63 + 16_383) as u16).to_le_bytes());
    bytes
}
