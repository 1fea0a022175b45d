//! Packets on their way out: packed, where that is asked for, on a thread of its own where there
//! are two processors.

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

/// The other thread.
pub struct There {
    to: SyncSender<(Vec<u8>, bool)>,
    from: Receiver<(Vec<u8>, Vec<u8>)>,
    /// Sent and not come back yet.
    under_way: usize,
    /// Memory of packets that came back.
    spare: Vec<u8>,
}

/// Packets that may be on their way: one being packed, and one that waits.
const WAITING: usize = 2;

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
            Ok(_) => Packer::There(There { to, from, under_way: 0, spare: Vec::new() }),
            Err(_) => Packer::Here(Deflate::new()),
        }
    }

    /// Whether packets are on their way.
    pub fn is_busy(&self) -> bool {
        matches!(self, Packer::There(There { under_way: 1.., .. }))
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
            Packer::There(there) => {
                let written = there.collect(WAITING, out)?;
                let spare = std::mem::take(&mut there.spare);
                let full = std::mem::replace(packets, spare);
                there.to.send((full, alone)).map_err(|_| gone())?;
                there.under_way += 1;
                return Ok(written);
            }
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
    /// Writes what has come back, and waits until no more than `most` are on their way.
    fn collect(&mut self, most: usize, out: &mut impl Write) -> io::Result<u64> {
        let mut written = 0;
        while self.under_way > 0 {
            let back = match self.under_way > most {
                true => Some(self.from.recv().map_err(|_| gone())?),
                false => self.from.try_recv().ok(),
            };
            let Some((mut packets, packed)) = back else { break };
            self.under_way -= 1;
            packets.clear();
            self.spare = packets;
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
