//! Daemons close descriptors that they do not know and reuse the numbers. Packets must
//! never land in the program's own files.

use harness::alone;
use kymograph::control::Page;
use kymograph::sink::{File, SharedFile, Sink};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// The descriptors of this process that are open on `path`.
fn descriptors(path: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = entries.filter(|e| std::fs::read_link(e.path()).is_ok_and(|to| to == path));
    open.map(|e| e.file_name().to_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_descriptor_the_program_closed_is_not_written_to() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.pftrace");
    let shared = folder.path().join("shared.pftrace");
    std::fs::write(&shared, b"").unwrap();
    let mut sinks: [(Box<dyn Sink>, &Path); 2] = [
        (Box::new(File::create(&own, false, None).unwrap()), &own),
        (Box::new(SharedFile::open(&shared, Arc::new(Page::new())).unwrap()), &shared),
    ];
    let precious = folder.path().join("precious");
    let mut theirs = Vec::new();
    for (sink, path) in &mut sinks {
        sink.write(b"one ").unwrap();
        for fd in descriptors(path) {
            assert!(fd >= 100, "a low number is taken: {fd}");
            let file = std::fs::File::create(&precious).unwrap();
            // SAFETY: replaces a descriptor of the sink, which is what is tested.
            unsafe { libc::dup2(file.as_raw_fd(), fd) };
            theirs.push(fd);
        }
        sink.write(b"two").unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"one two");
    }
    drop(sinks);
    assert_eq!(std::fs::read(&precious).unwrap(), b"");
    for fd in theirs {
        // SAFETY: no pointers.
        let open = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        assert_ne!(open, -1, "the program's descriptor was closed");
    }
}
