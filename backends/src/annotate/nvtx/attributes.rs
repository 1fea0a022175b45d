//! `nvtxEventAttributes_t`: name, category, colour and payload of an event.

use std::ffi::c_char;

use kymograph_protos::{ArgType, StrId};

use super::super::args::{self, Args};
use super::super::session::Session;
use super::super::text::{Text, Wide, ascii, wide};
use super::events::Plain;
use super::sys::{self, EventAttributes, PayloadData};
use super::{names, payload, traceme};

/// The text of a message.
///
/// # Safety
/// `value` is of the type that `ty` says (or anything, for a type that NVTX does not
/// have), and a string it points to lives during `'a`.
pub(crate) unsafe fn message<'a>(
    session: &Session,
    category: StrId,
    ty: i32,
    value: u64,
) -> Text<'a> {
    let address = value as usize;
    match ty {
        sys::MESSAGE_ASCII => {
            let text = std::ptr::with_exposed_provenance::<c_char>(address);
            // SAFETY: the caller's promise.
            Text::Borrowed(unsafe { ascii(text) })
        }
        sys::MESSAGE_WIDE => {
            let text = std::ptr::with_exposed_provenance::<Wide>(address);
            // SAFETY: the caller's promise.
            Text::Owned(unsafe { wide(text) })
        }
        sys::MESSAGE_REGISTERED => {
            names::registered(session, category, std::ptr::without_provenance_mut(address))
        }
        _ => Text::Borrowed(&[]),
    }
}

/// The name of an event that has nothing else; none if it has, or is of an older NVTX.
///
/// # Safety
/// As for [`event`].
#[inline(always)]
pub(crate) unsafe fn plain<'a>(
    session: &Session,
    category: StrId,
    event: *const EventAttributes,
) -> Option<Plain<'a>> {
    // SAFETY: the caller's promise.
    let event = unsafe { sys::read_whole(event) }?;
    let other =
        event.category | event.color_type.cast_unsigned() | event.payload_type.cast_unsigned();
    if other != 0 {
        return None;
    }
    match event.message_type {
        sys::MESSAGE_ASCII => {
            let text = std::ptr::with_exposed_provenance::<c_char>(event.message as usize);
            // SAFETY: the message is of its type.
            let text = unsafe { ascii(text) };
            (!traceme::may_be(text)).then_some(Plain::Text(text))
        }
        sys::MESSAGE_REGISTERED => {
            let handle = std::ptr::without_provenance_mut(event.message as usize);
            names::registered_site(session, category, handle).map(Plain::Site)
        }
        _ => None,
    }
}

/// Reads an event: its arguments into `args`, its name as the result.
///
/// # Safety
/// `event` is NULL or an `nvtxEventAttributes_t` that says its size and holds values of
/// the types that it says; what it points to lives during `'a`.
pub(crate) unsafe fn event<'a>(
    session: &Session,
    category: StrId,
    event: *const EventAttributes,
    args: &mut Args,
) -> Text<'a> {
    // SAFETY: the caller's promise.
    let Some(event) = (unsafe { sys::read_sized(event) }) else {
        return Text::Borrowed(&[]);
    };
    if event.category != 0 {
        names::category_arg(session, args, session.key(&args::CATEGORY), category, event.category);
    }
    if event.color_type == sys::COLOR_ARGB {
        args.unsigned(session.key(&args::COLOR), event.color.into());
    }
    if event.payload_type == sys::PAYLOAD_EXT {
        // SAFETY: the caller's promise.
        return unsafe { extended(session, category, &event, args) };
    }
    if let Some((ty, bits)) = value(event.payload_type, event.payload) {
        args.add(session.key(&args::PAYLOAD), ty, bits);
    }
    // The result is made last, where it is to be: copying what was just written costs more
    // than all the rest.
    if event.message_type == sys::MESSAGE_ASCII {
        let text = std::ptr::with_exposed_provenance::<c_char>(event.message as usize);
        // SAFETY: the message is of its type.
        let text = unsafe { ascii(text) };
        if traceme::may_be(text) {
            return traceme::take_apart(session, args, Text::Borrowed(text));
        }
        return Text::Borrowed(text);
    }
    // SAFETY: as above.
    let name = || unsafe { message(session, category, event.message_type, event.message) };
    if event.message_type == sys::MESSAGE_WIDE {
        return traceme::take_apart(session, args, name());
    }
    name()
}

/// As [`event`], of one with payloads of the extension.
///
/// # Safety
/// As for [`event`].
#[inline(never)]
unsafe fn extended<'a>(
    session: &Session,
    category: StrId,
    event: &EventAttributes,
    args: &mut Args,
) -> Text<'a> {
    let list = std::ptr::with_exposed_provenance::<PayloadData>(event.payload as usize);
    let count = usize::try_from(event.reserved).unwrap_or(0);
    // SAFETY: an event of this type points to that many payloads.
    let other = unsafe { payload::read(session, category, list, count, args) };
    // What is given later wins, says the payload extension.
    // SAFETY: the message is of its type.
    other
        .unwrap_or_else(|| unsafe { message(session, category, event.message_type, event.message) })
}

/// The plain payload of an event. (Little-endian: the lower half of the union is first.)
fn value(ty: i32, payload: u64) -> Option<(ArgType, u64)> {
    let low = payload as u32;
    Some(match ty {
        sys::PAYLOAD_U64 => (ArgType::U64, payload),
        sys::PAYLOAD_I64 => (ArgType::I64, payload),
        sys::PAYLOAD_F64 => (ArgType::F64, payload),
        sys::PAYLOAD_U32 => (ArgType::U64, low.into()),
        sys::PAYLOAD_I32 => (ArgType::I64, i64::from(low.cast_signed()).cast_unsigned()),
        sys::PAYLOAD_F32 => (ArgType::F64, f64::from(f32::from_bits(low)).to_bits()),
        _ => return None,
    })
}
