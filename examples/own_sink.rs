//! A trace that goes anywhere: into memory, or to anything that is `io::Write`. (A
//! destination that wants to know where packets end implements `kymograph::sink::Sink`.)

use std::fs::File;
use std::io::{self, Write};

use kymograph::sink::Stream;
use kymograph::{Config, Recording, scope};

/// A writer of our own: a socket, an encryption, a file that says how fast it grows.
struct Metered {
    file: File,
    bytes: usize,
}

impl Write for Metered {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.file.write(data)?;
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        println!("{} bytes so far", self.bytes);
        self.file.flush()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("own_sink.pftrace".into());
    let writer = Metered { file: File::create(path)?, bytes: 0 };
    let recording = Recording::start_with(Config::default(), Stream::new(writer))?;
    for n in 0..100 {
        let _scope = scope!("work", n = n);
    }
    let summary = recording.stop();
    println!("{} events in {} bytes", summary.events, summary.bytes);
    Ok(())
}
