//! Names that outlive a call: domains, categories, registered strings, threads.

use std::ffi::c_void;

use kymograph_protos::{ArgType, Kind, Record, StrId};

use super::super::args::Args;
use super::super::guard::guard;
use super::super::session::{NVTX, Session, session};
use super::super::table::{Interned, List, Map};
use super::super::text::{CText, Text, WideText};
use super::attributes::message;
use super::sys::{self, ResourceAttributes};
use super::traceme;

/// A domain's handle, which the program only passes back.
pub(crate) type Domain = *mut c_void;
/// A registered string's handle.
pub(crate) type StringHandle = *mut c_void;

static DOMAINS: List<Interned> = List::new();
static STRINGS: List<Registered> = List::new();
static CATEGORY_NAMES: List<Interned> = List::new();
/// (category of the domain, NVTX category) → index in [`CATEGORY_NAMES`], plus 1.
static CATEGORIES: Map = Map::new();

struct Registered {
    category: StrId,
    text: Interned,
    /// Whether it carries no arguments.
    is_plain: bool,
}

/// Upper halves of handles ("KD", "KS"): an index alone would look like a small number
/// that a program might make up.
const DOMAIN_TAG: u64 = 0x4b44 << 32;
const STRING_TAG: u64 = 0x4b53 << 32;

fn handle(tag: u64, index: Option<u32>) -> *mut c_void {
    let bits = index.map_or(0, |index| tag | u64::from(index));
    std::ptr::without_provenance_mut(bits as usize)
}

fn index(tag: u64, handle: *mut c_void) -> Option<u32> {
    let bits = handle.addr() as u64;
    (bits & !0xffff_ffff == tag).then_some(bits as u32)
}

/// The category of a domain; the default domain's for NULL and for what is no domain.
#[inline]
pub(crate) fn category(session: &Session, domain: Domain) -> StrId {
    let named = if domain.is_null() {
        None
    } else {
        index(DOMAIN_TAG, domain).and_then(|index| DOMAINS.get(index))
    };
    match named {
        Some(name) => session.category(name, &NVTX),
        None => session.key(&NVTX),
    }
}

fn create_domain(name: &[u8]) -> Domain {
    // Two domains of one name are one: slices nest by category, which is the name.
    let known = DOMAINS.find(|domain| domain.text() == name).map(|found| found.0);
    let index = known.or_else(|| DOMAINS.push(Interned::new(name)?));
    if let Some(domain) = index.and_then(|index| DOMAINS.get(index))
        && let Some(session) = session()
    {
        // Its id, before events need it.
        session.key(domain);
    }
    handle(DOMAIN_TAG, index)
}

pub(crate) unsafe extern "C" fn domain_create_a(name: CText) -> Domain {
    guard(std::ptr::null_mut(), || create_domain(name.bytes()))
}

pub(crate) unsafe extern "C" fn domain_create_w(name: WideText) -> Domain {
    guard(std::ptr::null_mut(), || create_domain(&name.utf8()))
}

/// Nothing: the handle may be used again by mistake, or by an event that is under way.
pub(crate) unsafe extern "C" fn domain_destroy(_: Domain) {}

fn register(domain: Domain, text: &[u8]) -> StringHandle {
    let Some(session) = session() else {
        return std::ptr::null_mut();
    };
    let category = category(session, domain);
    let known = |s: &Registered| s.category == category && s.text.text() == text;
    // Programs register a handful of strings, or the same ones in a loop by mistake. Look
    // for it, but not among thousands.
    let found = STRINGS.find_recent(64, known);
    let is_plain = !traceme::may_be(text);
    let new = || STRINGS.push(Registered { category, text: Interned::new(text)?, is_plain });
    handle(STRING_TAG, found.or_else(new))
}

pub(crate) unsafe extern "C" fn register_string_a(domain: Domain, text: CText) -> StringHandle {
    guard(std::ptr::null_mut(), || register(domain, text.bytes()))
}

pub(crate) unsafe extern "C" fn register_string_w(domain: Domain, text: WideText) -> StringHandle {
    guard(std::ptr::null_mut(), || register(domain, &text.utf8()))
}

/// A registered string, for an event of `category`.
pub(crate) fn registered(
    session: &Session,
    category: StrId,
    handle: StringHandle,
) -> Text<'static> {
    match registered_site(session, category, handle) {
        Some(site) => Text::Site(site),
        None => Text::Borrowed(registered_text(handle).unwrap_or_default()),
    }
}

/// The site of a registered string for an event of `category`, if it carries no arguments.
#[inline]
pub(crate) fn registered_site(
    session: &Session,
    category: StrId,
    handle: StringHandle,
) -> Option<StrId> {
    let found = STRINGS.get(index(STRING_TAG, handle)?)?;
    // Its id is for the domain it was registered in; it should not be used in another.
    // One that carries arguments is taken apart by its text.
    if found.category != category || !found.is_plain {
        return None;
    }
    Some(found.text.id(session, category)).filter(|site| !site.is_none())
}

/// The text of a registered string.
pub(crate) fn registered_text(handle: StringHandle) -> Option<&'static [u8]> {
    Some(STRINGS.get(index(STRING_TAG, handle)?)?.text.text())
}

fn name_category(domain: Domain, number: u32, name: &[u8]) {
    let Some(session) = session() else { return };
    let category = category(session, domain);
    let known = CATEGORIES.get(category.0.into(), number.into());
    let same = known.and_then(|i| CATEGORY_NAMES.get(i - 1)).is_some_and(|n| n.text() == name);
    if !same && let Some(index) = Interned::new(name).and_then(|name| CATEGORY_NAMES.push(name)) {
        CATEGORIES.insert(category.0.into(), number.into(), index + 1);
    }
}

/// Adds an event's NVTX category: its name, or its number if it has none.
pub(crate) fn category_arg(
    session: &Session,
    args: &mut Args,
    key: StrId,
    category: StrId,
    number: u32,
) {
    let known = CATEGORIES.get(category.0.into(), number.into());
    let id = known
        .and_then(|index| CATEGORY_NAMES.get(index - 1))
        .map_or(StrId::NONE, |name| name.id(session, StrId::NONE));
    if id.is_none() {
        args.unsigned(key, number.into());
    } else {
        args.add(key, ArgType::Str, id.0.into());
    }
}

pub(crate) unsafe extern "C" fn name_category_a(number: u32, name: CText) {
    guard((), || name_category(std::ptr::null_mut(), number, name.bytes()));
}

pub(crate) unsafe extern "C" fn name_category_w(number: u32, name: WideText) {
    guard((), || name_category(std::ptr::null_mut(), number, &name.utf8()));
}

pub(crate) unsafe extern "C" fn domain_name_category_a(domain: Domain, number: u32, name: CText) {
    guard((), || name_category(domain, number, name.bytes()));
}

pub(crate) unsafe extern "C" fn domain_name_category_w(
    domain: Domain,
    number: u32,
    name: WideText,
) {
    guard((), || name_category(domain, number, &name.utf8()));
}

/// Names a thread: the one with this id, or the calling one (0).
fn name_thread(thread: u64, name: &Text<'_>) {
    let Some(session) = session() else { return };
    let head = Record {
        arg: thread,
        tag: ArgType::U64 as u8,
        kind: Kind::ThreadName as u8,
        ..Record::default()
    };
    let row = traceme::row(name.bytes());
    let name = row.as_ref().map_or(Text::Borrowed(name.bytes()), |row| Text::Borrowed(row));
    session.send_head(head, session.key(&NVTX), &name, &mut Args::new(), None);
}

pub(crate) unsafe extern "C" fn name_os_thread_a(thread: u32, name: CText) {
    guard((), || name_thread(thread.into(), &Text::Borrowed(name.bytes())));
}

pub(crate) unsafe extern "C" fn name_os_thread_w(thread: u32, name: WideText) {
    guard((), || name_thread(thread.into(), &Text::Owned(name.utf8())));
}

/// A resource is only recorded if it is a thread; the name is all that is known of it.
pub(crate) unsafe extern "C" fn resource_create(
    domain: Domain,
    attributes: *const ResourceAttributes,
) -> *mut c_void {
    guard(std::ptr::null_mut(), || {
        // SAFETY: NVTX passes NULL or a structure on, which says its size.
        let Some(resource) = (unsafe { sys::read_sized::<ResourceAttributes>(attributes) }) else {
            return std::ptr::null_mut();
        };
        let Some(session) = session() else {
            return std::ptr::null_mut();
        };
        // SAFETY: the message is of the type that is given with it.
        let name = unsafe {
            message(session, category(session, domain), resource.message_type, resource.message)
        };
        // `ThreadName` takes any category's text: a registered string is looked up again.
        let name = match name {
            Text::Site(_) => {
                registered_text(std::ptr::without_provenance_mut(resource.message as usize))
                    .map_or(Text::Borrowed(&[]), Text::Borrowed)
            }
            other => other,
        };
        // SAFETY: no preconditions.
        let me = || unsafe { libc::pthread_self() } as u64;
        match resource.identifier_type {
            sys::RESOURCE_THREAD_NATIVE => name_thread(resource.identifier, &name),
            // Of another thread's pthread_t nothing can be asked safely: it may have ended.
            sys::RESOURCE_THREAD_POSIX if resource.identifier == me() => name_thread(0, &name),
            _ => {}
        }
        // Not NULL, and the same for all: nobody can ask for a resource.
        handle(DOMAIN_TAG + (1 << 47), Some(1))
    })
}

pub(crate) unsafe extern "C" fn resource_destroy(_: *mut c_void) {}

/// The program initialises NVTX early; that was done before this could be called.
pub(crate) unsafe extern "C" fn nvtx_initialize(_: *const c_void) {}

/// Whether events of a domain are recorded, now or later: nvtx for Python asks once.
pub(crate) unsafe extern "C" fn domain_is_enabled(domain: Domain) -> u8 {
    guard(1, || session().map_or(1, |s| u8::from(s.may_live(category(s, domain)))))
}
