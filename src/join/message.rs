//! What processes and `kymo` send each other: single messages of keys and values, with a file
//! or without.
//!
//! ```text
//! "kymograph join 1\n"   (KEY 0 VALUE 0)*  with its arena: what cannot be asked of it once it
//!                                          is dead
//! "kymograph keep 1\n"   (KEY 0 VALUE 0)*  a recording begins that the process writes itself; with
//!                                          the arena that keeps it, the first time
//! "kymograph dump 1\n"   (KEY 0 VALUE 0)*  what its flight recorder holds is to be written
//! "kymograph dumped 1\n" (KEY 0 VALUE 0)*  the answer to that
//! ```

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What a message begins with. Its number is raised with every change of what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    Join,
    Keep,
    Dump,
    Dumped,
}

impl Subject {
    const ALL: [Subject; 4] = [Subject::Join, Subject::Keep, Subject::Dump, Subject::Dumped];

    fn greeting(self) -> &'static [u8] {
        match self {
            Subject::Join => b"kymograph join 1\n",
            Subject::Keep => b"kymograph keep 1\n",
            Subject::Dump => b"kymograph dump 1\n",
            Subject::Dumped => b"kymograph dumped 1\n",
        }
    }
}

/// Keys and values.
pub(crate) type Metadata = Vec<(String, String)>;
/// The longest message; metadata that do not fit are left out.
const MAX_LENGTH: usize = 32 << 10;
/// Room for one descriptor beside the message.
const CONTROL: usize = 64;

/// Metadata as one message.
pub(crate) fn write(subject: Subject, metadata: &[(String, String)]) -> Vec<u8> {
    let mut message = subject.greeting().to_vec();
    for (key, value) in metadata {
        if message.len() + key.len() + value.len() + 2 <= MAX_LENGTH && !value.contains('\0') {
            message.extend(key.bytes().chain([0]).chain(value.bytes()).chain([0]));
        }
    }
    message
}

/// What a message is about, and its metadata; `None` if it is not one of ours.
pub(crate) fn read(message: &[u8]) -> Option<(Subject, Metadata)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let is_it = |subject: &Subject| message.starts_with(subject.greeting());
    let subject = Subject::ALL.into_iter().find(is_it)?;
    let rest = &message[subject.greeting().len()..];
    let parts: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    let metadata = parts.chunks_exact(2).map(|pair| (text(pair[0]), text(pair[1]))).collect();
    Some((subject, metadata))
}

/// Sends a message, with a descriptor if there is one. Does not raise SIGPIPE.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    message: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    with_header(message.as_ptr().cast_mut(), message.len(), |header, control| {
        header.msg_controllen = 0;
        // SAFETY: `control` is the header's own buffer, aligned and large enough for one
        // descriptor; the rest of the header is set.
        let sent = unsafe {
            if let Some(fd) = file.map(|file| file.as_raw_fd()) {
                header.msg_controllen = libc::CMSG_SPACE(size_of_val(&fd) as u32) as _;
                let first: *mut libc::cmsghdr = control.cast();
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(size_of_val(&fd) as u32) as _;
                libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(fd);
            }
            libc::sendmsg(socket.as_raw_fd(), header, libc::MSG_NOSIGNAL)
        };
        if sent == message.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

/// Receives a message, and the descriptor that came with it.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut message = vec![0; MAX_LENGTH];
    let (read, file) = with_header(message.as_mut_ptr(), MAX_LENGTH, |header, control| {
        // SAFETY: as in `send`. A descriptor that arrives is new and ours.
        unsafe {
            let flags = libc::MSG_CMSG_CLOEXEC;
            let read = libc::recvmsg(socket.as_raw_fd(), header, flags);
            if read < 0 {
                return Err(io::Error::last_os_error());
            }
            let first: *mut libc::cmsghdr = control.cast();
            let one = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as usize;
            let rights = header.msg_controllen >= one
                && (*first).cmsg_level == libc::SOL_SOCKET
                && (*first).cmsg_type == libc::SCM_RIGHTS
                && (*first).cmsg_len >= one;
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
        let metadata = [("name", "a b"), ("command", ""), ("place/rank", "3")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"here").unwrap();
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let message = write(Subject::Join, &metadata);
        send(ours.as_fd(), &message, Some(file.as_fd())).unwrap();
        let (message, received) = receive(theirs.as_fd()).unwrap();
        assert_eq!(read(&message).unwrap(), (Subject::Join, metadata.to_vec()));
        send(ours.as_fd(), &write(Subject::Dumped, &metadata), None).unwrap();
        let (message, none) = receive(theirs.as_fd()).unwrap();
        assert_eq!(read(&message).unwrap(), (Subject::Dumped, metadata.to_vec()));
        assert!(none.is_none());
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
        assert_eq!(read(b"kymograph join 1\nname"), Some((Subject::Join, vec![])));
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.send(b"hello").unwrap();
        let (message, file) = receive(theirs.as_fd()).unwrap();
        assert!(message == b"hello" && file.is_none());
    }
}
