//! Tasks, which nest per thread and domain, and markers.

use std::ffi::{CStr, c_int, c_void};

use kymograph_protos::{Kind, Record, StrId};

use super::super::args::Args;
use super::super::guard::guard;
use super::super::memory;
use super::super::session::{Session, session};
use super::super::table::Interned;
use super::super::text::Text;
use super::super::thread;
use super::names::{DomainRef, StringRef};
use super::sys::{Function, Id};

pub(crate) fn functions() -> [(&'static str, Function); 8] {
    [
        ("task_begin", task_begin as Function),
        ("task_begin_fn", task_begin_fn as Function),
        ("task_end", task_end as Function),
        ("task_begin_ex", task_begin_ex as Function),
        ("task_begin_fn_ex", task_begin_fn_ex as Function),
        ("task_end_ex", task_end_ex as Function),
        ("marker", marker as Function),
        ("marker_ex", marker_ex as Function),
    ]
}

static SCOPE: Interned = Interned::known(b"scope");

/// A timestamp of the program's: ticks that it got from us, if it used no clock of its own.
pub(crate) fn given(clock: *const c_void, timestamp: u64) -> Option<u64> {
    (clock.is_null() && timestamp != 0).then_some(timestamp)
}

/// Whether a domain is recorded: by the program's and by our user's leave.
pub(crate) fn live(session: &Session, domain: DomainRef, category: StrId) -> bool {
    domain.is_on() && session.live(category)
}

/// Opens a task. The name is looked up only if it is recorded.
#[inline(always)]
fn begin<'a>(domain: DomainRef, time: Option<u64>, name: impl FnOnce(&Session, StrId) -> Text<'a>) {
    let Some(session) = session() else { return };
    let category = domain.category(session);
    thread::with(|thread| {
        thread.push(category, live(session, domain, category), |_| {
            let head = Record { kind: Kind::Push as u8, ..Record::default() };
            match name(session, category) {
                Text::Site(site) => {
                    let time = time.unwrap_or_else(|| session.now());
                    session.push(Record { time, site, ..head }, &[])
                }
                name => send_named(session, head, category, &name, time),
            }
        });
    });
}

/// Apart, since what it needs of the stack would be every task's.
#[inline(never)]
fn send_named(
    session: &Session,
    head: Record,
    category: StrId,
    name: &Text<'_>,
    time: Option<u64>,
) -> bool {
    session.send_head(head, category, name, &mut Args::new(), time)
}

/// Closes the innermost task of a domain, with the metadata that it was given.
#[inline(always)]
fn end(domain: DomainRef, time: Option<u64>) {
    let Some(session) = session() else { return };
    let time = time.unwrap_or_else(|| session.now());
    let category = domain.category(session);
    thread::with(|thread| {
        let popped = thread.pop(category);
        let mut args = Args::new();
        if let Some(popped) = popped
            && thread.has_pending()
        {
            thread.take(category, popped.level, |pending| args.push(pending.extra));
        }
        if popped.is_none_or(|popped| popped.recorded) {
            let kind = Kind::Pop as u8;
            session.push(Record { time, site: category, kind, ..Record::default() }, args.extras());
        }
    });
}

unsafe extern "C" fn task_begin(domain: DomainRef, _: Id, _parent: Id, name: StringRef) {
    guard((), || begin(domain, None, |session, category| name.text(session, category)));
}

unsafe extern "C" fn task_begin_ex(
    domain: DomainRef,
    clock: *const c_void,
    timestamp: u64,
    _: Id,
    _parent: Id,
    name: StringRef,
) {
    let time = given(clock, timestamp);
    guard((), || begin(domain, time, |session, category| name.text(session, category)));
}

unsafe extern "C" fn task_begin_fn(domain: DomainRef, _: Id, _parent: Id, function: *const c_void) {
    guard((), || begin(domain, None, |_, _| function_name(function)));
}

unsafe extern "C" fn task_begin_fn_ex(
    domain: DomainRef,
    clock: *const c_void,
    timestamp: u64,
    _: Id,
    _parent: Id,
    function: *const c_void,
) {
    let time = given(clock, timestamp);
    guard((), || begin(domain, time, |_, _| function_name(function)));
}

unsafe extern "C" fn task_end(domain: DomainRef) {
    guard((), || end(domain, None));
}

unsafe extern "C" fn task_end_ex(domain: DomainRef, clock: *const c_void, timestamp: u64) {
    guard((), || end(domain, given(clock, timestamp)));
}

/// What a function is called, if it is exported, else its address.
fn function_name(function: *const c_void) -> Text<'static> {
    // SAFETY: all zero is a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for.
    let found = unsafe { libc::dladdr(function, &mut info) };
    if found != 0 && !info.dli_sname.is_null() && info.dli_saddr.addr() == function.addr() {
        // SAFETY: a symbol's name, in a library that the program is about to call.
        return Text::Borrowed(unsafe { CStr::from_ptr(info.dli_sname) }.to_bytes());
    }
    let address = memory::format(format_args!("function {:#x}", function.addr()));
    address.map_or(Text::Borrowed(b"function"), Text::Owned)
}

/// Records a marker.
fn mark(domain: DomainRef, name: StringRef, scope: c_int, time: Option<u64>) {
    let Some(session) = session() else { return };
    let category = domain.category(session);
    if !live(session, domain, category) {
        return;
    }
    let mut args = Args::new();
    // `__itt_scope` in ittnotify.h.
    let scope = match scope {
        1 => "global",
        2 => "process",
        3 => "thread",
        4 => "task",
        _ => "",
    };
    if !scope.is_empty() {
        args.string(session, session.key(&SCOPE), scope.as_bytes());
    }
    let head = Record { kind: Kind::Instant as u8, ..Record::default() };
    session.send_head(head, category, &name.text(session, category), &mut args, time);
}

unsafe extern "C" fn marker(domain: DomainRef, _: Id, name: StringRef, scope: c_int) {
    guard((), || mark(domain, name, scope, None));
}

unsafe extern "C" fn marker_ex(
    domain: DomainRef,
    clock: *const c_void,
    timestamp: u64,
    _: Id,
    name: StringRef,
    scope: c_int,
) {
    guard((), || mark(domain, name, scope, given(clock, timestamp)));
}
