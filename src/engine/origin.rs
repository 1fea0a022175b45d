//! The process whose records are encoded: this one, or another one whose queues and names are
//! mapped here and which may have ended.
//!
//! What cannot be asked of a process that has ended is collected while it runs, by
//! [`Origin::of_this_process`], and travels as [`Origin::to_metadata`].

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use kymograph_protos::StrId;

use super::names::Names;
use crate::clock;
use crate::config::Config;
use crate::intern::{INTERNER, Interner};
use crate::process::{identity, job};
use crate::queue::{POOL, Pool};
use crate::recorder::armed::armed;

/// Queues or names of the recorded process.
#[derive(Debug)]
pub(crate) enum Memory<T: 'static> {
    /// Of this process.
    Own(&'static T),
    /// Of another one, mapped here.
    Mapped(Arc<T>),
}

impl<T> Deref for Memory<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Memory::Own(own) => own,
            Memory::Mapped(mapped) => mapped,
        }
    }
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Memory<T> {
        match self {
            Memory::Own(own) => Memory::Own(own),
            Memory::Mapped(mapped) => Memory::Mapped(mapped.clone()),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Origin {
    pub pool: Memory<Pool>,
    pub strings: Memory<Interner>,
    pub pid: u32,
    pub name: Vec<u8>,
    pub command: Vec<Vec<u8>>,
    /// When it started, in nanoseconds of `CLOCK_BOOTTIME`; 0 if unknown.
    pub started: u64,
    /// Whether its ticks are the processor's counter.
    pub counter: bool,
    /// Its machine and what its job is called, by the keys that the trace has them under.
    pub about: Vec<(String, String)>,
    /// Which rank of its job it is, and the like.
    pub place: Vec<(String, i64)>,
    pub texts: OwnTexts,
    /// What `/proc` says of it.
    proc: PathBuf,
    /// Where another process tells the names that it gives ids to.
    names: Option<Arc<Names>>,
}

/// Texts of the engine's own, by their ids in the names of the process: an engine adds no
/// names of its own, since the process counts them. None: the process has no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct OwnTexts {
    pub straddles: StrId,
    pub start: StrId,
    pub end: StrId,
    pub ended: StrId,
    pub correlation: StrId,
    /// `gpu_user_annotation`; none also if ranges are not shown on devices.
    pub annotations: StrId,
}

impl OwnTexts {
    fn of(strings: &Interner, config: &Config) -> OwnTexts {
        let word = |text| strings.intern_static(StrId::NONE, StrId::NONE, text);
        // A flight recorder forgets where they began.
        let annotated = config.records("gpu_user_annotation");
        OwnTexts {
            straddles: word("straddles"),
            start: word("start"),
            end: word("end"),
            ended: word("ended"),
            correlation: word("correlation"),
            annotations: if annotated { word("gpu_user_annotation") } else { StrId::NONE },
        }
    }

    fn by_key(&mut self) -> [(&'static str, &mut StrId); 6] {
        [
            ("straddles", &mut self.straddles),
            ("start", &mut self.start),
            ("end", &mut self.end),
            ("ended", &mut self.ended),
            ("correlation", &mut self.correlation),
            ("annotations", &mut self.annotations),
        ]
    }
}

impl Origin {
    /// This process, recorded as `config` says.
    pub(crate) fn of_this_process(config: &Config) -> Origin {
        let proc = PathBuf::from("/proc/self");
        let command = identity::command_line(&proc);
        let given = config.process_name.as_ref().map(|name| name.as_bytes().to_vec());
        let given = given.or_else(|| armed()?.names.process());
        Origin {
            pool: Memory::Own(&POOL),
            strings: Memory::Own(&INTERNER),
            pid: std::process::id(),
            name: given.unwrap_or_else(|| identity::process_name(&command)),
            command,
            started: identity::process_start(&proc),
            counter: clock::uses_counter(),
            about: [job::machine(), job::names()].concat(),
            place: job::place(),
            texts: OwnTexts::of(&INTERNER, config),
            proc,
            names: None,
        }
    }

    /// Another process, from what it said of itself by [`Origin::to_metadata`]. What is missing
    /// or makes no sense is left empty.
    pub(crate) fn from_metadata(
        pid: u32,
        metadata: &[(String, String)],
        names: Arc<Names>,
    ) -> Origin {
        let mut origin = Origin {
            pool: Memory::Mapped(names.pool.clone()),
            strings: Memory::Mapped(names.interner.clone()),
            pid,
            name: Vec::new(),
            command: Vec::new(),
            started: 0,
            counter: false,
            about: Vec::new(),
            place: Vec::new(),
            texts: OwnTexts::default(),
            proc: format!("/proc/{pid}").into(),
            names: Some(names),
        };
        for (key, value) in metadata {
            origin.learn(key, value);
        }
        origin
    }

    /// A child that was forked from the process that said the metadata, and which began to record
    /// at this time of `CLOCK_BOOTTIME`.
    pub(crate) fn forked(mut self, began: u64) -> Origin {
        self.started = match identity::process_start(&self.proc) {
            0 => began,
            started => started,
        };
        self
    }

    fn learn(&mut self, key: &str, value: &str) {
        match key.split_once('/') {
            None => match key {
                "name" => self.name = value.as_bytes().to_vec(),
                "command" => self.command.push(value.as_bytes().to_vec()),
                "started" => self.started = value.parse().unwrap_or(0),
                "counter" => self.counter = value == "true",
                _ => {}
            },
            Some(("about", key)) => self.about.push((key.to_owned(), value.to_owned())),
            Some(("place", key)) => {
                self.place.extend(value.parse().ok().map(|number| (key.to_owned(), number)));
            }
            Some(("word", word)) => {
                for (_, id) in self.texts.by_key().into_iter().filter(|(key, _)| *key == word) {
                    *id = StrId(value.parse().unwrap_or(0));
                }
            }
            Some(_) => {}
        }
    }

    /// What [`Origin::from_metadata`] needs to know: keys, of which one may come several times,
    /// and values. Their order counts. Bytes that are no text are replaced, as they are in
    /// the trace.
    pub(crate) fn to_metadata(&self) -> Vec<(String, String)> {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let mut metadata = vec![("name".to_owned(), text(&self.name))];
        let mut say = |key: &str, value: String| metadata.push((key.to_owned(), value));
        self.command.iter().for_each(|part| say("command", text(part)));
        say("started", self.started.to_string());
        say("counter", self.counter.to_string());
        self.about.iter().for_each(|(key, text)| say(&format!("about/{key}"), text.clone()));
        self.place.iter().for_each(|(key, n)| say(&format!("place/{key}"), n.to_string()));
        let mut texts = self.texts;
        texts.by_key().into_iter().for_each(|(key, id)| {
            say(&format!("word/{key}"), id.0.to_string());
        });
        metadata
    }

    /// After records were read and before they are encoded: learns their names.
    #[inline]
    pub(super) fn learn_names(&self) {
        if let Some(names) = &self.names {
            names.refresh();
        }
    }

    /// What another process has called one of its threads before that recorded anything.
    pub(super) fn name_given_to(&self, tid: u32) -> Option<Vec<u8>> {
        self.names.as_ref()?.thread(tid)
    }

    pub(super) fn is_this_process(&self) -> bool {
        matches!(self.pool, Memory::Own(_))
    }

    /// What the kernel calls a thread, while it lives.
    pub(super) fn thread_name(&self, tid: u32) -> Option<Vec<u8>> {
        let name = identity::thread_name(&self.proc, tid)?;
        // Once the process is gone, another one may have its number.
        let is_it = || identity::process_start(&self.proc) == self.started;
        (self.is_this_process() || is_it()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_what_it_said_of_itself() {
        let strange = vec![b"a b".to_vec(), vec![0xff, b'x'], Vec::new(), b"k=v/w".to_vec()];
        let it = Origin {
            name: b"it".to_vec(),
            command: strange,
            about: vec![("kymograph.host".to_owned(), "node/1\n".to_owned())],
            place: vec![("rank".to_owned(), 3), ("world_size".to_owned(), 16)],
            ..Origin::of_this_process(&Config::default())
        };
        let metadata = it.to_metadata();
        let names = Arc::new(Names::new(Arc::new(Pool::new()), None, 0));
        let same = Origin::from_metadata(7, &metadata, names.clone());
        assert_eq!((same.pid, same.name.as_slice()), (7, &b"it"[..]));
        assert_eq!(same.command, [&b"a b"[..], "\u{fffd}x".as_bytes(), b"", b"k=v/w"]);
        assert_eq!((same.started, same.counter), (it.started, it.counter));
        assert_eq!((&same.about, &same.place), (&it.about, &it.place));
        assert_eq!(same.texts, it.texts);
        assert_ne!(it.texts.straddles, StrId::NONE);

        let nonsense = ["place/rank", "word/end", "word/other", "started", "a/b/c", ""];
        let nonsense = nonsense.map(|key| (key.to_owned(), "often".to_owned()));
        let nobody = Origin::from_metadata(7, &nonsense, names);
        assert_eq!((nobody.started, nobody.place.len(), nobody.texts), (0, 0, OwnTexts::default()));
    }
}
