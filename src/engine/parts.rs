//! Rotating files: the trace is cut into parts, each a trace of its own.
//!
//! A part ends when it is large or old enough. The engine then restarts the incremental state (see
//! [`super::restart`]), so that the next part begins with all that still holds; a slice that
//! is cut has no end in the part before, and is whole in the one after. Processes that share
//! one output share its parts as well: the process that finds one full has all go on to
//! the next, and each writes its own preamble to it.

use std::fs;
use std::io;
use std::time::Instant;

use super::Engine;
use crate::config::{Config, Rotate};
use crate::error::Error;
use crate::sink::{self, Numbered, Sink};

/// See the module.
#[derive(Debug)]
pub(super) struct Parts {
    rotate: Rotate,
    /// How many files are kept.
    keep: Option<u32>,
    /// The part that is written, from 1; 0 before the first.
    number: u32,
    began: Instant,
    /// Bytes of packets in it, of this process.
    bytes: u64,
    /// Events that were lost since it began.
    lost: u64,
    /// This process's place in it, if it is shared.
    file: Option<Numbered>,
}

impl Parts {
    pub(super) fn new(config: &Config) -> Option<Parts> {
        let shared = config.control.is_some();
        let wanted = config.rotate.is_some() && config.flight.is_none();
        config.rotate.filter(|_| wanted).map(|rotate| Parts {
            rotate,
            keep: config.keep,
            // Of its own it has opened the first already.
            number: if shared { 0 } else { 1 },
            began: Instant::now(),
            bytes: 0,
            lost: 0,
            file: None,
        })
    }

    pub(super) fn is_before_the_first(&self) -> bool {
        self.number == 0
    }

    /// So much was written.
    pub(super) fn wrote(&mut self, events: u64, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(file) = &self.file {
            file.add(events, 0, bytes as u64);
        }
    }

    /// So many more events were lost. Returns how many are since the part began, in all
    /// processes that write to it.
    pub(super) fn lost(&mut self, more: u64) -> u64 {
        self.lost += more;
        self.file.as_ref().map_or(self.lost, |file| file.add(0, more, 0))
    }

    fn is_full(&self) -> bool {
        let bytes = self.file.as_ref().map_or(self.bytes, Numbered::length);
        self.rotate.bytes.is_some_and(|limit| bytes >= limit)
            || self.rotate.time.is_some_and(|limit| self.began.elapsed() >= limit)
    }
}

impl Engine {
    /// Goes on to the next part if that is due. Called when everything is written.
    pub(super) fn rotate(&mut self) {
        let page = self.member.as_ref().map(|member| member.page().clone());
        let Some(parts) = &self.parts else { return };
        let others = page.as_ref().is_some_and(|page| page.files() > parts.number);
        if !self.output.packets.is_empty() || self.output.given_up {
            // Some of the part that ends is not written.
            return;
        }
        if !others && parts.number > 0 && !parts.is_full() {
            return;
        }
        let number = page.map_or(parts.number + 1, |page| page.file_after(parts.number));
        match self.open_part(number) {
            Ok((sink, file)) => self.begin_part(number, sink, file),
            // It goes on in the old one, and tries again.
            Err(error) => {
                self.output.errors += 1;
                self.output.failure = Some(io::Error::other(error.to_string()));
            }
        }
    }

    fn open_part(&self, number: u32) -> Result<(Box<dyn Sink>, Option<Numbered>), Error> {
        let config = &self.shared.config;
        match &self.member {
            Some(member) => {
                let (sink, file) = Numbered::join(member.page(), config, number, self.origin.pid)?;
                Ok((sink, Some(file)))
            }
            None => Ok((sink::open_file(config, &config.numbered_path(number))?, None)),
        }
    }

    fn begin_part(&mut self, number: u32, sink: Box<dyn Sink>, file: Option<Numbered>) {
        let undecided = self.undecided();
        let mut before = std::mem::replace(&mut self.output.sink, sink);
        if let Err(error) = before.write(&undecided).and_then(|()| before.finish()) {
            self.failed(error);
        }
        self.output.packets = self.restart();
        let Some(parts) = &mut self.parts else { return };
        parts.number = number;
        (parts.began, parts.bytes, parts.lost) = (Instant::now(), 0, 0);
        parts.file = file;
        // Of a shared one, the process that makes the new one removes the old one.
        if let (Some(keep), None) = (parts.keep, &self.member)
            && number > keep
        {
            let _ = fs::remove_file(self.shared.config.numbered_path(number - keep));
        }
    }
}
