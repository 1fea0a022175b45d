//! Counters: set to a value, or counted up and down.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use kymograph_protos::{ArgType, CounterUnit, Kind, Record, StrId};

use super::super::guard::{events_left_out, guard};
use super::super::memory;
use super::super::session::{ITT, Session, session};
use super::super::text::{CText, WideText, ascii, clip};
use super::metadata::value;
use super::names::{DomainRef, StringRef};
use super::sys::{self, Counter, Function};
use super::tasks::{given, live};

pub(crate) fn functions() -> [(&'static str, Function); 21] {
    [
        ("counter_create", create as Function),
        ("counter_createA", create as Function),
        ("counter_createW", create_w as Function),
        ("counter_create_typed", create_typed as Function),
        ("counter_create_typedA", create_typed as Function),
        ("counter_create_typedW", create_typed_w as Function),
        ("counter_create_v3", create_v3 as Function),
        ("counter_createA_v3", create_v3 as Function),
        ("counter_createW_v3", create_v3_w as Function),
        ("counter_destroy", destroy as Function),
        ("counter_set_value", set_value as Function),
        ("counter_set_value_v3", set_value as Function),
        ("counter_set_value_ex", set_value_ex as Function),
        ("counter_inc", inc as Function),
        ("counter_inc_delta", inc_delta as Function),
        ("counter_dec", dec as Function),
        ("counter_dec_delta", dec_delta as Function),
        ("counter_inc_v3", inc_v3 as Function),
        ("counter_inc_delta_v3", inc_delta_v3 as Function),
        ("counter_dec_v3", dec_v3 as Function),
        ("counter_dec_delta_v3", dec_delta_v3 as Function),
    ]
}

/// Counters at most: they are never freed.
const MAX: usize = 1 << 14;

/// Counters by name and domain.
type ByName = HashMap<(Vec<u8>, Vec<u8>), usize>;
static COUNTERS: LazyLock<Mutex<ByName>> = LazyLock::new(Mutex::default);
/// Counters of the oldest interface, which has no handles: by addresses of domain and
/// name.
static VALUES: LazyLock<Mutex<HashMap<(u64, u64), i64>>> = LazyLock::new(Mutex::default);

fn new(name: &[u8], domain: &[u8], ty: c_int) -> *mut Counter {
    let (name, domain) = (clip(name, 1024), clip(domain, 1024));
    let counter = memory::locked(&COUNTERS, |known| {
        let key = (memory::concat(&[name])?, memory::concat(&[domain])?);
        if let Some(&address) = known.get(&key) {
            return Some(ptr::with_exposed_provenance_mut(address));
        }
        if known.len() >= MAX {
            return None;
        }
        known.try_reserve(1).ok()?;
        let (name, domain) = (memory::c_string(name)?, memory::c_string(domain)?);
        let counter = memory::keep(Counter {
            name: name.into_raw(),
            wide_name: ptr::null_mut(),
            domain: domain.into_raw(),
            wide_domain: ptr::null_mut(),
            ty,
            index: 0,
            extra1: AtomicI32::new(0),
            extra2: AtomicU64::new(0),
            next: ptr::null_mut(),
        })?;
        known.insert(key, counter.expose_provenance());
        Some(counter)
    });
    counter.unwrap_or(ptr::null_mut())
}

unsafe extern "C" fn create(name: CText, domain: CText) -> *mut Counter {
    guard(ptr::null_mut(), || new(name.bytes(), domain.bytes(), sys::METADATA_U64))
}

unsafe extern "C" fn create_w(name: WideText, domain: WideText) -> *mut Counter {
    guard(ptr::null_mut(), || new(&name.utf8(), &domain.utf8(), sys::METADATA_U64))
}

unsafe extern "C" fn create_typed(name: CText, domain: CText, ty: c_int) -> *mut Counter {
    guard(ptr::null_mut(), || new(name.bytes(), domain.bytes(), ty))
}

unsafe extern "C" fn create_typed_w(name: WideText, domain: WideText, ty: c_int) -> *mut Counter {
    guard(ptr::null_mut(), || new(&name.utf8(), &domain.utf8(), ty))
}

unsafe extern "C" fn create_v3(domain: DomainRef, name: CText, ty: c_int) -> *mut Counter {
    guard(ptr::null_mut(), || new(name.bytes(), domain.name(), ty))
}

unsafe extern "C" fn create_v3_w(domain: DomainRef, name: WideText, ty: c_int) -> *mut Counter {
    guard(ptr::null_mut(), || new(&name.utf8(), domain.name(), ty))
}

/// Nothing: the handle may be in use on another thread.
unsafe extern "C" fn destroy(_: *mut Counter) {}

/// A counter that a callback got.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct CounterRef(*const Counter);

impl CounterRef {
    fn get(&self) -> Option<&Counter> {
        // SAFETY: NULL, or a counter that we made or adopted; those live forever.
        unsafe { self.0.as_ref() }
    }
}

/// # Safety
/// `text` is NULL or a C string that lives as long as its counter.
unsafe fn category(session: &Session, text: *const c_char) -> StrId {
    // SAFETY: the caller's promise.
    let name = unsafe { ascii(text) };
    let id = if name.is_empty() { StrId::NONE } else { session.intern_or_wait(StrId::NONE, name) };
    if id.is_none() { session.key(&ITT) } else { id }
}

fn record(session: &Session, site: StrId, (ty, arg): (ArgType, u64), time: u64) {
    if site.is_none() {
        return events_left_out(1);
    }
    let other = CounterUnit::None as u64;
    let (kind, tag) = (Kind::Counter as u8, ty as u8);
    session.push(Record { time, other, arg, site, kind, tag, ..Record::default() }, &[]);
}

impl Counter {
    /// Sends a value, if the counter's domain is recorded.
    fn send(&self, value: (ArgType, u64), time: Option<u64>) {
        let Some(session) = session() else { return };
        // SAFETY: a counter's names are C strings or NULL.
        let category = unsafe { category(session, self.domain) };
        if !session.live(category) {
            return;
        }
        let site = match self.extra1.load(Ordering::Relaxed) {
            0 => {
                // SAFETY: as above.
                let site = session.intern_or_wait(category, unsafe { ascii(self.name) });
                self.extra1.store(site.0.cast_signed(), Ordering::Relaxed);
                site
            }
            id => StrId(id.cast_unsigned()),
        };
        record(session, site, value, time.unwrap_or_else(|| session.now()));
    }

    /// Counts up, or down with a negative number.
    fn count(&self, delta: u64) {
        let value = self.extra2.fetch_add(delta, Ordering::Relaxed).wrapping_add(delta);
        let float = matches!(self.ty, sys::METADATA_F32 | sys::METADATA_F64);
        let ty = if float || value.cast_signed() < 0 { ArgType::I64 } else { ArgType::U64 };
        self.send((ty, value), None);
    }

    fn set(&self, data: *const u8, time: Option<u64>) {
        if data.is_null() {
            return;
        }
        // SAFETY: a parameter of a callback: a value of the counter's type.
        let Some((ty, bits)) = (unsafe { value(self.ty, data) }) else {
            return events_left_out(1);
        };
        // Later steps count from here. (Of a float, from its whole part.)
        let whole =
            if ty == ArgType::F64 { (f64::from_bits(bits) as i64).cast_unsigned() } else { bits };
        self.extra2.store(whole, Ordering::Relaxed);
        self.send((ty, bits), time);
    }
}

unsafe extern "C" fn set_value(counter: CounterRef, data: *const c_void) {
    guard((), || counter.get().map_or((), |counter| counter.set(data.cast(), None)));
}

unsafe extern "C" fn set_value_ex(
    counter: CounterRef,
    clock: *const c_void,
    timestamp: u64,
    data: *const c_void,
) {
    let time = given(clock, timestamp);
    guard((), || counter.get().map_or((), |counter| counter.set(data.cast(), time)));
}

unsafe extern "C" fn inc(counter: CounterRef) {
    guard((), || counter.get().map_or((), |counter| counter.count(1)));
}

unsafe extern "C" fn inc_delta(counter: CounterRef, delta: u64) {
    guard((), || counter.get().map_or((), |counter| counter.count(delta)));
}

unsafe extern "C" fn dec(counter: CounterRef) {
    guard((), || counter.get().map_or((), |counter| counter.count(1_u64.wrapping_neg())));
}

unsafe extern "C" fn dec_delta(counter: CounterRef, delta: u64) {
    guard((), || counter.get().map_or((), |counter| counter.count(delta.wrapping_neg())));
}

fn count_v3(domain: DomainRef, name: StringRef, delta: i64) {
    let Some(session) = session() else { return };
    let key = (domain.address(), name.address());
    // Recorded behind the lock, so that values are in order.
    memory::locked(&VALUES, |values| {
        let room = values.len() < MAX && values.try_reserve(1).is_ok();
        if !room && !values.contains_key(&key) {
            return events_left_out(1);
        }
        let value = values.entry(key).or_default();
        *value = value.wrapping_add(delta);
        let category = domain.category(session);
        if live(session, domain, category) {
            let site = session.intern_or_wait(category, name.bytes());
            record(session, site, (ArgType::I64, value.cast_unsigned()), session.now());
        }
    });
}

unsafe extern "C" fn inc_v3(domain: DomainRef, name: StringRef) {
    guard((), || count_v3(domain, name, 1));
}

unsafe extern "C" fn inc_delta_v3(domain: DomainRef, name: StringRef, delta: u64) {
    guard((), || count_v3(domain, name, delta.cast_signed()));
}

unsafe extern "C" fn dec_v3(domain: DomainRef, name: StringRef) {
    guard((), || count_v3(domain, name, -1));
}

unsafe extern "C" fn dec_delta_v3(domain: DomainRef, name: StringRef, delta: u64) {
    guard((), || count_v3(domain, name, delta.cast_signed().wrapping_neg()));
}
