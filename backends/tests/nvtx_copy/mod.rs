//! What a shared object with NVTX in it looks like to a tool: tables of empty slots, which
//! the tool fills; and calls through them. Layouts are written down here once more, from
//! NVTX's headers, so that a mistake in ours shows.
#![allow(dead_code)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use kymograph_backends::annotate::nvtx;

use crate::lines::Lines;

pub(crate) static LINES: Lines = Lines::new(None);

type Slots<const N: usize> = [AtomicPtr<()>; N];
static CORE: Slots<16> = [const { AtomicPtr::new(ptr::null_mut()) }; 16];
static CORE2: Slots<16> = [const { AtomicPtr::new(ptr::null_mut()) }; 16];
static PAYLOAD: Slots<18> = [const { AtomicPtr::new(ptr::null_mut()) }; 18];
static COUNTERS: Slots<6> = [const { AtomicPtr::new(ptr::null_mut()) }; 6];

#[repr(C)]
struct Callbacks {
    size: usize,
    get: unsafe extern "C" fn(c_int, *mut *const *const c_void, *mut c_uint) -> c_int,
}

unsafe extern "C" fn get_module(
    module: c_int,
    table: *mut *const *const c_void,
    size: *mut c_uint,
) -> c_int {
    // Addresses of slots: the first one is never there.
    let of = |slots: &'static Slots<16>| -> &'static [usize] {
        let address = |(i, slot): (usize, &AtomicPtr<()>)| {
            if i == 0 { 0 } else { slot.as_ptr().expose_provenance() }
        };
        slots.iter().enumerate().map(address).collect::<Vec<_>>().leak()
    };
    let found = match module {
        1 => of(&CORE),
        5 => of(&CORE2),
        _ => return 0,
    };
    // SAFETY: both are valid for writes: the tool's.
    unsafe {
        table.write(found.as_ptr().cast());
        size.write(found.len() as c_uint);
    }
    1
}

unsafe extern "C" fn get_export_table(id: u32) -> *const c_void {
    static TABLE: Callbacks = Callbacks { size: size_of::<Callbacks>(), get: get_module };
    if id == 1 { (&raw const TABLE).cast() } else { ptr::null() }
}

#[repr(C)]
struct Segment {
    id: usize,
    count: usize,
    slots: *mut *mut (),
}

#[repr(C)]
struct Module {
    version: u16,
    size: u16,
    id: u16,
    compat: u16,
    segments: usize,
    segment: *mut Segment,
    export: usize,
    info: usize,
}

fn attach_extension<const N: usize>(id: u16, slots: &'static Slots<N>) -> c_int {
    let mut segment = Segment { id: 0, count: N, slots: slots[0].as_ptr() };
    let mut module = Module {
        version: 3,
        size: 40,
        id,
        compat: 0x104,
        segments: 1,
        segment: &mut segment,
        export: 0,
        info: 0,
    };
    let module = (&raw mut module).cast::<nvtx::ExtModule>();
    // SAFETY: laid out as NVTX does.
    unsafe { nvtx::initialize_extension(module, &LINES) }
}

/// Attaches the tool once per test program; further times as other copies would.
pub(crate) fn attach() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: our tables are laid out as NVTX's.
        let attached = unsafe { nvtx::initialize(Some(get_export_table), &LINES) };
        assert_eq!(attached, 1);
        assert_eq!(attach_extension(2, &PAYLOAD), 1);
        assert_eq!(attach_extension(4, &COUNTERS), 1);
        assert_eq!(attach_extension(1, &PAYLOAD), 0, "the memory extension is not known");
    });
}

/// Calls slot `$slot` of a table as a function of the given type.
macro_rules! call {
    ($table:ident[$slot:expr], fn($($ty:ty),*) -> $ret:ty, $($arg:expr),*) => {{
        attach();
        let function = $table[$slot].load(Ordering::Acquire);
        assert!(!function.is_null(), "slot {} is filled", $slot);
        // SAFETY: the tool's function for a slot that has this type in NVTX's headers.
        unsafe {
            let function: unsafe extern "C" fn($($ty),*) -> $ret = std::mem::transmute(function);
            function($($arg),*)
        }
    }};
}

pub(crate) type Domain = *mut c_void;
pub(crate) const DEFAULT: Domain = ptr::null_mut();

pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

pub(crate) fn w(text: &str) -> Vec<u32> {
    text.chars().map(u32::from).chain([0]).collect()
}

/// `nvtxEventAttributes_t`, as bytes.
#[derive(Clone)]
pub(crate) struct Event(pub(crate) [u64; 6], Vec<CString>);

pub(crate) fn event() -> Event {
    // Version 3, size 48.
    Event([3 | 48 << 16, 0, 0, 0, 0, 0], Vec::new())
}

impl Event {
    pub(crate) fn size(mut self, size: u16) -> Event {
        self.0[0] = self.0[0] & !0xffff_0000 | u64::from(size) << 16;
        self
    }
    pub(crate) fn category(mut self, category: u32) -> Event {
        self.0[0] |= u64::from(category) << 32;
        self
    }
    pub(crate) fn color(mut self, color: u32) -> Event {
        self.0[1] = 1 | u64::from(color) << 32;
        self
    }
    pub(crate) fn payload(mut self, ty: u32, bits: u64) -> Event {
        self.0[2] |= u64::from(ty);
        self.0[3] = bits;
        self
    }
    pub(crate) fn extended(self, payloads: &[Payload]) -> Event {
        let mut event = self.payload(0xdfbd_0009, payloads.as_ptr().expose_provenance() as u64);
        event.0[2] |= (payloads.len() as u64) << 32;
        event
    }
    pub(crate) fn message(mut self, ty: u32, bits: u64) -> Event {
        self.0[4] = u64::from(ty);
        self.0[5] = bits;
        self
    }
    pub(crate) fn name(mut self, text: &str) -> Event {
        let text = c(text);
        let address = text.as_ptr().expose_provenance() as u64;
        self.1.push(text);
        self.message(1, address)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Payload {
    pub(crate) schema: u64,
    pub(crate) size: usize,
    pub(crate) data: *const u8,
}

pub(crate) fn payload(schema: u64, data: &[u8]) -> Payload {
    Payload { schema, size: data.len(), data: data.as_ptr() }
}

#[repr(C)]
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) flags: u64,
    pub(crate) ty: u64,
    pub(crate) name: *const c_char,
    pub(crate) description: usize,
    pub(crate) detail: u64,
    pub(crate) offset: u64,
    pub(crate) semantics: usize,
    pub(crate) reserved: usize,
}

/// An entry of a schema. (Its name lives on: tests are short.)
pub(crate) fn entry(name: &str, ty: u64, flags: u64, detail: u64, offset: u64) -> Entry {
    let name = if name.is_empty() { ptr::null() } else { c(name).into_raw().cast_const() };
    Entry { flags, ty, name, description: 0, detail, offset, semantics: 0, reserved: 0 }
}

pub(crate) fn mark(message: &str) {
    call!(CORE[2], fn(*const c_char) -> (), c(message).as_ptr());
}
pub(crate) fn mark_raw(message: *const c_char) {
    call!(CORE[2], fn(*const c_char) -> (), message);
}
pub(crate) fn mark_w(message: *const u32) {
    call!(CORE[3], fn(*const u32) -> (), message);
}
pub(crate) fn mark_ex(event: &Event) {
    call!(CORE[1], fn(*const u64) -> (), event.0.as_ptr());
}
pub(crate) fn mark_ex_raw(event: *const u64) {
    call!(CORE[1], fn(*const u64) -> (), event);
}
pub(crate) fn start(message: &str) -> u64 {
    call!(CORE[5], fn(*const c_char) -> u64, c(message).as_ptr())
}
pub(crate) fn end(id: u64) {
    call!(CORE[7], fn(u64) -> (), id);
}
pub(crate) fn push(message: &str) -> c_int {
    call!(CORE[9], fn(*const c_char) -> c_int, c(message).as_ptr())
}
pub(crate) fn push_w(message: &str) -> c_int {
    call!(CORE[10], fn(*const u32) -> c_int, w(message).as_ptr())
}
pub(crate) fn push_ex(event: &Event) -> c_int {
    call!(CORE[8], fn(*const u64) -> c_int, event.0.as_ptr())
}
pub(crate) fn pop() -> c_int {
    call!(CORE[11], fn() -> c_int,)
}
pub(crate) fn name_category(number: u32, name: &str) {
    call!(CORE[12], fn(u32, *const c_char) -> (), number, c(name).as_ptr());
}
pub(crate) fn name_thread(thread: u32, name: &str) {
    call!(CORE[14], fn(u32, *const c_char) -> (), thread, c(name).as_ptr());
}

pub(crate) fn domain(name: &str) -> Domain {
    call!(CORE2[12], fn(*const c_char) -> Domain, c(name).as_ptr())
}
pub(crate) fn domain_w(name: &str) -> Domain {
    call!(CORE2[13], fn(*const u32) -> Domain, w(name).as_ptr())
}
pub(crate) fn domain_destroy(domain: Domain) {
    call!(CORE2[14], fn(Domain) -> (), domain);
}
pub(crate) fn domain_mark(domain: Domain, event: &Event) {
    call!(CORE2[1], fn(Domain, *const u64) -> (), domain, event.0.as_ptr());
}
pub(crate) fn domain_start(domain: Domain, event: &Event) -> u64 {
    call!(CORE2[2], fn(Domain, *const u64) -> u64, domain, event.0.as_ptr())
}
pub(crate) fn domain_end(domain: Domain, id: u64) {
    call!(CORE2[3], fn(Domain, u64) -> (), domain, id);
}
pub(crate) fn domain_push(domain: Domain, event: &Event) -> c_int {
    call!(CORE2[4], fn(Domain, *const u64) -> c_int, domain, event.0.as_ptr())
}
pub(crate) fn domain_pop(domain: Domain) -> c_int {
    call!(CORE2[5], fn(Domain) -> c_int, domain)
}
pub(crate) fn resource(domain: Domain, attributes: &[u64; 4]) -> *mut c_void {
    call!(CORE2[6], fn(Domain, *const u64) -> *mut c_void, domain, attributes.as_ptr())
}
pub(crate) fn domain_name_category(domain: Domain, number: u32, name: &str) {
    let name = c(name);
    call!(CORE2[8], fn(Domain, u32, *const c_char) -> (), domain, number, name.as_ptr());
}
pub(crate) fn register(domain: Domain, text: &str) -> u64 {
    let text = c(text);
    call!(CORE2[10], fn(Domain, *const c_char) -> u64, domain, text.as_ptr())
}

/// Registers a schema. `ty` 1 is static, 2 dynamic; no `id` or `size` if 0.
pub(crate) fn schema(domain: Domain, ty: u64, entries: &[Entry], size: u64, id: u64) -> u64 {
    let mut mask = 1 << 2 | 1 << 4 | 1 << 5;
    mask |= if size > 0 { 1 << 6 } else { 0 };
    mask |= if id > 0 { 1 << 8 } else { 0 };
    let address = entries.as_ptr().expose_provenance() as u64;
    let attributes = [mask, 0, ty, 0, address, entries.len() as u64, size, 0, id, 0_u64];
    call!(PAYLOAD[0], fn(Domain, *const u64) -> u64, domain, attributes.as_ptr())
}
pub(crate) fn schema_raw(attributes: *const u64) -> u64 {
    call!(PAYLOAD[0], fn(Domain, *const u64) -> u64, DEFAULT, attributes)
}
pub(crate) fn enumeration(domain: Domain, entries: &[(&str, u64, bool)], size: u64) -> u64 {
    let name = |name| c(name).into_raw().expose_provenance() as u64;
    let entries: Vec<[u64; 3]> = entries.iter().map(|e| [name(e.0), e.1, u64::from(e.2)]).collect();
    let address = entries.as_ptr().expose_provenance() as u64;
    let attributes = [1 << 2 | 1 << 3 | 1 << 4, 0, address, entries.len() as u64, size, 0, 0_u64];
    call!(PAYLOAD[1], fn(Domain, *const u64) -> u64, domain, attributes.as_ptr())
}
pub(crate) fn mark_payload(domain: Domain, list: &[Payload]) {
    let (data, count) = (list.as_ptr(), list.len());
    call!(PAYLOAD[2], fn(Domain, *const Payload, usize) -> (), domain, data, count);
}
pub(crate) fn push_payload(domain: Domain, list: &[Payload]) -> c_int {
    let (data, count) = (list.as_ptr(), list.len());
    call!(PAYLOAD[3], fn(Domain, *const Payload, usize) -> c_int, domain, data, count)
}
pub(crate) fn pop_payload(domain: Domain, list: &[Payload]) -> c_int {
    let (data, count) = (list.as_ptr(), list.len());
    call!(PAYLOAD[4], fn(Domain, *const Payload, usize) -> c_int, domain, data, count)
}
pub(crate) fn start_payload(domain: Domain, list: &[Payload]) -> u64 {
    let (data, count) = (list.as_ptr(), list.len());
    call!(PAYLOAD[5], fn(Domain, *const Payload, usize) -> u64, domain, data, count)
}
pub(crate) fn end_payload(domain: Domain, id: u64, list: &[Payload]) {
    let (data, count) = (list.as_ptr(), list.len());
    call!(PAYLOAD[6], fn(Domain, u64, *const Payload, usize) -> (), domain, id, data, count);
}
pub(crate) fn is_enabled(domain: Domain) -> u8 {
    call!(PAYLOAD[7], fn(Domain) -> u8, domain)
}
pub(crate) fn timestamp() -> i64 {
    call!(PAYLOAD[8], fn() -> i64,)
}

pub(crate) fn counter(domain: Domain, name: &str, schema: u64, id: u64, semantics: u64) -> u64 {
    let name = c(name);
    let address = name.as_ptr().expose_provenance() as u64;
    let attributes = [56, schema, address, 0, 0, semantics, id];
    call!(COUNTERS[0], fn(Domain, *const u64) -> u64, domain, attributes.as_ptr())
}
pub(crate) fn sample_i64(domain: Domain, id: u64, value: i64) {
    call!(COUNTERS[1], fn(Domain, u64, i64) -> (), domain, id, value);
}
pub(crate) fn sample_f64(domain: Domain, id: u64, value: f64) {
    call!(COUNTERS[2], fn(Domain, u64, f64) -> (), domain, id, value);
}
pub(crate) fn sample(domain: Domain, id: u64, data: &[u8]) {
    let (data, size) = (data.as_ptr(), data.len());
    call!(COUNTERS[3], fn(Domain, u64, *const u8, usize) -> (), domain, id, data, size);
}
pub(crate) fn sample_nothing(domain: Domain, id: u64, reason: u8) {
    call!(COUNTERS[4], fn(Domain, u64, u8) -> (), domain, id, reason);
}
pub(crate) fn batch(domain: Domain, batch: &[u64; 6]) {
    call!(COUNTERS[5], fn(Domain, *const u64) -> (), domain, batch.as_ptr());
}
