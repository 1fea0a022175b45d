//! The agents: which is which GPU, and the inventory.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};

use kymograph_protos::device::Vendor;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::sys::{SUCCESS, Sdk, Status, agent};
use crate::device::names;
use crate::device::raw::Raw;
use crate::device::sample;

/// Agents at most.
const MAX_AGENTS: usize = 1024;
/// Bytes of an agent that are looked at, at most.
const MAX_AGENT_BYTES: usize = 1024;

/// An agent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Agent {
    id: u64,
    /// Which GPU it is, as HIP counts them; none: it is a CPU, or hidden.
    gpu: Option<u32>,
    /// Whether HIP does not see it.
    hidden: bool,
    name: String,
    architecture: String,
    pci: String,
    uuid: Option<String>,
    compute_units: u32,
    wavefront: u32,
    lds_kb: u32,
    memory: u64,
    /// The library's struct.
    raw: Vec<u8>,
}

/// The agents of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Agents {
    all: Vec<Agent>,
    gpus: HashMap<u64, u32>,
}

impl Agents {
    /// Asks the library.
    pub(crate) fn learn(sdk: &Sdk) -> Result<Agents, Status> {
        let mut all: Vec<Agent> = Vec::new();
        // SAFETY: called back within the call, with the list it is given.
        let result = unsafe {
            (sdk.query_agents)(agent::VERSION_0, note, agent::BYTES, (&raw mut all).cast())
        };
        match result {
            SUCCESS => Ok(Agents::new(all)),
            error => Err(error),
        }
    }

    fn new(mut all: Vec<Agent>) -> Agents {
        number(&mut all);
        let gpus = all.iter().filter_map(|agent| Some((agent.id, agent.gpu?))).collect();
        Agents { all, gpus }
    }

    /// Which GPU an agent is; none if it is a CPU.
    pub(crate) fn gpu(&self, agent: u64) -> Option<u32> {
        self.gpus.get(&agent).copied()
    }

    /// How many GPUs there are.
    pub(crate) fn count(&self) -> usize {
        self.gpus.len()
    }

    /// Puts the GPUs into the inventory.
    pub(crate) fn describe(&self, recorder: &dyn ColdRecorder) {
        let mut gpus: Vec<_> = self.all.iter().filter(|agent| agent.gpu.is_some()).collect();
        gpus.sort_by_key(|agent| agent.gpu);
        gpus.into_iter().for_each(|agent| agent.describe(recorder));
        for (number, agent) in self.all.iter().enumerate().filter(|_| sample::is_on()) {
            sample::bytes(
                recorder,
                names::AMD.key,
                format!("agent.{number}"),
                Raw::new(&agent.raw),
            );
        }
    }
}

/// Numbers the GPUs as HIP does, which counts those that it sees.
fn number(all: &mut [Agent]) {
    let mut gpus: Vec<_> = all.iter_mut().filter(|agent| agent.gpu.is_some()).collect();
    // An estimate of the library's: if it were right, the program would have none.
    if gpus.iter().all(|agent| agent.hidden) {
        return;
    }
    gpus.sort_by_key(|agent| agent.gpu);
    let mut next = 0;
    for agent in gpus {
        agent.gpu = (!agent.hidden).then_some(next);
        next += u32::from(!agent.hidden);
    }
}

impl Agent {
    fn describe(&self, recorder: &dyn ColdRecorder) {
        let key = |name: &str| recorder.intern_or_wait(StrId::NONE, name.as_bytes());
        let text =
            |name: &str, value: &str| Extra::new(key(name), ArgType::Str, key(value).0.into());
        let count = |name: &str, value: u64| Extra::new(key(name), ArgType::U64, value);
        let mut facts = vec![
            text("vendor", "AMD"),
            text("architecture", &self.architecture),
            text("pci", &self.pci),
            count("compute_units", self.compute_units.into()),
            count("wavefront_size", self.wavefront.into()),
            count("lds_bytes_per_compute_unit", u64::from(self.lds_kb) << 10),
            count("memory_bytes", self.memory),
        ];
        facts.extend(self.uuid.as_deref().map(|uuid| text("uuid", uuid)));
        let head = Record {
            other: Vendor::Amd.gpu(self.gpu.unwrap_or(0)).into(),
            site: key(&self.name),
            kind: Kind::Gpu as u8,
            ..Record::default()
        };
        recorder.push(head, &facts);
    }

    /// # Safety
    /// `at` is an agent as the library passed it.
    unsafe fn read(at: *const u8) -> Agent {
        // SAFETY: the caller's promise: it begins with its size.
        let raw = unsafe {
            let size = at.add(agent::SIZE).cast::<u64>().read_unaligned() as usize;
            Raw::new(std::slice::from_raw_parts(at, size.min(MAX_AGENT_BYTES)))
        };
        let gfx = raw.u32(agent::GFX_TARGET_VERSION);
        let location = raw.u32(agent::LOCATION_ID);
        let is_gpu = raw.u32(agent::TYPE) == agent::GPU;
        // SAFETY: the caller's promise: C strings, and as many banks as it says.
        let (product, name, memory) = unsafe {
            let text = |offset| text(raw.u64(offset) as usize as *const c_char);
            (text(agent::PRODUCT_NAME), text(agent::NAME), memory(raw))
        };
        Agent {
            id: raw.u64(agent::ID),
            gpu: is_gpu.then(|| raw.u32(agent::LOGICAL_NODE_TYPE_ID)),
            hidden: raw.has(agent::UUID, 8)
                && raw.u32(agent::VISIBILITY) & agent::VISIBLE_TO_HIP == 0,
            name: [product, name].into_iter().find(|n| !n.is_empty()).unwrap_or("AMD GPU".into()),
            architecture: format!("gfx{}{:x}{:x}", gfx / 10_000, gfx / 100 % 100, gfx % 100),
            pci: format!(
                "{:04x}:{:02x}:{:02x}.{}",
                raw.u32(agent::DOMAIN),
                location >> 8 & 0xff,
                location >> 3 & 0x1f,
                location & 7
            ),
            uuid: uuid(raw),
            compute_units: raw.u32(agent::CU_COUNT),
            wavefront: raw.u32(agent::WAVE_FRONT_SIZE),
            lds_kb: raw.u32(agent::LDS_SIZE_IN_KB),
            memory,
            raw: (0..raw.len()).map(|at| raw.u8(at)).collect(),
        }
    }
}

/// # Safety
/// Null, or a C string.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// # Safety
/// `raw` is an agent as the library passed it.
unsafe fn memory(raw: Raw<'_>) -> u64 {
    const MAX_BANKS: usize = 64;
    let at = raw.u64(agent::MEM_BANKS) as usize as *const u8;
    if at.is_null() {
        return 0;
    }
    let count = (raw.u32(agent::MEM_BANKS_COUNT) as usize).min(MAX_BANKS);
    let size = |bank: usize| {
        // SAFETY: the caller's promise: an array of that many banks.
        unsafe { at.add(bank * agent::MEM_BANK_BYTES + agent::MEM_BANK_SIZE).cast::<u64>().read() }
    };
    (0..count).map(size).fold(0, u64::saturating_add)
}

/// As rocm-smi writes it; older versions have none.
fn uuid(raw: Raw<'_>) -> Option<String> {
    if raw.has(agent::UUID, 16) {
        let hex = (0..16).map(|byte| format!("{:02x}", raw.u8(agent::UUID + byte)));
        return Some(format!("GPU-{}", hex.collect::<String>()));
    }
    // A number.
    raw.has(agent::UUID, 8).then(|| format!("GPU-{:016x}", raw.u64(agent::UUID)))
}

/// # Safety
/// `list` is the list that was passed with it; the agents are the library's.
unsafe extern "C" fn note(
    _version: c_int,
    agents: *const *const u8,
    count: usize,
    list: *mut c_void,
) -> Status {
    if agents.is_null() || list.is_null() {
        return SUCCESS;
    }
    // SAFETY: the caller's promise; nothing else uses the list meanwhile.
    unsafe {
        let list = &mut *list.cast::<Vec<Agent>>();
        let agents = std::slice::from_raw_parts(agents, count.min(MAX_AGENTS));
        list.extend(agents.iter().filter(|at| !at.is_null()).map(|at| Agent::read(*at)));
    }
    SUCCESS
}

impl Agents {
    /// A CPU (1) and GPUs (2, 3, …) that are not there.
    #[cfg(any(test, feature = "replay"))]
    pub(crate) fn made_up(gpus: u32) -> Agents {
        let gpu = |n| Agent { id: u64::from(n) + 2, gpu: Some(n), ..Agent::default() };
        let cpu = Agent { id: 1, ..Agent::default() };
        Agents::new([cpu].into_iter().chain((0..gpus).map(gpu)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent of this size: what it is, its number, and what sees it.
    fn agent(size: u64, kind: u32, number: u32, visible: u32) -> Agent {
        let fields = [(0, size, 8), (8, u64::from(number) + 100, 8), (16, kind.into(), 4)];
        let more = [(288, number.into(), 4), (292, visible.into(), 4)];
        let mut bytes = crate::device::raw::bytes(size as usize, &[&fields[..], &more].concat());
        for (at, byte) in (0..).zip(bytes.iter_mut().skip(agent::UUID)) {
            *byte = 0x10 + at;
        }
        // SAFETY: it begins with its size; pointers in it are null.
        unsafe { Agent::read(bytes.as_ptr()) }
    }

    #[test]
    fn a_uuid_has_as_many_bytes_as_there_are() {
        let of = |size| agent(size, agent::GPU, 0, 3).uuid;
        assert_eq!(of(296), None);
        assert_eq!(of(304).as_deref(), Some("GPU-1716151413121110"));
        assert_eq!(of(312).as_deref(), Some("GPU-101112131415161718191a1b1c1d1e1f"));
        assert_eq!(of(376), of(312), "it has grown behind it");
    }

    #[test]
    fn hidden_gpus_have_no_number() {
        let numbers = |visible: [u32; 3], size| {
            let gpus = (0..).zip(visible).map(|(n, visible)| agent(size, agent::GPU, n, visible));
            let agents = Agents::new([agent(size, 1, 0, 3)].into_iter().chain(gpus).collect());
            [100, 101, 102].map(|id| agents.gpus.get(&id).copied())
        };
        assert_eq!(numbers([3, 3, 3], 304), [Some(0), Some(1), Some(2)]);
        // HIP_VISIBLE_DEVICES=1,2.
        assert_eq!(numbers([1, 3, 3], 304), [None, Some(0), Some(1)]);
        assert_eq!(numbers([0, 0, 0], 304), [Some(0), Some(1), Some(2)], "it cannot be");
        assert_eq!(numbers([0, 0, 0], 296), [Some(0), Some(1), Some(2)], "it was not told then");
    }
}
