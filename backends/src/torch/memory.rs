//! Allocations of PyTorch's tensors, as its allocators report them to a profiler: instants
//! `[memory]` with Kineto's arguments, and a counter for each device.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use kymograph_protos::record::CounterUnit;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

/// Device types and indices that have a counter: those below these.
const TYPES: usize = 32;
const INDICES: usize = 32;

struct Session {
    recorder: &'static dyn ColdRecorder,
    category: StrId,
    name: StrId,
    keys: [StrId; 6],
    counters: StrId,
    /// Names of counters, once they are known.
    sites: [[AtomicU32; INDICES]; TYPES],
}

static SESSION: OnceLock<Session> = OnceLock::new();

/// An allocation, or with negative `bytes` the end of one, and what there is in all after it.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// Where it lies.
    pub address: u64,
    /// How large it is.
    pub bytes: i64,
    /// Bytes of all tensors on the device.
    pub allocated: u64,
    /// Bytes that the allocator holds.
    pub reserved: u64,
    /// `c10::DeviceType`: 0 is the CPU, 1 CUDA.
    pub device_type: i8,
    /// Which device; -1 where there is but one.
    pub device: i8,
}

/// Records allocations from now on.
pub fn record_memory(recorder: &'static dyn ColdRecorder) {
    let key = |text: &[u8]| recorder.intern_or_wait(StrId::NONE, text);
    SESSION.get_or_init(|| {
        let category = key(b"cpu_instant_event");
        Session {
            recorder,
            category,
            name: recorder.intern_or_wait(category, b"[memory]"),
            keys: [
                key(b"Total Reserved"),
                key(b"Total Allocated"),
                key(b"Bytes"),
                key(b"Device Id"),
                key(b"Device Type"),
                key(b"Addr"),
            ],
            counters: key(b"pytorch_memory"),
            sites: [const { [const { AtomicU32::new(0) }; INDICES] }; TYPES],
        }
    });
}

/// Whether allocations are to be reported.
#[inline]
pub fn wants_memory() -> bool {
    SESSION.get().is_some_and(|session| session.recorder.enabled(session.category))
}

/// An allocator reports this.
pub fn memory_changed(change: Allocation) {
    let Some(session) = SESSION.get() else { return };
    if !session.recorder.enabled(session.category) {
        return;
    }
    let values = [
        (ArgType::U64, change.reserved),
        (ArgType::U64, change.allocated),
        (ArgType::I64, change.bytes.cast_unsigned()),
        (ArgType::I64, i64::from(change.device).cast_unsigned()),
        (ArgType::I64, i64::from(change.device_type).cast_unsigned()),
        (ArgType::U64, change.address),
    ];
    let mut extras = [Extra::default(); 6];
    for ((extra, name), (ty, value)) in extras.iter_mut().zip(session.keys).zip(values) {
        *extra = Extra::new(name, ty, value);
    }
    let time = session.recorder.now();
    let (site, kind) = (session.name, Kind::Instant as u8);
    session.recorder.push(Record { time, site, kind, ..Record::default() }, &extras);
    if let Some(site) = session.counter(change.device_type, change.device) {
        let counter = Record {
            time,
            other: CounterUnit::Bytes as u64,
            arg: change.allocated,
            site,
            kind: Kind::Counter as u8,
            tag: ArgType::U64 as u8,
            ..Record::default()
        };
        session.recorder.push(counter, &[]);
    }
}

impl Session {
    /// The name of a device's counter.
    fn counter(&self, device_type: i8, device: i8) -> Option<StrId> {
        let index = usize::try_from(device.max(0)).ok()?;
        let cell = self.sites.get(usize::try_from(device_type).ok()?)?.get(index)?;
        let known = cell.load(Ordering::Relaxed);
        if known != 0 {
            return Some(StrId(known));
        }
        let text = match device_type {
            0 => "PyTorch memory, CPU".to_owned(),
            1 => format!("PyTorch memory, GPU {index}"),
            n => format!("PyTorch memory, device {index} of type {n}"),
        };
        let id = self.recorder.intern_or_wait(self.counters, text.as_bytes());
        cell.store(id.0, Ordering::Relaxed);
        (!id.is_none()).then_some(id)
    }
}
