//! A recorder for unit tests: it keeps what is pushed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kymograph_protos::device::DeviceSlot;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, Recorder, StrId};

/// See the module.
#[derive(Default)]
pub(crate) struct Notes {
    texts: Mutex<Vec<Vec<u8>>>,
    pub(crate) records: Mutex<Vec<(Record, Vec<Extra>)>>,
    pub(crate) lost: Mutex<u64>,
}

impl Recorder for Notes {
    fn now(&self) -> u64 {
        1
    }

    fn intern(&self, _category: StrId, text: &[u8]) -> StrId {
        let mut texts = self.texts.lock().unwrap();
        let at = texts.iter().position(|known| known == text).unwrap_or_else(|| {
            texts.push(text.to_vec());
            texts.len() - 1
        });
        StrId(at as u32 + 1)
    }

    fn push_named(&self, head: Record, extras: &[Extra], _name: &[u8]) -> bool {
        self.records.lock().unwrap().push((head, extras.to_vec()));
        true
    }

    fn enabled(&self, _category: StrId) -> bool {
        true
    }
}

impl ColdRecorder for Notes {
    fn lost(&self, events: u64) {
        *self.lost.lock().unwrap() += events;
    }
}

impl Notes {
    pub(crate) fn new() -> &'static Notes {
        Box::leak(Box::default())
    }

    pub(crate) fn text(&self, id: StrId) -> String {
        let at = (id.0 as usize).wrapping_sub(1);
        let texts = self.texts.lock().unwrap();
        texts.get(at).map_or_else(String::new, |t| String::from_utf8_lossy(t).into_owned())
    }

    pub(crate) fn args(&self, extras: &[Extra]) -> String {
        let value = |arg: &Extra| match ArgType::from_u8(arg.ty) {
            Some(ArgType::Str) => self.text(StrId(arg.value as u32)),
            _ => (arg.value as i64).to_string(),
        };
        let text = |arg: &Extra| format!(" {}={}", self.text(arg.name), value(arg));
        extras.iter().map(text).collect()
    }

    /// Device records as text: name, full name, duration, correlation, named arguments.
    pub(crate) fn work(&self) -> Vec<String> {
        let records = self.records.lock().unwrap();
        let work = records.iter().filter(|(head, _)| head.kind == Kind::Device as u8);
        work.map(|(head, extras)| {
            let device: DeviceSlot = bytemuck::cast([extras[0], extras[1]]);
            let args = self.args(&extras[2 + 2 * usize::from(device.launch)..]);
            let (name, full) = (self.text(head.site), self.text(device.kernel));
            format!("{name}|{full} {} #{}{args}", head.other - head.time, head.arg as u32)
        })
        .collect()
    }

    /// Other records of a kind as text: name, arguments.
    pub(crate) fn others(&self, kind: Kind) -> Vec<String> {
        let records = self.records.lock().unwrap();
        let some = records.iter().filter(|(head, _)| head.kind == kind as u8);
        some.map(|(head, extras)| self.text(head.site) + &self.args(extras)).collect()
    }
}

/// A recorder whose interner refuses every other time: another thread is in the middle of it.
pub(crate) struct Busy {
    pub(crate) notes: &'static Notes,
    free: AtomicBool,
}

impl Busy {
    pub(crate) fn new() -> Busy {
        Busy { notes: Notes::new(), free: AtomicBool::new(false) }
    }
}

impl Recorder for Busy {
    fn now(&self) -> u64 {
        self.notes.now()
    }

    fn intern(&self, category: StrId, text: &[u8]) -> StrId {
        match self.free.fetch_xor(true, Ordering::Relaxed) {
            true => self.notes.intern(category, text),
            false => StrId::NONE,
        }
    }

    fn push_named(&self, head: Record, extras: &[Extra], name: &[u8]) -> bool {
        self.notes.push_named(head, extras, name)
    }

    fn enabled(&self, category: StrId) -> bool {
        self.notes.enabled(category)
    }
}

impl ColdRecorder for Busy {
    fn intern_or_wait(&self, category: StrId, text: &[u8]) -> StrId {
        self.notes.intern(category, text)
    }
}
