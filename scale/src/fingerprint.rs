//! What tells traces from each other without reading what they say.

use crate::{Failure, named};
use std::io::Read;
use std::path::Path;

/// What tells a trace file from others: its size and the checksum of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint {
    /// Bytes.
    pub size: u64,
    /// CRC-32.
    pub crc: u32,
}

impl Fingerprint {
    /// That of a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn of(path: &Path) -> Result<Fingerprint, Failure> {
        let mut file = std::fs::File::open(path).map_err(|error| named(path, &error))?;
        let mut hasher = crc32fast::Hasher::new();
        let (mut size, mut buffer) = (0, vec![0; 1 << 18]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Fingerprint { size, crc: hasher.finalize() }),
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    size += n as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(named(path, &error)),
            }
        }
    }
}

/// What tells a version of an object from all others of its name.
#[cfg(feature = "storage")]
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Version {
    /// The last part of its key.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) e_tag: String,
}
