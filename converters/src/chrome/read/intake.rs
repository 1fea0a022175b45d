//! From the document to the hub: on two threads where there are two processors. The caller's
//! reads and lays out the elements, another puts them into the hub.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

use super::Reader;
use crate::chrome::members;
use crate::json::{Batch, Document, Error, Item};

/// What has been read.
pub(super) struct Intake {
    pub(super) reader: Reader,
    /// Names of the first members.
    pub(super) members: Vec<String>,
}

/// Members that are shown of what is no trace.
const SHOWN: usize = 5;
/// Batches that may wait.
const WAITING: usize = 2;

impl Intake {
    fn new() -> Intake {
        Intake { reader: Reader::new(), members: Vec::new() }
    }

    fn take(&mut self, item: Item<'_>, offset: impl FnOnce() -> u64) {
        match item {
            Item::Event(element) => {
                if let Some(what) = self.reader.event(element) {
                    self.reader.trace.facts.warn(what, Some(offset()));
                }
            }
            Item::Member(key, element) => {
                if self.members.len() < SHOWN {
                    self.members.push(key.to_owned());
                }
                let Reader { trace, rows, values, .. } = &mut self.reader;
                members::member(trace, rows, values, key, element);
            }
        }
    }
}

/// Reads all of a document.
pub(super) fn of(document: &mut Document<impl Read>) -> Result<Intake, Error> {
    if crate::processors() < 2 {
        return alone(document);
    }
    let (to, full) = sync_channel::<Batch>(WAITING);
    let (back, empty) = channel::<Batch>();
    thread::scope(|scope| {
        let hub = thread::Builder::new().spawn_scoped(scope, move || receive(&full, &back));
        let Ok(hub) = hub else { return alone(document) };
        let mut read = Ok(true);
        while matches!(read, Ok(true)) {
            let mut batch = empty.try_recv().unwrap_or_default();
            while matches!(read, Ok(true)) && !batch.is_full() {
                read = document.next_into(&mut batch);
            }
            // The other end is only gone when that thread is, which is said below.
            if !batch.is_empty() && to.send(batch).is_err() {
                break;
            }
        }
        drop(to);
        match (hub.join(), read) {
            (Ok(intake), Ok(_)) => Ok(intake),
            (_, Err(error)) => Err(error),
            (Err(panic), _) => std::panic::resume_unwind(panic),
        }
    })
}

fn receive(full: &Receiver<Batch>, back: &Sender<Batch>) -> Intake {
    let mut intake = Intake::new();
    for mut batch in full {
        for (item, offset) in batch.items() {
            intake.take(item, || offset);
        }
        batch.clear();
        // Nobody wants it back after the last one.
        let _ = back.send(batch);
    }
    intake
}

fn alone(document: &mut Document<impl Read>) -> Result<Intake, Error> {
    let mut intake = Intake::new();
    while let Some((item, offset)) = document.next_place()? {
        intake.take(item, || offset);
    }
    Ok(intake)
}
