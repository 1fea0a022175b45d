//! The datagrams that a daemon and its clients exchange, in the byte order of the host.
//!
//! ```text
//! byte      0          8                                  40
//!           ┌──────────┬──────────────────────────────────┬───────────────────┐
//! datagram  │ size u64 │ type: char[32], ends with NULs   │ size bytes of it  │
//!           └──────────┴──────────────────────────────────┴───────────────────┘
//!           40         44         48            56
//!           ┌──────────┬──────────┬─────────────┬──────────────────────┐
//! "req" →   │ kind i32 │ count i32│ job i64     │ pids: i32[count]     │
//!           └──────────┴──────────┴─────────────┴──────────────────────┘
//!           40
//!           ┌──────────────────────────────────┐
//! ← "req"   │ KEY=VALUE lines, or nothing      │
//!           └──────────────────────────────────┘
//! ```
//! A stock daemon trusts what it is sent: a `size` that is too large leaves it trying to
//! make room for the same datagram for ever, a `count` that is too large lets it read what
//! is not there, and one of 0 is never answered. So datagrams are only made by
//! [`request`], which cannot make such.
//!
//! Source: dynolog's `ipcfabric/FabricManager.h` and `ipcfabric/Utils.h`.

use std::fmt;
use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

/// Pids in a request: the process and ten of its ancestors.
pub const MAX_PIDS: usize = 11;
/// The longest text that is taken from a daemon. Real ones have some hundred bytes.
pub const MAX_TEXT: usize = 64 << 10;
/// The longest datagram that can be of use.
pub const MAX_LENGTH: usize = size_of::<Head>() + MAX_TEXT;

const REQUEST: &[u8] = b"req";

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Head {
    size: u64,
    kind: [u8; 32],
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Ask {
    kind: i32,
    count: i32,
    job: i64,
}

const _: () = assert!(size_of::<Head>() == 40 && offset_of!(Head, kind) == 8);
const _: () = assert!(size_of::<Ask>() == 16 && offset_of!(Ask, job) == 8);

/// What a client is ready for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Ready {
    /// Nothing: it only says that it is alive. A request stays with the daemon.
    Nothing = 0,
    /// A trace of activities.
    Activities = 2,
}

/// A `req`: are there any requests for the process `pids[0]`, which has the ancestors
/// `pids[1..]`? Pids beyond [`MAX_PIDS`] are left out. `None` without any.
pub fn request(ready: Ready, job: i64, pids: &[i32]) -> Option<Vec<u8>> {
    let pids = &pids[..pids.len().min(MAX_PIDS)];
    if pids.is_empty() {
        return None;
    }
    let ask = Ask { kind: ready as i32, count: pids.len() as i32, job };
    let payload = [bytemuck::bytes_of(&ask), bytemuck::cast_slice(pids)].concat();
    let mut head = Head { size: payload.len() as u64, kind: [0; 32] };
    head.kind[..REQUEST.len()].copy_from_slice(REQUEST);
    Some([bytemuck::bytes_of(&head), &payload].concat())
}

/// The text of a `req` that a daemon answered; empty if it has no request. `None` for a
/// datagram of another type, which is not for us.
///
/// `length` is the datagram's own, of which `bytes` may be only the beginning.
///
/// # Errors
/// It is no answer that a daemon makes.
pub fn reply(bytes: &[u8], length: usize) -> Result<Option<&str>, Malformed> {
    if length > bytes.len() {
        return Err(Malformed::TooLong(length));
    }
    let Some((head, text)) = bytes.split_at_checked(size_of::<Head>()) else {
        return Err(Malformed::Short(bytes.len()));
    };
    let head: Head = bytemuck::pod_read_unaligned(head);
    if head.size != text.len() as u64 {
        return Err(Malformed::Size { said: head.size, came: text.len() });
    }
    let Some(end) = head.kind.iter().position(|byte| *byte == 0) else {
        return Err(Malformed::Type);
    };
    if &head.kind[..end] != REQUEST {
        return Ok(None);
    }
    std::str::from_utf8(text).map(Some).map_err(|error| Malformed::Text(error.valid_up_to()))
}

/// What is wrong with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// It ends within the head, after so many bytes.
    Short(usize),
    /// It is so long, more than is taken.
    TooLong(usize),
    /// Its size is another than what came.
    Size {
        /// What the head says.
        said: u64,
        /// What came after the head.
        came: usize,
    },
    /// Its type has no end.
    Type,
    /// Its text is none, from this byte on.
    Text(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short(came) => {
                write!(f, "it has {came} bytes, fewer than its head of {}", size_of::<Head>())
            }
            Malformed::TooLong(length) => {
                write!(f, "it has {length} bytes; no more than {MAX_LENGTH} are taken")
            }
            Malformed::Size { said, came } => {
                write!(f, "its head announces {said} bytes, but {came} follow")
            }
            Malformed::Type => f.write_str("its type does not end with a NUL"),
            Malformed::Text(at) => write!(f, "its text is not UTF-8 from byte {at} on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A `req` of process 4242 with parent 100, as Kineto on x86-64 sends it.
    #[rustfmt::skip]
    const GOLDEN: [u8; 64] = [
        24, 0, 0, 0, 0, 0, 0, 0,
        b'r', b'e', b'q', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0,
        2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x92, 0x10, 0, 0, 0x64, 0, 0, 0,
    ];

    fn answer(text: &[u8]) -> Vec<u8> {
        let mut bytes = (text.len() as u64).to_ne_bytes().to_vec();
        bytes.extend_from_slice(b"req");
        bytes.resize(40, 0);
        bytes.extend_from_slice(text);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Option<&str>, Malformed> {
        reply(bytes, bytes.len())
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_request_is_byte_for_byte_kinetos() {
        assert_eq!(request(Ready::Activities, 0, &[4242, 100]).unwrap(), GOLDEN);
    }

    #[test]
    fn a_request_never_says_more_than_it_has() {
        for n in 1..30 {
            let pids: Vec<i32> = (1..=n).collect();
            let bytes = request(Ready::Nothing, -1, &pids).unwrap();
            let count = pids.len().min(MAX_PIDS);
            let size = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
            assert_eq!((bytes.len(), size), (56 + 4 * count, 16 + 4 * count as u64));
            assert_eq!(bytes[44..48], (count as i32).to_ne_bytes());
        }
        assert_eq!(request(Ready::Activities, 0, &[]), None);
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(read(&answer(b"")), Ok(Some("")));
        assert_eq!(read(&answer(b"\n    A=1\n")), Ok(Some("\n    A=1\n")));
        let mut context = answer(&[1, 0, 0, 0]);
        context[8..12].copy_from_slice(b"ctxt");
        assert_eq!(read(&context), Ok(None), "nobody asked for it");
        let longer = [b"request".as_slice(), &[0; 25]].concat();
        let mut other = answer(b"A=1");
        other[8..40].copy_from_slice(&longer);
        assert_eq!(read(&other), Ok(None));
    }

    #[test]
    fn lies_are_found_out() {
        assert_eq!(read(&[]), Err(Malformed::Short(0)));
        assert_eq!(read(&answer(b"")[..39]), Err(Malformed::Short(39)));
        for said in [0, 2, 4, 1 << 32, u64::MAX] {
            let mut bytes = answer(b"A=1");
            bytes[..8].copy_from_slice(&said.to_ne_bytes());
            assert_eq!(read(&bytes), Err(Malformed::Size { said, came: 3 }));
        }
        let mut endless = answer(b"A=1");
        endless[8..40].fill(b'r');
        assert_eq!(read(&endless), Err(Malformed::Type));
        assert_eq!(read(&answer(b"A=\xff")), Err(Malformed::Text(2)));
        assert_eq!(reply(&answer(b"A=1"), 10 << 20), Err(Malformed::TooLong(10 << 20)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 512 }))]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some(text)) = read(&bytes) {
                prop_assert_eq!(answer(text.as_bytes()), {
                    let mut bytes = bytes.clone();
                    bytes[11..40].fill(0);
                    bytes
                });
            }
        }

        #[test]
        fn one_changed_byte_is_not_taken_for_another_text(
            text in "[A-Z_]{1,20}=[a-z0-9/.]{0,40}",
            at in 0_usize..40,
            bit in 0_u32..8,
        ) {
            let mut bytes = answer(text.as_bytes());
            bytes[at] ^= 1 << bit;
            // What follows the type's end is nobody's.
            let same = at > 11;
            match read(&bytes) {
                Ok(Some(read)) => prop_assert!(same && read == text),
                Ok(None) | Err(_) => prop_assert!(!same),
            }
        }
    }
}
