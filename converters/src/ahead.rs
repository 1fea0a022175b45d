//! Reads and unpacks a file on a thread of its own, some blocks ahead of whoever uses it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope};

/// Bytes of a block: few enough that it is still in a cache when it is used.
const BLOCK: usize = 256 << 10;
/// Blocks that may wait.
const WAITING: usize = 2;

/// What the thread has read. When this is dropped the thread ends, after the block at hand: of a
/// pipe that could take for ever.
pub(crate) struct Ahead {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    used: usize,
}

impl Ahead {
    /// Has `input` read; gives it back if there can be no further thread.
    pub(crate) fn start<'scope, R: Read + Send>(
        scope: &'scope Scope<'scope, '_>,
        input: &'scope mut R,
    ) -> io::Result<Ahead> {
        let (to, full) = sync_channel(WAITING);
        let (empty, back) = channel();
        Builder::new()
            .name("kymo reader".to_owned())
            .spawn_scoped(scope, move || read_all(input, &to, &back))?;
        Ok(Ahead { full, empty, block: Vec::new(), used: 0 })
    }
}

fn read_all(input: &mut impl Read, to: &SyncSender<io::Result<Vec<u8>>>, back: &Receiver<Vec<u8>>) {
    loop {
        let mut block = back.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let read = fill(input, &mut block);
        let (done, failed) = match read {
            Ok(done) => (done, None),
            Err((done, error)) => (done, Some(error)),
        };
        block.truncate(done);
        let last = done < BLOCK;
        // Nobody takes it any more after an error.
        if done > 0 && to.send(Ok(block)).is_err() {
            return;
        }
        if let Some(error) = failed {
            let _ = to.send(Err(error));
            return;
        }
        if last {
            return;
        }
    }
}

/// Fills a block as far as the input goes; on an error, what came before it counts.
fn fill(input: &mut impl Read, block: &mut [u8]) -> Result<usize, (usize, io::Error)> {
    let mut done = 0;
    while done < block.len() {
        match input.read(&mut block[done..]) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((done, error)),
        }
    }
    Ok(done)
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.block.len() {
            // The end: the thread is done.
            let Ok(next) = self.full.recv() else { return Ok(0) };
            let read = std::mem::replace(&mut self.block, next?);
            self.used = 0;
            // The thread may be done with it.
            let _ = self.empty.send(read);
        }
        let rest = &self.block[self.used..];
        let most = rest.len().min(buffer.len());
        buffer[..most].copy_from_slice(&rest[..most]);
        self.used += most;
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes a few at a time, and then fails.
    struct Fails(Vec<u8>, usize);

    impl Read for Fails {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.0.len() - self.1).min(70_000);
            buffer[..most].copy_from_slice(&self.0[self.1..self.1 + most]);
            self.1 += most;
            if most == 0 { Err(io::ErrorKind::InvalidData.into()) } else { Ok(most) }
        }
    }

    #[test]
    fn all_comes_in_order_and_then_what_went_wrong() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 17] {
            let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let (mut whole, mut cut) = (bytes.as_slice(), Fails(bytes.clone(), 0));
            std::thread::scope(|scope| {
                let mut read = Vec::new();
                Ahead::start(scope, &mut whole).unwrap().read_to_end(&mut read).unwrap();
                assert!(read == bytes, "{length}");
                read.clear();
                let mut ahead = Ahead::start(scope, &mut cut).unwrap();
                let error = ahead.read_to_end(&mut read).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                assert!(read == bytes, "{length}, cut");
            });
        }
    }

    #[test]
    fn the_thread_ends_when_nobody_reads_on() {
        let mut input = io::repeat(b'x');
        std::thread::scope(|scope| {
            let mut ahead = Ahead::start(scope, &mut input).unwrap();
            assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 10);
        });
    }
}
