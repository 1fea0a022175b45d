//! A request for a snapshot of PyTorch's memory: the file of `kymo trigger --memory-snapshot`.

use std::path::PathBuf;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use crate::hooks::{MEMORY_SNAPSHOT, Snapshot, Step};
use crate::session::check_output;

/// How long the program's main thread may take to come by.
const PATIENCE: Duration = Duration::from_secs(30);

/// One that is being taken.
#[derive(Debug)]
pub(super) struct Taking {
    path: PathBuf,
    /// How long allocations are kept before it is taken.
    duration: Duration,
    since: Instant,
    at: At,
}

#[derive(Debug)]
enum At {
    Begin(Snapshot),
    /// Allocations are kept until then; whether that is ours to end.
    Keeps(Instant, bool),
    Take(Snapshot),
}

impl Taking {
    /// Reads `OUTPUT=PATH` and `TIME=DURATION` lines, and has it taken.
    ///
    /// # Errors
    /// Why not.
    pub fn begin(lines: &[u8], folders: &[PathBuf], pid: u32) -> Result<Taking, String> {
        let text = str::from_utf8(lines).map_err(|_| "the request is no UTF-8".to_owned())?;
        let value = |key: &str| {
            text.lines().filter_map(|line| line.split_once('=')).find(|(k, _)| *k == key)
        };
        let path = value("OUTPUT").map(|(_, path)| path).ok_or("it names no file")?;
        let path = PathBuf::from(path.replace("%p", &pid.to_string()));
        check_output(&path, folders).map_err(|refusal| refusal.to_string())?;
        let duration = match value("TIME") {
            Some((_, time)) => crate::config::duration(time)?,
            None => Duration::ZERO,
        };
        let since = Instant::now();
        let at = match duration.is_zero() {
            true => At::Take(order(&path, Step::Take { end: false })?),
            false => At::Begin(order(&path, Step::Begin)?),
        };
        Ok(Taking { path, duration, since, at })
    }

    /// Does what can be done without waiting; what came of it, once that is known.
    pub fn attend(&mut self) -> Option<Result<PathBuf, String>> {
        match self.step() {
            Ok(true) => Some(Ok(self.path.clone())),
            Ok(false) => None,
            Err(why) => Some(Err(why)),
        }
    }

    fn step(&mut self) -> Result<bool, String> {
        match &self.at {
            At::Keeps(until, ours) => {
                if Instant::now() >= *until {
                    self.at = At::Take(order(&self.path, Step::Take { end: *ours })?);
                    self.since = Instant::now();
                }
                Ok(false)
            }
            At::Begin(snapshot) => {
                if let Some(ours) = self.answer(snapshot)? {
                    self.at = At::Keeps(Instant::now() + self.duration, ours);
                }
                Ok(false)
            }
            At::Take(snapshot) => Ok(self.answer(snapshot)?.is_some()),
        }
    }

    fn answer(&self, snapshot: &Snapshot) -> Result<Option<bool>, String> {
        match snapshot.try_recv() {
            Ok(answer) => answer.map(Some),
            Err(TryRecvError::Empty) if self.since.elapsed() < PATIENCE => Ok(None),
            Err(_) => Err("its main thread has run no Python for half a minute: the snapshot is \
                           written when it does"
                .to_owned()),
        }
    }
}

fn order(path: &std::path::Path, step: Step) -> Result<Snapshot, String> {
    let order = MEMORY_SNAPSHOT.get();
    let order = order.ok_or("it was not started with `kymo record --wait` of this version")?;
    order(path, step)
}
