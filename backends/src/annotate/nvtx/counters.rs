//! The counter extension.
//!
//! A counter has one value, or is a group with one per member of a schema: then each
//! member is a counter of its own, called `group.member`.
//!
//! Samples in a batch carry timestamps. Those that we gave out (`nvtxTimestampGet`) are
//! kept. Of a batch timed by another clock only the last sample is recorded, at the
//! present time, and the others are counted as left out.

use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::{ArgType, CounterUnit, Kind, Record, StrId};

use super::super::guard::{events_left_out, guard};
use super::super::memory;
use super::super::session::{Session, session};
use super::super::table::{Interned, List, Map};
use super::super::text::{ascii, clip};
use super::names::{self, Domain};
use super::payload::{Blob, Primitive, Type, type_of};
use super::sys::{self, CounterAttributes, CounterBatch, Function, SemanticsHeader};

static COUNTERS: List<Counter> = List::new();
/// (category of the domain, id chosen by the program) → index in [`COUNTERS`], plus 1.
static CHOSEN: Map = Map::new();

/// Members of a group, at most.
const MAX_MEMBERS: usize = 64;
/// Samples of a batch, at most.
const MAX_SAMPLES: usize = 1 << 16;

struct Counter {
    category: StrId,
    members: Vec<Member>,
    /// Bytes of one sample.
    size: usize,
    unit: CounterUnit,
    /// Whether samples are differences.
    delta: bool,
    /// Whether timestamps of batches are of the recording clock.
    our_time: bool,
}

struct Member {
    name: Interned,
    ty: Primitive,
    offset: usize,
    /// The value so far, of a counter whose samples are differences: bits of the type
    /// that is sampled.
    sum: AtomicU64,
}

/// Slots of the extension: `NVTX3EXT_CBID_*` in `nvToolsExtCounters.h`.
pub(crate) fn functions() -> [(usize, Function); 6] {
    [
        (0, counter_register as Function),
        (1, sample_i64 as Function),
        (2, sample_f64 as Function),
        (3, sample as Function),
        (4, sample_no_value as Function),
        (5, batch_submit as Function),
    ]
}

fn find(category: StrId, id: u64) -> Option<&'static Counter> {
    let index = if id >= sys::DYNAMIC_IDS {
        u32::try_from(id - sys::DYNAMIC_IDS).ok()?
    } else {
        CHOSEN.get(category.0.into(), id)? - 1
    };
    COUNTERS.get(index)
}

/// The members of a counter with values of type `ty`, and the size of a sample.
fn members(category: StrId, name: &[u8], ty: u64) -> Option<(Vec<Member>, usize)> {
    let member = |name, ty, offset| Member { name, ty, offset, sum: AtomicU64::new(0) };
    match type_of(category, ty) {
        Type::Primitive(primitive) => {
            let mut found = Vec::new();
            memory::push(&mut found, member(Interned::new(name)?, primitive, 0))?;
            Some((found, primitive.size))
        }
        Type::Schema(schema) => {
            let mut found = Vec::new();
            let mut end = 0_usize;
            for field in schema.fields.iter().take(MAX_MEMBERS) {
                // Groups are flat: a member of another kind has no size to go on with.
                let Type::Primitive(primitive) = field.ty else {
                    return None;
                };
                let align = field.align().max(1);
                let align = if schema.pack == 0 { align } else { align.min(schema.pack) };
                let offset = match field.offset {
                    Some(offset) => usize::try_from(offset).ok()?,
                    None => end.checked_next_multiple_of(align)?,
                };
                end = offset.checked_add(primitive.size)?;
                if field.flags & sys::FLAG_ROLE == sys::ROLE_TIMESTAMP {
                    continue;
                }
                let text = memory::concat(&[name, b".", field.key.text()])?;
                memory::push(&mut found, member(Interned::new(&text)?, primitive, offset))?;
            }
            let size = schema.size.unwrap_or(end.checked_next_multiple_of(schema.align.max(1))?);
            Some((found, size))
        }
        _ => None,
    }
}

/// What the semantics of a counter say: unit, differences, our time.
///
/// # Safety
/// `header` is NULL or the first of a list of semantics.
unsafe fn semantics(mut header: *const SemanticsHeader) -> (CounterUnit, bool, bool) {
    let mut found = (CounterUnit::None, false, false);
    // A list longer than this is a ring.
    for _ in 0..16 {
        if header.is_null() {
            break;
        }
        // SAFETY: an element of the list; it says its size and kind.
        unsafe {
            let head = header.read_unaligned();
            let size = head.struct_size as usize;
            if head.id == sys::SEMANTIC_TIME && size >= size_of::<sys::TimeSemantics>() {
                let time = header.cast::<sys::TimeSemantics>().read_unaligned();
                found.2 = time.time_domain == sys::TIME_FROM_TOOL;
            }
            if head.id == sys::SEMANTIC_COUNTER && size >= size_of::<sys::CounterSemantics>() {
                let counter = header.cast::<sys::CounterSemantics>().read_unaligned();
                found.0 = unit(ascii(counter.unit));
                found.1 = counter.flags & sys::VALUE_TYPES == sys::VALUE_DELTA;
            }
            header = head.next;
        }
    }
    found
}

fn unit(name: &[u8]) -> CounterUnit {
    let is = |names: &[&str]| names.iter().any(|n| n.as_bytes().eq_ignore_ascii_case(name));
    if is(&["byte", "bytes", "b"]) {
        CounterUnit::Bytes
    } else if is(&["ns", "nanosecond", "nanoseconds"]) {
        CounterUnit::Nanoseconds
    } else if is(&["count", "counts", "objects", "#"]) {
        CounterUnit::Count
    } else {
        CounterUnit::None
    }
}

unsafe extern "C" fn counter_register(domain: Domain, attributes: *const CounterAttributes) -> u64 {
    guard(0, || {
        let Some(session) = session() else { return 0 };
        if attributes.is_null() {
            return 0;
        }
        // SAFETY: not NULL; the structure begins with its size, and is read if it has all
        // that we know of.
        let attributes = unsafe {
            if attributes.cast::<usize>().read_unaligned() < size_of::<CounterAttributes>() {
                return 0;
            }
            attributes.read_unaligned()
        };
        let category = names::category(session, domain);
        // SAFETY: of a program that follows NVTX's rules.
        let (name, (unit, delta, our_time)) =
            unsafe { (clip(ascii(attributes.name), 512), semantics(attributes.semantics)) };
        let name = if name.is_empty() { b"counter" } else { name };
        let Some((members, size)) = members(category, name, attributes.schema) else {
            return 0;
        };
        let counter = Counter { category, members, size, unit, delta, our_time };
        let Some(index) = COUNTERS.push(counter) else {
            return 0;
        };
        if !(sys::STATIC_IDS..sys::DYNAMIC_IDS).contains(&attributes.id) {
            return sys::DYNAMIC_IDS + u64::from(index);
        }
        let stored = CHOSEN.insert(category.0.into(), attributes.id, index + 1);
        if stored { attributes.id } else { 0 }
    })
}

impl Counter {
    /// Records a value of a member.
    fn record(&self, session: &Session, member: &Member, (ty, bits): (ArgType, u64), time: u64) {
        let bits = if self.delta { member.add(ty, bits) } else { bits };
        let site = member.name.id(session, self.category);
        if site.is_none() {
            return events_left_out(1);
        }
        let other = self.unit as u64;
        let (kind, tag) = (Kind::Counter as u8, ty as u8);
        session.push(Record { time, other, arg: bits, site, kind, tag, ..Record::default() }, &[]);
    }

    /// Records the values of a sample that lies at `at`.
    fn record_sample(&self, session: &Session, blob: Blob, at: usize, time: u64) {
        for member in &self.members {
            let offset = at.checked_add(member.offset);
            let bytes = offset.and_then(|offset| blob.bytes(offset, member.ty.size));
            match bytes.and_then(|bytes| member.ty.number(bytes)) {
                Some(value) => self.record(session, member, value, time),
                None => events_left_out(1),
            }
        }
    }
}

impl Member {
    /// Adds a difference; returns the value so far.
    fn add(&self, ty: ArgType, bits: u64) -> u64 {
        let sum = |old: u64| match ty {
            ArgType::F64 => (f64::from_bits(old) + f64::from_bits(bits)).to_bits(),
            _ => old.wrapping_add(bits),
        };
        let update = |old| Some(sum(old));
        let old = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        sum(old.unwrap_or_default())
    }
}

/// Runs `body` with a counter, if its domain is recorded.
fn with_counter(domain: Domain, id: u64, body: impl FnOnce(&Session, &Counter)) {
    guard((), || {
        let Some(session) = session() else { return };
        let category = names::category(session, domain);
        if !session.live(category) {
            return;
        }
        match find(category, id) {
            Some(counter) => body(session, counter),
            None => events_left_out(1),
        }
    });
}

unsafe extern "C" fn sample_i64(domain: Domain, id: u64, value: i64) {
    with_counter(domain, id, |session, counter| {
        if let Some(member) = counter.members.first() {
            let value = (ArgType::I64, value.cast_unsigned());
            counter.record(session, member, value, session.now());
        }
    });
}

unsafe extern "C" fn sample_f64(domain: Domain, id: u64, value: f64) {
    with_counter(domain, id, |session, counter| {
        if let Some(member) = counter.members.first() {
            counter.record(session, member, (ArgType::F64, value.to_bits()), session.now());
        }
    });
}

unsafe extern "C" fn sample(domain: Domain, id: u64, data: *const u8, size: usize) {
    with_counter(domain, id, |session, counter| {
        let blob = Blob::new(&sys::PayloadData { schema: 0, size, data });
        counter.record_sample(session, blob, 0, session.now());
    });
}

/// A value that is known to be zero is one; one that could not be had, or is as before,
/// is not.
unsafe extern "C" fn sample_no_value(domain: Domain, id: u64, reason: u8) {
    with_counter(domain, id, |session, counter| {
        if reason != sys::SAMPLE_ZERO {
            return;
        }
        for member in &counter.members {
            if let Some(zero) = member.ty.number(&[0; 16][..member.ty.size]) {
                counter.record(session, member, zero, session.now());
            }
        }
    });
}

unsafe extern "C" fn batch_submit(domain: Domain, batch: *const CounterBatch) {
    if batch.is_null() {
        return;
    }
    // SAFETY: not NULL, and of this size since the extension exists.
    let batch = unsafe { batch.read_unaligned() };
    with_counter(domain, batch.counter, |session, counter| {
        let size = batch.samples_size;
        let blob = Blob::new(&sys::PayloadData { schema: 0, size, data: batch.samples });
        let count = (size / counter.size.max(1)).min(MAX_SAMPLES);
        let data = batch.timestamps.cast();
        let times = Blob::new(&sys::PayloadData { schema: 0, size: batch.timestamps_size, data });
        let time = |i: usize| {
            let read = |i: usize| {
                let bytes = times.bytes(i.checked_mul(8)?, 8)?.try_into().ok()?;
                Some(u64::from_le_bytes(bytes))
            };
            // With an interval, a time is the first sample's or the last one's.
            if batch.flags & sys::BATCH_BEGIN_INTERVAL != 0 {
                Some(read(0)?.wrapping_add(read(1)?.wrapping_mul(i as u64)))
            } else if batch.flags & sys::BATCH_END_INTERVAL != 0 {
                Some(read(0)?.wrapping_sub(read(1)?.wrapping_mul((count - 1 - i) as u64)))
            } else {
                read(i)
            }
        };
        let first = if counter.our_time { 0 } else { count.saturating_sub(1) };
        if !counter.delta {
            events_left_out(first as u64);
        }
        // Differences add up, whether their own times are known or not.
        let first = if counter.delta { 0 } else { first };
        for i in first..count {
            let given = if counter.our_time { time(i) } else { None };
            let at = given.unwrap_or_else(|| session.now());
            counter.record_sample(session, blob, i * counter.size, at);
        }
    });
}
