//! Text to statements. A mistake in a script panics: scripts are part of tests.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::str::FromStr;
use std::sync::Mutex;

use crate::functions::{Function, other};
use crate::seam::{Deed, Kernel, Memcpy, Task};

pub(crate) struct Statement {
    pub(crate) verb: Verb,
    pub(crate) device: u32,
    pub(crate) stream: u32,
    pub(crate) dur: u64,
    /// Of the stream, when it is used for the first time, or of the kernel.
    pub(crate) priority: i32,
    pub(crate) via: Via,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Via {
    Runtime,
    Driver,
    Both,
}

pub(crate) enum Verb {
    Work(Task),
    SyncDevice,
    SyncStream,
    SyncEvent(u32),
    Record(u32),
    Wait(u32),
    Call(&'static Function),
    Overhead(u32),
    /// What happened, the address and the bytes.
    Memory(Deed, u64, u64),
    Graph(u32, Vec<Statement>),
    Launch(u32),
    Repeat(u64, Vec<Statement>),
    Destroy,
    Sleep,
}

pub(crate) fn parse(text: &str) -> Vec<Statement> {
    let mut lines = text.lines();
    let script = block(&mut lines);
    assert!(lines.next().is_none(), "script: an `end` without its beginning");
    script
}

/// The statements up to `end`, or up to the end of the text.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Statement> {
    let mut statements = Vec::new();
    while let Some(line) = lines.next() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line {
            "" => {}
            "end" => break,
            _ => statements.push(statement(line, lines)),
        }
    }
    statements
}

fn statement<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> Statement {
    let words = Words::of(line);
    let verb = match words.plain(0) {
        "kernel" => Verb::Work(Task::Kernel(kernel(&words))),
        "copy" => Verb::Work(Task::Copy(copy(&words))),
        "set" => Verb::Work(Task::Set {
            bytes: words.number(words.plain(1)),
            value: words.get("value", 0),
        }),
        "sync" if words.has("event") => Verb::SyncEvent(words.get("event", 0)),
        "sync" if words.plain(1) == "stream" => Verb::SyncStream,
        "sync" => Verb::SyncDevice,
        "record" => Verb::Record(words.get("event", 1)),
        "wait" => Verb::Wait(words.get("event", 1)),
        "call" => Verb::Call(other(words.plain(1)).unwrap_or_else(|| words.wrong("function"))),
        "memory" => {
            Verb::Memory(deed(&words), words.get("address", 4096), words.number(words.plain(2)))
        }
        "overhead" => Verb::Overhead(words.number(words.plain(1))),
        "graph" => Verb::Graph(words.number(words.plain(1)), block(lines)),
        "launch" => Verb::Launch(words.number(words.plain(1))),
        "repeat" => Verb::Repeat(words.number(words.plain(1)), block(lines)),
        "destroy" => Verb::Destroy,
        "sleep" => Verb::Sleep,
        _ => words.wrong("statement"),
    };
    Statement {
        verb,
        device: words.get("device", 0),
        stream: words.get("stream", 7),
        dur: words.duration(),
        priority: words.get("priority", 0),
        via: match words.text("via").unwrap_or("runtime") {
            "runtime" => Via::Runtime,
            "driver" => Via::Driver,
            "both" => Via::Both,
            _ => words.wrong("API"),
        },
    }
}

fn kernel(words: &Words) -> Kernel {
    Kernel {
        name: for_ever(words.plain(1)),
        grid: words.three("grid"),
        block: words.three("block"),
        registers: words.get("regs", 32),
        static_shared: words.get("shared", 0),
        dynamic_shared: words.get("dynamic", 0),
        priority: words.get("priority", 0),
    }
}

fn deed(words: &Words) -> Deed {
    let kind = words.get("kind", 3);
    match words.plain(1) {
        "allocated" => Deed::Memory { operation: 1, kind },
        "released" => Deed::Memory { operation: 2, kind },
        "pool-created" => Deed::Pool { operation: 1 },
        "pool-destroyed" => Deed::Pool { operation: 2 },
        "pool-trimmed" => Deed::Pool { operation: 3 },
        "unified-htod" => Deed::Unified { kind: 1 },
        "unified-faults" => Deed::Unified { kind: 4 },
        _ => words.wrong("deed"),
    }
}

/// Kinds: `CUpti_ActivityMemcpyKind`; memories: `CUpti_ActivityMemoryKind`.
fn copy(words: &Words) -> Memcpy {
    const PINNED: u8 = 2;
    const DEVICE: u8 = 3;
    let (kind, source, target) = match words.plain(1) {
        "htod" => (1, PINNED, DEVICE),
        "dtoh" => (2, DEVICE, PINNED),
        "dtod" => (8, DEVICE, DEVICE),
        "htoh" => (9, PINNED, PINNED),
        how if how.starts_with("peer:") => (10, DEVICE, DEVICE),
        _ => words.wrong("copy"),
    };
    let peer = words.plain(1).strip_prefix("peer:").map(|device| words.number(device));
    Memcpy { kind, source, target, bytes: words.number(words.plain(2)), peer }
}

/// The same text has the same address, as the name of a kernel has.
fn for_ever(text: &str) -> &'static CStr {
    static NAMES: Mutex<Option<HashMap<String, &'static CStr>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap();
    let new = || &*Box::leak(CString::new(text).expect("script: a NUL").into_boxed_c_str());
    names.get_or_insert_default().entry(text.to_owned()).or_insert_with(new)
}

struct Words<'a> {
    line: &'a str,
    plain: Vec<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        let mut words = Words { line, plain: Vec::new(), named: Vec::new() };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(pair) => words.named.push(pair),
                None => words.plain.push(word),
            }
        }
        words
    }

    fn wrong(&self, what: &str) -> ! {
        panic!("script: no such {what}, in `{}`", self.line)
    }

    fn plain(&self, index: usize) -> &'a str {
        self.plain.get(index).copied().unwrap_or_default()
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.named.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    fn number<T: FromStr>(&self, text: &str) -> T {
        text.parse().unwrap_or_else(|_| self.wrong("number"))
    }

    fn get<T: FromStr>(&self, name: &str, default: T) -> T {
        self.text(name).map_or(default, |text| self.number(text))
    }

    fn three(&self, name: &str) -> [i32; 3] {
        let mut sizes = [1; 3];
        let given = self.text(name).unwrap_or("1");
        for (size, text) in sizes.iter_mut().zip(given.split(',')) {
            *size = self.number(text);
        }
        sizes
    }

    fn duration(&self) -> u64 {
        let text = self.text("dur").unwrap_or("1us");
        for (unit, nanos) in [("ms", 1_000_000), ("us", 1000)] {
            if let Some(text) = text.strip_suffix(unit) {
                return self.number::<u64>(text) * nanos;
            }
        }
        self.number(text)
    }
}
