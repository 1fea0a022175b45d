//! Packets on their way out: packed, where that is asked for, on a thread of its own where there
//! are two processors.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use super::deflate::Deflate;

/// See the module.
pub enum Packer {
    /// As they are.
    Plain,
    /// Packed here.
    Here(Deflate),
    /// Packed there. What comes back is in the order in which it went.
    There(There),
}

/// The other thread, and what this one does beside it.
pub struct There {
    to: SyncSender<(Vec<u8>, bool)>,
    from: Receiver<(Vec<u8>, Vec<u8>)>,
    /// What is not written yet, in order: packed here, or `None` what the other thread has.
    under_way: VecDeque<Option<Vec<u8>>>,
    /// How many of those the other thread has.
    there: usize,
    /// Memory of packets that came back.
    spare: Vec<u8>,
    deflate: Deflate,
}

/// Packets that the other thread may have: those being packed, and those that wait. Further ones
/// are packed here, so that both threads have as much to do.
const WAITING: usize = 2;
/// Packets that may be on their way.
const MOST: usize = 8;

impl Packer {
    pub fn new<'scope>(deflate: bool, scope: &'scope Scope<'scope, '_>) -> Packer {
        if !deflate {
            return Packer::Plain;
        }
        if crate::processors() < 2 {
            return Packer::Here(Deflate::new());
        }
        let (to, packets) = sync_channel::<(Vec<u8>, bool)>(WAITING);
        let (back, from) = sync_channel(WAITING + 1);
        let pack = move || {
            let mut deflate = Deflate::new();
            for (packets, alone) in packets {
                let packed = deflate.packet(&packets, alone).to_vec();
                if back.send((packets, packed)).is_err() {
                    break;
                }
            }
        };
        match std::thread::Builder::new().spawn_scoped(scope, pack) {
            Ok(_) => Packer::There(There::new(to, from)),
            Err(_) => Packer::Here(Deflate::new()),
        }
    }

    /// Whether packets are on their way.
    pub fn is_busy(&self) -> bool {
        matches!(self, Packer::There(there) if !there.under_way.is_empty())
    }

    /// Hands packets on, and leaves `packets` empty; says how many bytes were written. `alone` if
    /// they are all of the file.
    pub fn pack(
        &mut self,
        packets: &mut Vec<u8>,
        alone: bool,
        out: &mut impl Write,
    ) -> io::Result<u64> {
        let written = match self {
            Packer::Plain => write(packets, out),
            Packer::Here(deflate) => write(deflate.packet(packets, alone), out),
            Packer::There(there) => return there.pack(packets, alone, out),
        };
        packets.clear();
        written
    }

    /// Waits for what is on its way; says how many bytes were written.
    pub fn finish(&mut self, out: &mut impl Write) -> io::Result<u64> {
        match self {
            Packer::There(there) => there.collect(0, out),
            Packer::Plain | Packer::Here(_) => Ok(0),
        }
    }
}

impl There {
    fn new(to: SyncSender<(Vec<u8>, bool)>, from: Receiver<(Vec<u8>, Vec<u8>)>) -> There {
        let (under_way, spare, deflate) = (VecDeque::new(), Vec::new(), Deflate::new());
        There { to, from, under_way, there: 0, spare, deflate }
    }

    fn pack(
        &mut self,
        packets: &mut Vec<u8>,
        alone: bool,
        out: &mut impl Write,
    ) -> io::Result<u64> {
        let written = self.collect(MOST - 1, out)?;
        if self.there < WAITING {
            let spare = std::mem::take(&mut self.spare);
            let full = std::mem::replace(packets, spare);
            self.to.send((full, alone)).map_err(|_| gone())?;
            self.there += 1;
            self.under_way.push_back(None);
        } else {
            self.under_way.push_back(Some(self.deflate.packet(packets, alone).to_vec()));
            packets.clear();
        }
        Ok(written)
    }

    /// Writes what is ready, and waits until no more than `most` are on their way.
    fn collect(&mut self, most: usize, out: &mut impl Write) -> io::Result<u64> {
        let mut written = 0;
        while let Some(next) = self.under_way.front_mut() {
            let packed = match next.take() {
                Some(packed) => packed,
                None => {
                    let back = match self.under_way.len() > most {
                        true => Some(self.from.recv().map_err(|_| gone())?),
                        false => self.from.try_recv().ok(),
                    };
                    let Some((mut packets, packed)) = back else { break };
                    self.there -= 1;
                    packets.clear();
                    self.spare = packets;
                    packed
                }
            };
            self.under_way.pop_front();
            written += write(&packed, out)?;
        }
        Ok(written)
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that packs packets has ended")
}

fn write(bytes: &[u8], out: &mut impl Write) -> io::Result<u64> {
    out.write_all(bytes)?;
    Ok(bytes.len() as u64)
}
