//! The extended-payload extension: structured data on marks and ranges.

mod blob;
mod decode;
mod fields;
mod schema;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::StrId;

use super::super::args::Args;
use super::super::guard::{arg_left_out, guard};
use super::super::session::{Session, session};
use super::super::text::{Text, ascii_n};
use super::events::{self, Source};
use super::names::{self, Domain};
use super::sys::{self, EnumAttributes, FAILED, Function, PayloadData, SchemaAttributes};
pub(crate) use blob::Blob;
use decode::Decoder;
pub(crate) use fields::Primitive;
pub(crate) use schema::{Type, type_of};

/// Payloads of one event, at most.
const MAX_PAYLOADS: usize = 16;

/// Slots of the extension: `NVTX3EXT_CBID_*` in `nvToolsExtPayload.h`.
pub(crate) fn functions() -> [(usize, Function); 10] {
    [
        (0, schema_register as Function),
        (1, enum_register as Function),
        (2, mark_payload as Function),
        (3, range_push_payload as Function),
        (4, range_pop_payload as Function),
        (5, range_start_payload as Function),
        (6, range_end_payload as Function),
        (7, names::domain_is_enabled as Function),
        (8, timestamp_get as Function),
        (12, scope_register as Function),
    ]
}

/// Reads the payloads of an event into `args`. Returns its message, if they hold one.
///
/// # Safety
/// `list` is NULL or points to `count` payloads, which are readable as far as they say.
pub(crate) unsafe fn read(
    session: &Session,
    category: StrId,
    list: *const PayloadData,
    count: usize,
    args: &mut Args,
) -> Option<Text<'static>> {
    if list.is_null() {
        return None;
    }
    let mut payloads = [(0, Blob::new(&EMPTY)); MAX_PAYLOADS];
    let count = count.min(MAX_PAYLOADS);
    for (i, place) in payloads.iter_mut().enumerate().take(count) {
        // SAFETY: one of `count`.
        let mut payload = unsafe { list.add(i).read_unaligned() };
        if payload.size == usize::MAX {
            // Of unknown size: only said of C strings.
            let text = payload.schema == 75 || payload.schema == 76;
            payload.size = 0;
            if text {
                // SAFETY: then it is a C string.
                payload.size = unsafe { ascii_n(payload.data.cast(), 1 << 16) }.len();
            }
        }
        *place = (payload.schema, Blob::new(&payload));
    }
    let payloads = &payloads[..count];
    let blobs = payloads.iter().map(|payload| payload.1);
    let mut all = [Blob::new(&EMPTY); MAX_PAYLOADS];
    all.iter_mut().zip(blobs).for_each(|(place, blob)| *place = blob);
    let mut decoder = Decoder::new(session, category, args, &all[..count]);
    for &(id, blob) in payloads {
        match id {
            // Read through the payload that points here, or not at all.
            sys::SCHEMA_REFERENCED | sys::SCHEMA_RAW => {}
            // Without a schema: values of one type.
            id => match type_of(category, id) {
                Type::Primitive(primitive) => decoder.plain(primitive, blob),
                Type::Schema(schema) => drop(decoder.schema(schema, blob, 0)),
                _ => arg_left_out(),
            },
        }
    }
    decoder.message
}

const EMPTY: PayloadData = PayloadData { schema: 0, size: 0, data: std::ptr::null() };

/// The payloads of an event that has nothing else.
struct Payloads(*const PayloadData, usize);

impl Source for Payloads {
    fn read<'a>(&'a self, session: &Session, category: StrId, args: &mut Args) -> Text<'a> {
        // SAFETY: made of a callback's parameters, within that call.
        let message = unsafe { read(session, category, self.0, self.1, args) };
        message.unwrap_or(Text::Borrowed(&[]))
    }
}

unsafe extern "C" fn schema_register(domain: Domain, attributes: *const SchemaAttributes) -> u64 {
    guard(0, || {
        let Some(session) = session() else { return 0 };
        // SAFETY: NVTX passes NULL or the program's attributes on.
        unsafe { schema::register(names::category(session, domain), attributes) }
    })
}

unsafe extern "C" fn enum_register(domain: Domain, attributes: *const EnumAttributes) -> u64 {
    guard(0, || {
        let Some(session) = session() else { return 0 };
        // SAFETY: NVTX passes NULL or the program's attributes on.
        unsafe { schema::register_enumeration(names::category(session, domain), attributes) }
    })
}

unsafe extern "C" fn mark_payload(domain: Domain, list: *const PayloadData, count: usize) {
    guard((), || events::mark(domain, &Payloads(list, count)));
}

unsafe extern "C" fn range_push_payload(
    domain: Domain,
    list: *const PayloadData,
    count: usize,
) -> c_int {
    guard(FAILED, || events::push(domain, &Payloads(list, count)))
}

unsafe extern "C" fn range_pop_payload(
    domain: Domain,
    list: *const PayloadData,
    count: usize,
) -> c_int {
    guard(FAILED, || {
        events::pop(domain, |session, category, args| {
            Payloads(list, count).read(session, category, args);
        })
    })
}

unsafe extern "C" fn range_start_payload(
    domain: Domain,
    list: *const PayloadData,
    count: usize,
) -> u64 {
    guard(0, || events::start(domain, &Payloads(list, count)))
}

unsafe extern "C" fn range_end_payload(
    domain: Domain,
    id: u64,
    list: *const PayloadData,
    count: usize,
) {
    guard((), || {
        events::end(domain, id, |session, category, args| {
            Payloads(list, count).read(session, category, args);
        });
    });
}

/// Ticks of the recording clock: what a batch of counters with timestamps "from the tool"
/// brings back.
unsafe extern "C" fn timestamp_get() -> i64 {
    guard(0, || session().map_or(0, |session| session.now().cast_signed()))
}

/// Scopes are not recorded, but a program may take 0 for a failure.
unsafe extern "C" fn scope_register(_: Domain, attributes: *const c_void) -> u64 {
    static SCOPES: AtomicU64 = AtomicU64::new(sys::DYNAMIC_IDS);
    guard(0, || {
        if attributes.is_null() {
            return 0;
        }
        let words = attributes.cast::<u64>();
        // SAFETY: `nvtxScopeAttr_t` is {size_t structSize; char* path; u64 parent; u64 id}.
        let chosen =
            unsafe { if words.read_unaligned() < 32 { 0 } else { words.add(3).read_unaligned() } };
        if chosen != 0 { chosen } else { SCOPES.fetch_add(1, Ordering::Relaxed) }
    })
}
