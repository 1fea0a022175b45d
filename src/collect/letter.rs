//! What a process sends to `kymo` when it joins: one message with the file of its arena, and
//! what cannot be asked of it once it is dead.
//!
//! ```text
//! "kymograph join 1\n" (KEY 0 VALUE 0)*
//! ```

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What a message begins with. Its number is raised with every change of what follows.
const GREETING: &[u8] = b"kymograph join 1\n";
/// The longest message; facts that do not fit are left out.
const LONGEST: usize = 32 << 10;
/// Room for one descriptor beside the message.
const CONTROL: usize = 64;

/// Facts as one message.
pub(super) fn write(facts: &[(String, String)]) -> Vec<u8> {
    let mut message = GREETING.to_vec();
    for (key, value) in facts {
        if message.len() + key.len() + value.len() + 2 <= LONGEST && !value.contains('\0') {
            message.extend(key.bytes().chain([0]).chain(value.bytes()).chain([0]));
        }
    }
    message
}

/// The facts of a message; `None` if it is not one of ours.
pub(super) fn read(message: &[u8]) -> Option<Vec<(String, String)>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rest = message.strip_prefix(GREETING)?;
    let parts: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    Some(parts.chunks_exact(2).map(|pair| (text(pair[0]), text(pair[1]))).collect())
}

/// Sends a message with a descriptor. Does not raise SIGPIPE.
pub(super) fn send(socket: BorrowedFd<'_>, message: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    with_header(message.as_ptr().cast_mut(), message.len(), |header, control| {
        let fd = file.as_raw_fd();
        // SAFETY: `control` is the header's own buffer, aligned and large enough for one
        // descriptor; the rest of the header is set.
        let sent = unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of_val(&fd) as u32) as _;
            let first: *mut libc::cmsghdr = control.cast();
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(size_of_val(&fd) as u32) as _;
            libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(fd);
            libc::sendmsg(socket.as_raw_fd(), header, libc::MSG_NOSIGNAL)
        };
        if sent == message.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

/// Receives a message, and the descriptor that came with it.
pub(super) fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut message = vec![0; LONGEST];
    let (read, file) = with_header(message.as_mut_ptr(), LONGEST, |header, control| {
        // SAFETY: as in `send`. A descriptor that arrives is new and ours.
        unsafe {
            let flags = libc::MSG_CMSG_CLOEXEC;
            let read = libc::recvmsg(socket.as_raw_fd(), header, flags);
            if read < 0 {
                return Err(io::Error::last_os_error());
            }
            let first: *mut libc::cmsghdr = control.cast();
            let one = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as usize;
            let rights = header.msg_controllen as usize >= one
                && (*first).cmsg_level == libc::SOL_SOCKET
                && (*first).cmsg_type == libc::SCM_RIGHTS
                && (*first).cmsg_len as usize >= one;
            let file = rights.then(|| {
                let data = libc::CMSG_DATA(first).cast::<libc::c_int>();
                OwnedFd::from_raw_fd(data.read_unaligned())
            });
            Ok((read as usize, file))
        }
    })?;
    message.truncate(read);
    Ok((message, file))
}

/// Calls `body` with a header for one buffer, and with the buffer for what comes beside it.
fn with_header<T>(
    bytes: *mut u8,
    length: usize,
    body: impl FnOnce(&mut libc::msghdr, *mut u8) -> io::Result<T>,
) -> io::Result<T> {
    #[repr(align(8))]
    struct Control([u8; CONTROL]);
    let mut control = Control([0; CONTROL]);
    let mut part = libc::iovec { iov_base: bytes.cast(), iov_len: length };
    // SAFETY: a plain struct, for which zeros are "nothing".
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL as _;
    body(&mut header, control.0.as_mut_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn facts_and_a_file_arrive() {
        let facts = [("name", "a b"), ("command", ""), ("place/rank", "3")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"here").unwrap();
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        send(ours.as_fd(), &write(&facts), file.as_fd()).unwrap();
        let (message, received) = receive(theirs.as_fd()).unwrap();
        assert_eq!(read(&message).unwrap(), facts);
        let mut received = std::fs::File::from(received.unwrap());
        let mut text = String::new();
        received.rewind().unwrap();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "here");
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        assert_eq!(read(b"kymograph join 2\nname\0x\0"), None);
        assert_eq!(read(b""), None);
        assert_eq!(read(b"kymograph join 1\nname"), Some(vec![]));
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.send(b"hello").unwrap();
        let (message, file) = receive(theirs.as_fd()).unwrap();
        assert!(message == b"hello" && file.is_none());
    }
}
