//! A recorder that turns each record into a line of text.
//!
//! ```text
//! push nvtx "step" color=0xff00ff00      begin Domain "copy" r1      counter nvtx "bytes" 12 Bytes
//! pop nvtx                               end r1                      instant itt "paused"
//! ```
//! Range and flow ids are numbered in the order they appear, so that lines can be compared.
#![allow(dead_code)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::{ArgType, ColdRecorder, CounterUnit, Extra, Kind, Record, Recorder, StrId};

#[derive(Default)]
struct Names {
    ids: HashMap<(StrId, Vec<u8>), u32>,
    texts: Vec<(StrId, Vec<u8>)>,
    seen: HashMap<(char, u64), usize>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Lines {
    names: Mutex<Option<Names>>,
    clock: AtomicU64,
    /// Where lines go; else they are kept for [`take`] on the thread that caused them.
    pub(crate) sink: Option<fn(&str)>,
}

thread_local! {
    static KEPT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Refuse this many of the next pushes.
    pub(crate) static REFUSE: Cell<u32> = const { Cell::new(0) };
    /// Know no more texts.
    pub(crate) static FULL: Cell<bool> = const { Cell::new(false) };
    /// Another thread adds a text: add none without waiting.
    pub(crate) static BUSY: Cell<bool> = const { Cell::new(false) };
    /// Arguments that events went without.
    pub(crate) static CUT: Cell<u32> = const { Cell::new(0) };
    /// Want no events.
    pub(crate) static OFF: Cell<bool> = const { Cell::new(false) };
}

/// The lines that this thread caused since the last call.
pub(crate) fn take() -> Vec<String> {
    KEPT.take()
}

impl Lines {
    pub(crate) const fn new(sink: Option<fn(&str)>) -> Lines {
        Lines { names: Mutex::new(None), clock: AtomicU64::new(1), sink }
    }

    fn text(names: &Names, id: StrId) -> String {
        match names.texts.get(id.0 as usize - 1) {
            Some((_, text)) => String::from_utf8_lossy(text).into_owned(),
            None => format!("?{}", id.0),
        }
    }

    fn alias(names: &mut Names, kind: char, id: u64) -> String {
        let next = names.seen.keys().filter(|key| key.0 == kind).count() + 1;
        format!("{kind}{}", names.seen.entry((kind, id)).or_insert(next))
    }

    fn add(&self, category: StrId, text: &[u8], may_add: bool) -> StrId {
        let mut guard = self.names.lock().unwrap();
        let names = guard.get_or_insert_default();
        let next = names.texts.len() as u32 + 1;
        if let Some(&id) = names.ids.get(&(category, text.to_vec())) {
            return StrId(id);
        }
        if FULL.get() || !may_add {
            return StrId::NONE;
        }
        names.ids.insert((category, text.to_vec()), next);
        names.texts.push((category, text.to_vec()));
        StrId(next)
    }

    fn value(names: &mut Names, ty: u8, bits: u64) -> String {
        match ArgType::from_u8(ty).unwrap() {
            ArgType::I64 => format!("{}", bits as i64),
            ArgType::U64 => format!("{bits}u"),
            ArgType::F64 => format!("{:?}", f64::from_bits(bits)),
            ArgType::Pointer => format!("{bits:#x}"),
            ArgType::Str => format!("{:?}", Self::text(names, StrId(bits as u32))),
            ty => format!("{ty:?}({bits})"),
        }
    }

    fn line(names: &mut Names, head: Record, extras: &[Extra], bytes: &[u8]) -> String {
        let kind = Kind::from_u8(head.kind).expect("a kind");
        let mut line = match kind {
            Kind::Push => "push",
            Kind::Pop => "pop",
            Kind::Instant => "instant",
            Kind::RangeBegin => "begin",
            Kind::RangeEnd => "end",
            Kind::Counter => "counter",
            Kind::ThreadName => "thread",
            other => panic!("{other:?} is not for annotations"),
        }
        .to_owned();
        if !bytes.is_empty() {
            let name = String::from_utf8_lossy(bytes);
            write!(line, " {} by value {name:?}", Self::text(names, head.site)).unwrap();
        } else if kind == Kind::Pop {
            write!(line, " {}", Self::text(names, head.site)).unwrap();
        } else if !head.site.is_none() {
            let category = names.texts[head.site.0 as usize - 1].0;
            let category = Self::text(names, category);
            write!(line, " {category} {:?}", Self::text(names, head.site)).unwrap();
        }
        match kind {
            Kind::RangeBegin | Kind::RangeEnd => {
                write!(line, " {}", Self::alias(names, 'r', head.other)).unwrap();
            }
            Kind::Counter => {
                write!(line, " {}", Self::value(names, head.tag, head.arg)).unwrap();
                if head.other != CounterUnit::None as u64 {
                    write!(line, " unit={}", head.other).unwrap();
                }
            }
            Kind::ThreadName if head.arg != 0 => write!(line, " tid={}", head.arg).unwrap(),
            _ => {}
        }
        for extra in extras {
            match ArgType::from_u8(extra.ty).unwrap() {
                ArgType::Flow => {
                    write!(line, " flow={}", Self::alias(names, 'f', extra.value)).unwrap();
                }
                ArgType::FlowEnd => {
                    write!(line, " flow_end={}", Self::alias(names, 'f', extra.value)).unwrap();
                }
                _ => {
                    let name = Self::text(names, extra.name);
                    let value = Self::value(names, extra.ty, extra.value);
                    write!(line, " {name}={value}").unwrap();
                }
            }
        }
        line
    }
}

impl Recorder for Lines {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn intern(&self, category: StrId, text: &[u8]) -> StrId {
        self.add(category, text, !BUSY.get())
    }

    fn push_named(&self, head: Record, extras: &[Extra], name: &[u8]) -> bool {
        let ends = [Kind::Pop as u8, Kind::RangeEnd as u8].contains(&head.kind);
        if !ends && REFUSE.get() > 0 {
            REFUSE.set(REFUSE.get() - 1);
            return false;
        }
        let mut guard = self.names.lock().unwrap();
        let line = Self::line(guard.get_or_insert_default(), head, extras, name);
        match self.sink {
            Some(sink) => sink(&line),
            None => KEPT.with_borrow_mut(|kept| kept.push(line)),
        }
        true
    }

    fn enabled(&self, _: StrId) -> bool {
        !OFF.get()
    }
}

impl ColdRecorder for Lines {
    fn intern_or_wait(&self, category: StrId, text: &[u8]) -> StrId {
        self.add(category, text, true)
    }

    fn cut_short(&self) {
        CUT.set(CUT.get() + 1);
    }
}
