//! A reader that goes away is an error for the sink, not a SIGPIPE for the program, and
//! nothing follows half a batch.

use harness::alone;
use kymograph::sink::{File, Sink, Stream};
use std::io::Read;
use std::os::fd::AsRawFd;

#[test]
fn a_closed_pipe_does_not_kill_the_program() {
    alone!();
    // As in a C program: SIGPIPE kills. The Rust runtime had it ignored.
    // SAFETY: no pointers.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };

    let (mut reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut file = File::create(path.as_ref(), false, None).unwrap();
    let mut stream = Stream::new(writer);
    stream.write(b"one").unwrap();
    file.write(b"two").unwrap();
    let mut read = [0; 6];
    reader.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"onetwo");

    drop(reader);
    for _ in 0..3 {
        assert!(stream.write(b"three").is_err());
        assert!(file.write(b"three").is_err());
    }
    assert!(stream.finish().is_err());

    // And the program's own handling is as it was.
    // SAFETY: `old` is filled by the call.
    let old = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    assert_eq!(old, libc::SIG_DFL);
}

#[test]
fn nothing_follows_half_a_batch() {
    alone!();
    struct Half(Vec<u8>);
    impl std::io::Write for Half {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.len() >= 4 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(4 - self.0.len());
            self.0.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut stream = Stream::new(Half(Vec::new()));
    assert!(stream.write(b"sixsix").is_err());
    assert!(stream.write(b"x").is_err());
}

#[test]
fn a_reader_that_does_not_read_is_given_up() {
    alone!();
    let (_reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut file = File::create(path.as_ref(), false, None).unwrap();
    let begin = std::time::Instant::now();
    assert!(file.write(&vec![0; 1 << 20]).is_err());
    assert!(begin.elapsed().as_secs() < 60);
}
