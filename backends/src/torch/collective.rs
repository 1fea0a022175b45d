//! What PyTorch says of a collective while its `record_param_comms` begins.
//!
//! `c10::ThreadLocalDebugInfo` then has a `torch::ParamCommsDebugInfo`
//! (torch/csrc/distributed/c10d/ParamCommsUtils.hpp), from 2.4 on as follows. Which version it
//! is, the name of its constructor tells. Strings have 32 bytes, or 8 in the old ABI of the C++
//! library; counts have 4 bytes in 2.4.
//!
//! ```text
//!    0 vtable
//!    8 pgName_: description of the process group, then its name (libstdc++ has tuples backwards)
//!   72 rank_, worldSize_
//!   80 collectiveName_
//!  112 inMessageNelems_, outMessageNelems_
//!  128 dType_
//!  136 inputSplitSizes_, outputSplitSizes_: vectors of int64_t
//!  184 globalRankStart_, globalRankStride_
//!  192 groupRanks_: the same
//!  216 isAsynchronizedOp_; 224 sequenceNumber_: from 2.12 on
//! ```

use std::ffi::{CStr, c_void};
use std::fmt::Write as _;
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering};

use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::layout::read;
use super::texts::Text;
use crate::load::Library;

/// `c10::DebugInfoKind::PARAM_COMMS_INFO`.
const PARAM_COMMS_INFO: u8 = 4;
/// Arguments of a collective at most.
pub(super) const MAX_ARGS: usize = 16;
/// Numbers of a list that are written, as Kineto does.
const MAX_LISTED: usize = 30;
/// More than a group has ranks, a list numbers, and a name bytes: what has more is not what it
/// is taken for.
const MAX_RANKS: i32 = 1 << 24;
const MAX_NUMBERS: usize = 1 << 20;
const MAX_NAME: usize = 4096;

/// Arguments, as Kineto calls them.
const NAMES: [&str; MAX_ARGS] = [
    "Collective name",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
    "In split size",
    "Out split size",
    "Global rank start",
    "Global rank stride",
    "Group size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Rank",
    "Dst Rank",
    "Src Rank",
    "Seq",
];

/// `c10::ThreadLocalDebugInfo::get`.
type Get = unsafe extern "C" fn(u8) -> *const u8;

/// See the module.
#[derive(Debug)]
pub(super) struct Collectives {
    /// How they are read, if that is known.
    known: Option<(Get, Layout)>,
    names: [StrId; MAX_ARGS],
    /// The operator's name.
    site: StrId,
    /// Whether the trace says already that it is not known.
    told: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    /// Bytes of a string, and of a count of elements.
    string: usize,
    count: usize,
    /// It has a number.
    numbered: bool,
}

/// The constructors, by what they take.
const LAYOUTS: [(&CStr, Layout); 5] = [
    (
        c"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iiib",
        Layout { string: 32, count: 8, numbered: true },
    ),
    (
        c"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iii",
        Layout { string: 32, count: 8, numbered: false },
    ),
    (
        c"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_iiN3c1010ScalarTypeESt6vectorIlSaIlEESE_iii",
        Layout { string: 32, count: 4, numbered: false },
    ),
    (
        c"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJSsSsEEiOSsllN3c1010ScalarTypeESt6vectorIlSaIlEES8_iii",
        Layout { string: 8, count: 8, numbered: false },
    ),
    (
        c"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJSsSsEEiOSsiiN3c1010ScalarTypeESt6vectorIlSaIlEES8_iii",
        Layout { string: 8, count: 4, numbered: false },
    ),
];

/// What is read of one.
#[derive(Debug)]
struct Collective<'a> {
    name: &'a [u8],
    group: &'a [u8],
    description: &'a [u8],
    rank: i32,
    size: i32,
    elements: [i64; 2],
    dtype: &'static str,
    splits: [&'a [i64]; 2],
    start: i32,
    stride: i32,
    ranks: &'a [i64],
    sequence: Option<i64>,
}

impl Collectives {
    /// Of the library; `category` is that of operators.
    pub(super) fn find(
        library: Library,
        recorder: &dyn ColdRecorder,
        category: StrId,
    ) -> Collectives {
        const GET: &CStr = c"_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE";
        let known = LAYOUTS.iter().find(|(name, _)| library.symbol(name).is_some());
        let known = known.zip(library.symbol(GET)).map(|((_, layout), get)| {
            // SAFETY: the function of this name has this type.
            (unsafe { transmute::<*mut c_void, Get>(get.as_ptr()) }, *layout)
        });
        Collectives {
            known,
            names: NAMES.map(|name| recorder.intern_or_wait(StrId::NONE, name.as_bytes())),
            site: recorder.intern_or_wait(category, b"record_param_comms"),
            told: AtomicBool::new(false),
        }
    }

    /// Whether an operator of this name is a collective.
    #[inline]
    pub(super) fn is_one(&self, site: StrId) -> bool {
        site == self.site && !site.is_none()
    }

    /// Adds arguments of the collective that this thread begins. Returns how many.
    #[cold]
    pub(super) fn args(&self, recorder: &dyn ColdRecorder, args: &mut [Extra]) -> usize {
        // SAFETY: what the function returns is of this kind, and lives while the operator begins.
        let found = self.known.and_then(|(get, layout)| unsafe {
            let info = get(PARAM_COMMS_INFO);
            if info.is_null() { None } else { layout.read(info) }
        });
        match found {
            Some(collective) => collective.write(&self.names, recorder, args),
            None => {
                self.tell(recorder);
                0
            }
        }
    }

    /// Once: what the trace lacks.
    fn tell(&self, recorder: &dyn ColdRecorder) {
        if self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        let what = "collectives have no arguments: PyTorch says none, or not as 2.4 to 2.15 do";
        let site = recorder.intern_or_wait(StrId::NONE, what.as_bytes());
        let time = recorder.now();
        recorder.push(Record { time, site, kind: Kind::Note as u8, ..Record::default() }, &[]);
    }
}

impl Layout {
    /// # Safety
    /// `info` is a ParamCommsDebugInfo.
    unsafe fn read<'a>(self, info: *const u8) -> Option<Collective<'a>> {
        let rank = 8 + 2 * self.string;
        let name = rank + 8;
        let elements = name + self.string;
        let dtype = elements + 2 * self.count;
        let splits = (dtype + 1).next_multiple_of(8);
        let ranks = splits + 2 * 24 + 8;
        // SAFETY: the caller's promise; the layout is that of the constructor that there is.
        unsafe {
            let count = |at| match self.count {
                4 => i64::from(read::<i32>(info, at)),
                _ => read::<i64>(info, at),
            };
            let number = self.numbered.then(|| read::<i64>(info, ranks + 24 + 8));
            let found = Collective {
                description: self.text(info, 8)?,
                group: self.text(info, 8 + self.string)?,
                rank: read(info, rank),
                size: read(info, rank + 4),
                name: self.text(info, name)?,
                elements: [count(elements), count(elements + self.count)],
                dtype: dtype_name(read(info, dtype))?,
                splits: [numbers(info, splits)?, numbers(info, splits + 24)?],
                start: read(info, splits + 48),
                stride: read(info, splits + 52),
                ranks: numbers(info, ranks)?,
                sequence: number.filter(|number| *number >= 0),
            };
            // What is asked for by name has one.
            let plausible = !found.name.is_empty() && (0..=MAX_RANKS).contains(&found.size);
            plausible.then_some(found)
        }
    }

    /// A string's bytes.
    ///
    /// # Safety
    /// There is one.
    unsafe fn text<'a>(self, info: *const u8, at: usize) -> Option<&'a [u8]> {
        // SAFETY: the caller's promise. One of the old ABI has its length before its text.
        unsafe {
            let text: *const u8 = read(info, at);
            if text.is_null() {
                return None;
            }
            let length: usize = match self.string {
                8 => read(text.wrapping_sub(24), 0),
                _ => read(info, at + 8),
            };
            (length <= MAX_NAME).then(|| std::slice::from_raw_parts(text, length))
        }
    }
}

/// A vector's numbers.
///
/// # Safety
/// There is one.
unsafe fn numbers<'a>(info: *const u8, at: usize) -> Option<&'a [i64]> {
    // SAFETY: the caller's promise.
    unsafe {
        let (first, end): (*const i64, *const i64) = (read(info, at), read(info, at + 8));
        let bytes = end.addr().checked_sub(first.addr())?;
        match bytes / 8 {
            0 => Some(&[]),
            count if bytes.is_multiple_of(8) && count <= MAX_NUMBERS && first.is_aligned() => {
                Some(std::slice::from_raw_parts(first, count))
            }
            _ => None,
        }
    }
}

impl Collective<'_> {
    fn write(
        &self,
        names: &[StrId; MAX_ARGS],
        recorder: &dyn ColdRecorder,
        args: &mut [Extra],
    ) -> usize {
        let text = |bytes: &[u8]| {
            if bytes.is_empty() {
                return None;
            }
            let id = recorder.intern_or_wait(StrId::NONE, bytes);
            if id.is_none() {
                recorder.cut_short();
            }
            (!id.is_none()).then_some((ArgType::Str, u64::from(id.0)))
        };
        let number = |n: i64| Some((ArgType::I64, n.cast_unsigned()));
        let list = |numbers, last| text(&listed(numbers, last)?.0);
        let peer = |kind: &[u8]| {
            let rank = usize::try_from(self.rank).ok().and_then(|rank| self.ranks.get(rank));
            rank.filter(|_| self.name == kind).and_then(|rank| number(*rank))
        };
        let values = [
            text(self.name),
            text(self.dtype.as_bytes()),
            number(self.elements[0]),
            number(self.elements[1]),
            list(self.splits[0], false),
            list(self.splits[1], false),
            number(self.start.into()).filter(|_| self.start >= 0),
            number(self.stride.into()).filter(|_| self.stride > 0),
            number(self.size.into()),
            text(self.group),
            text(self.description),
            list(self.ranks, true),
            number(self.rank.into()),
            peer(b"send"),
            peer(b"recv"),
            self.sequence.and_then(number),
        ];
        let found = names.iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        let mut count = 0;
        for (slot, (name, (ty, value))) in args.iter_mut().zip(found) {
            *slot = Extra::new(*name, ty, value);
            count += 1;
        }
        count
    }
}

/// `[1, 2, 3]`. Of long lists the first, and of `ranks` the last one too.
fn listed(numbers: &[i64], ranks: bool) -> Option<Text> {
    let long = numbers.len() > MAX_LISTED;
    let first = if long && ranks { MAX_LISTED - 1 } else { MAX_LISTED };
    let mut text = Text::default();
    text.write_str("[").ok()?;
    for (index, number) in numbers.iter().take(first).enumerate() {
        write!(text, "{}{number}", if index > 0 { ", " } else { "" }).ok()?;
    }
    match numbers.last().filter(|_| long) {
        Some(last) if ranks => write!(text, ", ..., {last}]").ok()?,
        Some(_) => text.write_str(", ...]").ok()?,
        None => text.write_str("]").ok()?,
    }
    Some(text)
}

/// `c10::toString(ScalarType)`.
fn dtype_name(dtype: u8) -> Option<&'static str> {
    const NAMES: [&str; 30] = [
        "Byte",
        "Char",
        "Short",
        "Int",
        "Long",
        "Half",
        "Float",
        "Double",
        "ComplexHalf",
        "ComplexFloat",
        "ComplexDouble",
        "Bool",
        "QInt8",
        "QUInt8",
        "QInt32",
        "BFloat16",
        "QUInt4x2",
        "QUInt2x4",
        "Bits1x8",
        "Bits2x4",
        "Bits4x2",
        "Bits8",
        "Bits16",
        "Float8_e5m2",
        "Float8_e4m3fn",
        "Float8_e5m2fnuz",
        "Float8_e4m3fnuz",
        "UInt16",
        "UInt32",
        "UInt64",
    ];
    match dtype {
        // Later ones are of a few bits, and rare.
        30..=64 => Some("Unknown"),
        dtype => NAMES.get(usize::from(dtype)).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(numbers: &[i64], ranks: bool) -> String {
        String::from_utf8(listed(numbers, ranks).unwrap().0).unwrap()
    }

    #[test]
    fn lists_are_those_of_kineto() {
        let many: Vec<i64> = (0..31).collect();
        assert_eq!((text(&[], false), text(&[4, -1], true)), ("[]".into(), "[4, -1]".into()));
        assert_eq!(text(&many[..30], false).matches(',').count(), 29);
        assert!(text(&many, false).ends_with(" 29, ...]"));
        assert!(text(&many, true).ends_with(" 28, ..., 30]"));
    }

    /// A ParamCommsDebugInfo of 2.5 to 2.11, or of 2.12 and later.
    fn info(name: &'static str, ranks: &'static [i64]) -> [u64; 32] {
        let mut words = [0; 32];
        let mut text = |at: usize, text: &'static str| {
            words[at / 8] = text.as_ptr().expose_provenance() as u64;
            words[at / 8 + 1] = text.len() as u64;
        };
        text(8, "default_pg");
        text(40, "0");
        text(80, name);
        words[72 / 8] = 1 | 4 << 32;
        words[112 / 8] = 1 << 20;
        words[120 / 8] = 1 << 22;
        words[128 / 8] = 6;
        words[184 / 8] = 1 << 32;
        let range = ranks.as_ptr_range();
        words[192 / 8] = range.start.expose_provenance() as u64;
        words[200 / 8] = range.end.expose_provenance() as u64;
        words[224 / 8] = 7;
        words
    }

    #[test]
    fn fields_are_read_where_they_lie() {
        let layout = LAYOUTS[0].1;
        let words = info("send", &[0, 2, 4, 6]);
        // SAFETY: laid out as the constructor would.
        let found = unsafe { layout.read(words.as_ptr().cast()) }.unwrap();
        assert_eq!(
            (found.name, found.group, found.description),
            (&b"send"[..], &b"0"[..], &b"default_pg"[..])
        );
        assert_eq!((found.rank, found.size, found.elements), (1, 4, [1 << 20, 1 << 22]));
        assert_eq!(
            (found.dtype, found.splits, found.ranks),
            ("Float", [&[][..]; 2], &[0, 2, 4, 6][..])
        );
        assert_eq!((found.start, found.stride, found.sequence), (0, 1, Some(7)));
        // Nonsense is left out.
        let mut words = info("send", &[]);
        words[128 / 8] = 99;
        // SAFETY: as above; what is wrong is no address.
        assert!(unsafe { layout.read(words.as_ptr().cast()) }.is_none());
    }
}
