//! `kymo` answers for a process that it records, on a socket with the process's pid.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use super::broker::Broker;
use super::socket::Socket;
use super::trigger::Trigger;
use crate::config::Config;
use crate::engine::control_block::Shared;

/// See the module.
#[derive(Debug)]
pub(crate) struct Proxy {
    broker: Broker,
    socket: Socket,
    descriptors: Vec<RawFd>,
}

impl Proxy {
    /// Answers for the process with this pid, from now on.
    ///
    /// # Errors
    /// No socket can be made.
    pub fn open(
        config: &Config,
        pid: u32,
        rank: Option<i64>,
        recording: Arc<Shared>,
    ) -> io::Result<Proxy> {
        let broker = Broker::of_another(config.clone(), pid, rank, recording)?;
        let socket = Socket::open_for(config, pid)?;
        Ok(Proxy { broker, socket, descriptors: Vec::new() })
    }

    /// Answers the requests that have come meanwhile. Does not wait.
    pub fn attend(&mut self) {
        self.descriptors.clear();
        self.socket.descriptors(&mut self.descriptors);
        let poll = |fd: &RawFd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<_> = self.descriptors.iter().map(poll).collect();
        // SAFETY: as many pollfds as are said.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) } > 0;
        if ready || self.socket.due().is_some_and(|due| due <= Instant::now()) {
            self.socket.attend(&self.broker);
        }
    }
}
