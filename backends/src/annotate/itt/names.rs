//! Domains, string handles, and names of threads.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use kymograph_protos::{Kind, Record, StrId};

use super::super::args::Args;
use super::super::guard::guard;
use super::super::session::{ITT, Session, session};
use super::super::text::{CText, Text, WideText, ascii};
use super::known::Known;
use super::sys::{Domain, Function, Id, StringHandle};

pub(crate) fn functions() -> [(&'static str, Function); 15] {
    [
        ("domain_create", domain_create as Function),
        ("domain_createA", domain_create as Function),
        ("domain_createW", domain_create_w as Function),
        ("string_handle_create", string_create as Function),
        ("string_handle_createA", string_create as Function),
        ("string_handle_createW", string_create_w as Function),
        ("thread_set_name", thread_set_name as Function),
        ("thread_set_nameA", thread_set_name as Function),
        ("thread_set_nameW", thread_set_name_w as Function),
        ("thr_name_set", thr_name_set as Function),
        ("thr_name_setA", thr_name_set as Function),
        ("thr_name_setW", thr_name_set_w as Function),
        ("id_create", id_create as Function),
        ("id_destroy", id_create as Function),
        ("get_timestamp", get_timestamp as Function),
    ]
}

static DOMAINS: Known<Domain> = Known::new();
static STRINGS: Known<StringHandle> = Known::new();

fn new_domain(name: &[u8]) -> *mut Domain {
    DOMAINS.get(name, |text| Domain {
        flags: AtomicI32::new(1),
        name: text.into_raw(),
        wide_name: ptr::null_mut(),
        extra1: AtomicI32::new(0),
        extra2: AtomicPtr::new(ptr::null_mut()),
        next: ptr::null_mut(),
    })
}

fn new_string(text: &[u8]) -> *mut StringHandle {
    STRINGS.get(text, |text| StringHandle {
        text: text.into_raw(),
        wide_text: ptr::null_mut(),
        extra1: AtomicI32::new(0),
        extra2: AtomicU64::new(0),
        next: ptr::null_mut(),
    })
}

unsafe extern "C" fn domain_create(name: CText) -> *mut Domain {
    guard(ptr::null_mut(), || new_domain(name.bytes()))
}

unsafe extern "C" fn domain_create_w(name: WideText) -> *mut Domain {
    guard(ptr::null_mut(), || new_domain(&name.utf8()))
}

unsafe extern "C" fn string_create(text: CText) -> *mut StringHandle {
    guard(ptr::null_mut(), || new_string(text.bytes()))
}

unsafe extern "C" fn string_create_w(text: WideText) -> *mut StringHandle {
    guard(ptr::null_mut(), || new_string(&text.utf8()))
}

/// A domain that a callback got.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct DomainRef(*const Domain);

impl DomainRef {
    /// Its address, by which ranges without an id are told apart.
    pub(crate) fn address(self) -> u64 {
        self.0.addr() as u64
    }

    /// Whether the program left it switched on.
    pub(crate) fn is_on(self) -> bool {
        // SAFETY: NULL, or a domain that we made or adopted; those live forever.
        unsafe { self.0.as_ref() }.is_none_or(|domain| domain.flags.load(Ordering::Relaxed) != 0)
    }

    /// Its category.
    #[inline]
    pub(crate) fn category(self, session: &Session) -> StrId {
        // SAFETY: as above.
        let Some(domain) = (unsafe { self.0.as_ref() }) else {
            return session.key(&ITT);
        };
        match domain.extra1.load(Ordering::Relaxed) {
            0 => {
                // SAFETY: a domain's name is a C string or NULL, and lives as long.
                let name = unsafe { ascii(domain.name) };
                let id = if name.is_empty() {
                    StrId::NONE
                } else {
                    session.intern_or_wait(StrId::NONE, name)
                };
                if id.is_none() {
                    return session.key(&ITT);
                }
                domain.extra1.store(id.0.cast_signed(), Ordering::Relaxed);
                id
            }
            id => StrId(id.cast_unsigned()),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { self.0.as_ref().map_or(&[], |domain| ascii(domain.name)) }
    }
}

/// A string handle that a callback got.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct StringRef(*const StringHandle);

impl StringRef {
    /// Its text, for an event of `category`. The last category's id is kept in the handle:
    /// few handles are used with more than one.
    #[inline]
    pub(crate) fn text(&self, session: &Session, category: StrId) -> Text<'_> {
        // SAFETY: NULL, or a handle that we made or adopted; those live forever.
        let Some(handle) = (unsafe { self.0.as_ref() }) else {
            return Text::Borrowed(&[]);
        };
        let kept = handle.extra2.load(Ordering::Relaxed);
        if kept >> 32 == u64::from(category.0) && kept as u32 != 0 {
            return Text::Site(StrId(kept as u32));
        }
        let text = self.bytes();
        if text.is_empty() || text.len() > super::super::text::MAX_INTERNED {
            return Text::Borrowed(text);
        }
        let site = session.intern(category, text);
        if site.is_none() {
            return Text::Borrowed(text);
        }
        handle.extra2.store(u64::from(category.0) << 32 | u64::from(site.0), Ordering::Relaxed);
        Text::Site(site)
    }

    /// Its text.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as above; its text is a C string or NULL, and lives as long.
        unsafe { self.0.as_ref().map_or(&[], |handle| ascii(handle.text)) }
    }

    /// Its address: handles are unique by text.
    pub(crate) fn address(self) -> u64 {
        self.0.addr() as u64
    }
}

fn name_thread(name: &[u8]) {
    let Some(session) = session() else { return };
    let head = Record { kind: Kind::ThreadName as u8, ..Record::default() };
    let category = session.key(&ITT);
    session.send_head(head, category, &Text::Borrowed(name), &mut Args::new(), None);
}

unsafe extern "C" fn thread_set_name(name: CText) {
    guard((), || name_thread(name.bytes()));
}

unsafe extern "C" fn thread_set_name_w(name: WideText) {
    guard((), || name_thread(&name.utf8()));
}

/// The older interface; the length is redundant.
unsafe extern "C" fn thr_name_set(name: CText, _length: c_int) -> c_int {
    guard(-1, || {
        name_thread(name.bytes());
        0
    })
}

unsafe extern "C" fn thr_name_set_w(name: WideText, _length: c_int) -> c_int {
    guard(-1, || {
        name_thread(&name.utf8());
        0
    })
}

/// Ids mean something when they are used; until then, and after, nothing.
unsafe extern "C" fn id_create(_: *const c_void, _: Id) {}

unsafe extern "C" fn get_timestamp() -> u64 {
    guard(0, || session().map_or(0, Session::now))
}
