//! Devices, and what their activities refer to.

use super::{ArgsId, DeviceId, QueueId, StrId, Trace};

/// A device: a GPU or another accelerator.
#[derive(Clone, PartialEq, Debug)]
pub struct Device {
    /// Its number on the machine, as activities give it.
    pub number: i64,
    /// What it is called; may be none, as may the other texts.
    pub name: StrId,
    /// Who made it.
    pub vendor: StrId,
    /// Its model.
    pub model: StrId,
    /// Its architecture.
    pub architecture: StrId,
    /// 16 bytes that no other device has.
    pub uuid: Option<[u8; 16]>,
    /// Where it is plugged in, as in `0000:18:00.0`.
    pub pci: StrId,
    /// Further properties: memory, units, limits.
    pub properties: Option<ArgsId>,
    /// Tells the machines of a merged trace apart; 0 is the host.
    pub machine: u32,
}

impl Device {
    /// A device of which nothing but the number is known.
    pub fn new(number: i64) -> Device {
        Device {
            number,
            name: StrId::NONE,
            vendor: StrId::NONE,
            model: StrId::NONE,
            architecture: StrId::NONE,
            uuid: None,
            pci: StrId::NONE,
            properties: None,
            machine: 0,
        }
    }
}

/// A queue of a device: a stream, an engine. Its activities may overlap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Queue {
    /// The device.
    pub device: DeviceId,
    /// The queue's number, as its vendor or the trace gives it. Queues of one number and
    /// name are shown as one row.
    pub number: u64,
    /// What viewers show.
    pub name: StrId,
    /// A text that explains it; may be none.
    pub description: StrId,
}

impl Trace {
    /// The stream that a queue is. Its name knows; numbers are the trace's own.
    pub fn stream(&self, queue: QueueId) -> i64 {
        let queue = self.queues[queue];
        let named = self.strings.get(queue.name).strip_prefix("Stream ");
        let named = named.and_then(|rest| rest.split(' ').next()).and_then(|n| n.parse().ok());
        named.unwrap_or(queue.number as i64)
    }
}

/// A device context of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Context {
    /// Its number, as the trace gives it.
    pub number: u64,
    /// The kernel's id of the process; 0 if unknown.
    pub pid: i64,
    /// The API that it belongs to.
    pub api: Api,
}

/// An API that drives devices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Api {
    /// Unknown, or one for which Perfetto has no number.
    #[default]
    Unknown = 0,
    /// OpenGL.
    OpenGl = 1,
    /// Vulkan.
    Vulkan = 2,
    /// OpenCL.
    OpenCl = 3,
    /// CUDA.
    Cuda = 4,
    /// HIP.
    Hip = 5,
}

impl Api {
    /// The API with Perfetto's number.
    pub fn from_number(number: u64) -> Api {
        match number {
            1 => Api::OpenGl,
            2 => Api::Vulkan,
            3 => Api::OpenCl,
            4 => Api::Cuda,
            5 => Api::Hip,
            _ => Api::Unknown,
        }
    }
}

/// A kind of device activity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stage {
    /// What the kind is called: Kernel, MemoryTransfer…
    pub name: StrId,
    /// A text that explains it; may be none.
    pub description: StrId,
    /// What it is good for.
    pub kind: StageKind,
}

/// What a stage is good for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum StageKind {
    /// Neither of the others: copies, waits.
    #[default]
    Other = 0,
    /// Drawing.
    Graphics = 1,
    /// Computing.
    Compute = 2,
}

/// A kernel: what all its launches have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// Its symbol.
    pub name: StrId,
    /// Its signature in the language it was written in; may be none.
    pub demangled: StrId,
    /// The architecture that it was compiled for; may be none.
    pub architecture: StrId,
    /// Registers, memory…
    pub args: Option<ArgsId>,
}

/// Extents in three dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Dim3 {
    /// The innermost.
    pub x: u32,
    /// The middle one.
    pub y: u32,
    /// The outermost.
    pub z: u32,
}

/// The dimensions of a kernel's launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Launch {
    /// How many blocks or workgroups.
    pub grid: Option<Dim3>,
    /// How many threads or work items in each.
    pub block: Option<Dim3>,
}
