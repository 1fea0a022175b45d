//! Marks, nested ranges (push, pop) and free ones (start, end).

use std::ffi::c_int;

use kymograph_protos::{Kind, Record, StrId};

use super::super::args::Args;
use super::super::guard::guard;
use super::super::session::{NVTX, Session, range_id, range_number, session};
use super::super::text::{CText, Text, WideText};
use super::super::thread::{self, Thread};
use super::names::{self, Domain};
use super::sys::{EventAttributes, FAILED, Function};
use super::{attributes, pytorch, traceme};

/// Slots of `NVTX_CB_MODULE_CORE`: `NvtxCallbackIdCore` (nvtxTypes.h).
pub(crate) fn core() -> [(usize, Function); 15] {
    [
        (1, mark_ex as Function),
        (2, mark_a as Function),
        (3, mark_w as Function),
        (4, range_start_ex as Function),
        (5, range_start_a as Function),
        (6, range_start_w as Function),
        (7, range_end as Function),
        (8, range_push_ex as Function),
        (9, range_push_a as Function),
        (10, range_push_w as Function),
        (11, range_pop as Function),
        (12, names::name_category_a as Function),
        (13, names::name_category_w as Function),
        (14, names::name_os_thread_a as Function),
        (15, names::name_os_thread_w as Function),
    ]
}

/// Slots of `NVTX_CB_MODULE_CORE2`: `NvtxCallbackIdCore2` (nvtxTypes.h).
pub(crate) fn core2() -> [(usize, Function); 15] {
    [
        (1, domain_mark_ex as Function),
        (2, domain_range_start_ex as Function),
        (3, domain_range_end as Function),
        (4, domain_range_push_ex as Function),
        (5, domain_range_pop as Function),
        (6, names::resource_create as Function),
        (7, names::resource_destroy as Function),
        (8, names::domain_name_category_a as Function),
        (9, names::domain_name_category_w as Function),
        (10, names::register_string_a as Function),
        (11, names::register_string_w as Function),
        (12, names::domain_create_a as Function),
        (13, names::domain_create_w as Function),
        (14, names::domain_destroy as Function),
        (15, names::nvtx_initialize as Function),
    ]
}

/// The name of an event that has nothing else.
#[derive(Clone, Copy)]
pub(crate) enum Plain<'a> {
    Text(&'a [u8]),
    /// A site of the event's category.
    Site(StrId),
}

/// Where the name and the arguments of an event come from. Read only if it is recorded.
pub(crate) trait Source {
    /// The name, if there are no arguments. Most events are like that, and need nothing of the
    /// stack and of what [`Source::read`] has to look at.
    #[inline(always)]
    fn plain(&self, _: &Session, _: StrId) -> Option<Plain<'_>> {
        None
    }

    /// Adds the arguments to `args` and returns the name.
    fn read<'a>(&'a self, session: &Session, category: StrId, args: &mut Args) -> Text<'a>;
}

/// Attributes of an event.
struct Attributes(*const EventAttributes);

impl Source for CText {
    #[inline(always)]
    fn plain(&self, _: &Session, _: StrId) -> Option<Plain<'_>> {
        let text = self.bytes();
        (!traceme::may_be(text)).then_some(Plain::Text(text))
    }

    fn read<'a>(&'a self, session: &Session, _: StrId, args: &mut Args) -> Text<'a> {
        let text = Text::Borrowed(self.bytes());
        if traceme::may_be(text.bytes()) { traceme::take_apart(session, args, text) } else { text }
    }
}

impl Source for WideText {
    fn read<'a>(&'a self, _: &Session, _: StrId, _: &mut Args) -> Text<'a> {
        Text::Owned(self.utf8())
    }
}

impl Source for Attributes {
    #[inline(always)]
    fn plain(&self, session: &Session, category: StrId) -> Option<Plain<'_>> {
        // SAFETY: made of a callback's parameter, within that call.
        unsafe { attributes::plain(session, category, self.0) }
    }

    fn read<'a>(&'a self, session: &Session, category: StrId, args: &mut Args) -> Text<'a> {
        // SAFETY: made of a callback's parameter, within that call.
        unsafe { attributes::event(session, category, self.0, args) }
    }
}

/// Records what begins an event or is one, as `source` describes it. Returns whether it was
/// recorded.
#[inline(always)]
fn record(session: &Session, head: Record, category: StrId, source: &impl Source) -> bool {
    match source.plain(session, category) {
        Some(Plain::Text(text)) => session.send_plain(head, category, text),
        Some(Plain::Site(site)) => session.push(Record { time: session.now(), site, ..head }, &[]),
        None => record_whole(session, head, category, source),
    }
}

/// As [`record`], with arguments. Apart, since what they need of the stack would be every
/// event's.
#[inline(never)]
fn record_whole(session: &Session, head: Record, category: StrId, source: &impl Source) -> bool {
    let mut args = Args::new();
    let name = source.read(session, category, &mut args);
    session.send_head(head, category, &name, &mut args, None)
}

fn of_kind(kind: Kind) -> Record {
    Record { kind: kind as u8, ..Record::default() }
}

/// Records a mark.
#[inline(always)]
pub(crate) fn mark(domain: Domain, source: &impl Source) {
    let Some(session) = session() else { return };
    let category = names::category(session, domain);
    if session.live(category) {
        record(session, of_kind(Kind::Instant), category, source);
    }
}

/// Opens a nested range. Returns its level.
#[inline(always)]
pub(crate) fn push(domain: Domain, source: &impl Source) -> c_int {
    let Some(session) = session() else {
        return FAILED;
    };
    let category = names::category(session, domain);
    push_with(session, category, |_, _| record(session, of_kind(Kind::Push), category, source))
}

#[inline(always)]
fn push_with(session: &Session, category: StrId, send: impl FnOnce(&Thread, u32) -> bool) -> c_int {
    thread::with(|thread| {
        match thread.push(category, session.live(category), |level| send(thread, level)) {
            Some(level) => c_int::try_from(level).unwrap_or(c_int::MAX),
            None => FAILED,
        }
    })
}

/// Closes the innermost nested range of a domain. Returns its level.
#[inline(always)]
pub(crate) fn pop(domain: Domain, arguments: impl FnOnce(&Session, StrId, &mut Args)) -> c_int {
    let Some(session) = session() else {
        return FAILED;
    };
    let time = session.now();
    let category = names::category(session, domain);
    pop_innermost(session, time, category, |args| arguments(session, category, args))
}

/// Closes the innermost nested range of a category. Returns its level.
#[inline(always)]
pub(crate) fn pop_innermost(
    session: &Session,
    time: u64,
    category: StrId,
    arguments: impl FnOnce(&mut Args),
) -> c_int {
    thread::with(|thread| {
        let popped = thread.pop(category);
        // A pop too many (or of a range that found no room on a stack) ends nothing. It is
        // passed on: the recorder counts it, where a user may look.
        if popped.is_none_or(|popped| popped.recorded) {
            let mut args = Args::new();
            arguments(&mut args);
            if let Some(popped) = popped
                && thread.has_pending()
            {
                thread.take(category, popped.level, |pending| args.push(pending.extra));
            }
            let kind = Kind::Pop as u8;
            session.push(Record { time, site: category, kind, ..Record::default() }, args.extras());
        }
        let Some(popped) = popped else { return FAILED };
        if thread.evaluating.get() > popped.level {
            pytorch::popped(thread, session, category, popped.level);
        }
        c_int::try_from(popped.level).unwrap_or(c_int::MAX)
    })
}

/// Opens a free range. Returns its id, which says whether it was recorded.
#[inline(always)]
pub(crate) fn start(domain: Domain, source: &impl Source) -> u64 {
    let Some(session) = session() else { return 0 };
    let category = names::category(session, domain);
    let number = range_number();
    if !session.live(category) {
        return range_id(number, false);
    }
    let head = Record { other: range_id(number, true), ..of_kind(Kind::RangeBegin) };
    range_id(number, record(session, head, category, source))
}

/// Closes a free range.
pub(crate) fn end(domain: Domain, id: u64, arguments: impl FnOnce(&Session, StrId, &mut Args)) {
    let Some(session) = session() else { return };
    let time = session.now();
    // 0 is no range; and not recorded was what has the bit clear.
    if id & 1 == 0 || id >> 48 != range_id(0, true) >> 48 {
        return;
    }
    let mut args = Args::new();
    arguments(session, names::category(session, domain), &mut args);
    let kind = Kind::RangeEnd as u8;
    session.push(Record { time, other: id, kind, ..Record::default() }, args.extras());
}

/// The default domain.
const DEFAULT: Domain = std::ptr::null_mut();

pub(crate) unsafe extern "C" fn mark_ex(event: *const EventAttributes) {
    guard((), || mark(DEFAULT, &Attributes(event)));
}

pub(crate) unsafe extern "C" fn mark_a(message: CText) {
    guard((), || mark(DEFAULT, &message));
}

pub(crate) unsafe extern "C" fn mark_w(message: WideText) {
    guard((), || mark(DEFAULT, &message));
}

pub(crate) unsafe extern "C" fn domain_mark_ex(domain: Domain, event: *const EventAttributes) {
    guard((), || mark(domain, &Attributes(event)));
}

pub(crate) unsafe extern "C" fn range_start_ex(event: *const EventAttributes) -> u64 {
    guard(0, || start(DEFAULT, &Attributes(event)))
}

pub(crate) unsafe extern "C" fn range_start_a(message: CText) -> u64 {
    guard(0, || start(DEFAULT, &message))
}

pub(crate) unsafe extern "C" fn range_start_w(message: WideText) -> u64 {
    guard(0, || start(DEFAULT, &message))
}

pub(crate) unsafe extern "C" fn domain_range_start_ex(
    domain: Domain,
    event: *const EventAttributes,
) -> u64 {
    guard(0, || start(domain, &Attributes(event)))
}

pub(crate) unsafe extern "C" fn range_end(id: u64) {
    guard((), || end(DEFAULT, id, |_, _, _| {}));
}

pub(crate) unsafe extern "C" fn domain_range_end(domain: Domain, id: u64) {
    guard((), || end(domain, id, |_, _, _| {}));
}

/// The way of `nvtxRangePushA`, which PyTorch and most C programs take.
pub(crate) unsafe extern "C" fn range_push_a(message: CText) -> c_int {
    guard(FAILED, || {
        let Some(session) = session() else {
            return FAILED;
        };
        let (text, comma) = message.bytes_and_comma();
        push_text(session, session.key(&NVTX), text, comma)
    })
}

/// Opens a nested range that has nothing but a name, which may be PyTorch's.
#[inline(always)]
pub(crate) fn push_message(session: &Session, category: StrId, text: &[u8]) -> c_int {
    push_text(session, category, text, text.iter().position(|byte| *byte == b','))
}

/// As [`push_message`]; the first comma of `text` is at `comma`.
#[inline(always)]
fn push_text(session: &Session, category: StrId, text: &[u8], comma: Option<usize>) -> c_int {
    push_with(session, category, |thread, level| match comma {
        // Names with a comma are rare, but for PyTorch's.
        None if !traceme::may_be(text) => session.send_plain(of_kind(Kind::Push), category, text),
        _ => push_composed(session, thread, category, level, text, comma),
    })
}

/// A name that may be put together of several things.
#[inline(never)]
fn push_composed(
    session: &Session,
    thread: &Thread,
    category: StrId,
    level: u32,
    text: &[u8],
    comma: Option<usize>,
) -> bool {
    let recorded = comma.and_then(|comma| match pytorch::plain(text, comma) {
        Some(operator) => Some(pytorch::push_plain(session, category, operator)),
        None => pytorch::push(session, thread, category, level, text),
    });
    recorded.unwrap_or_else(|| {
        let mut args = Args::new();
        let name = traceme::take_apart(session, &mut args, Text::Borrowed(text));
        session.send_head(of_kind(Kind::Push), category, &name, &mut args, None)
    })
}

pub(crate) unsafe extern "C" fn range_push_w(message: WideText) -> c_int {
    guard(FAILED, || push(DEFAULT, &message))
}

pub(crate) unsafe extern "C" fn range_push_ex(event: *const EventAttributes) -> c_int {
    guard(FAILED, || push(DEFAULT, &Attributes(event)))
}

pub(crate) unsafe extern "C" fn domain_range_push_ex(
    domain: Domain,
    event: *const EventAttributes,
) -> c_int {
    guard(FAILED, || push(domain, &Attributes(event)))
}

pub(crate) unsafe extern "C" fn range_pop() -> c_int {
    guard(FAILED, || pop(DEFAULT, |_, _, _| {}))
}

pub(crate) unsafe extern "C" fn domain_range_pop(domain: Domain) -> c_int {
    guard(FAILED, || pop(domain, |_, _, _| {}))
}
