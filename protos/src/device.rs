//! The tail slots of device records: what a kernel, copy or set did, on which queue.
//!
//! ```text
//! byte    0        4        8        12    13     14        16       20            32
//!         ┌────────┬────────┬────────┬─────┬──────┬─────────┬────────┬─────────────┐
//! device  │ queue  │ gpu    │ kernel │stage│launch│ zero    │ symbol │ zero        │
//!         ├────────┴────────┴────────┼─────┴──────┴────┬────┴────┬───┴────┬────────┤
//! launch  │ grid x, y, z             │ block x, y, z   │         │registers│shared │
//!         └──────────────────────────┴─────────────────┴─────────┴────────┴────────┘
//! byte    0                          12                          24       28      32
//! ```
//! A [`crate::Kind::Device`] record is its head, a [`DeviceSlot`], a [`LaunchSlot`] if
//! that says so, and then extras like any other record. Its times are nanoseconds
//! ([`crate::record::NANOS`]): devices have clocks of their own, and backends convert them.

use bytemuck::{Pod, Zeroable};

use crate::record::{Extra, SLOT_BYTES, StrId};

/// What kind of work a device did: category and fallback name of its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Stage {
    /// A kernel.
    Kernel = 1,
    /// A copy.
    MemoryTransfer = 2,
    /// A fill.
    MemorySet = 3,
    /// A collective or point-to-point operation between devices.
    Communication = 4,
    /// A whole graph of other activities.
    Graph = 5,
    /// Anything else.
    Other = 6,
    /// A range of the program, in a row beside the queue that worked for it.
    Annotation = 7,
}

impl Stage {
    /// The stage with this number; `Other` if there is none.
    pub const fn from_u8(n: u8) -> Stage {
        match n {
            1 => Stage::Kernel,
            2 => Stage::MemoryTransfer,
            3 => Stage::MemorySet,
            4 => Stage::Communication,
            5 => Stage::Graph,
            7 => Stage::Annotation,
            _ => Stage::Other,
        }
    }

    /// What viewers call it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Kernel => "Kernel",
            Stage::MemoryTransfer => "MemoryTransfer",
            Stage::MemorySet => "MemorySet",
            Stage::Communication => "Communication",
            Stage::Graph => "Graph",
            Stage::Other => "Other",
            Stage::Annotation => "Annotation",
        }
    }

    /// What it is, in a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            Stage::Kernel => "A kernel that the device ran",
            Stage::MemoryTransfer => "Memory that was copied to, from or between devices",
            Stage::MemorySet => "Memory that was filled with a value",
            Stage::Communication => "A collective or point-to-point operation between devices",
            Stage::Graph => "A graph of kernels, copies and fills, as a whole",
            Stage::Other => "Other work of the device",
            Stage::Annotation => "A range of the program, while the device worked for it",
        }
    }
}

/// Whose device it is. The backend of each vendor numbers devices, queues and calls for
/// itself, and a process may use several: what a record says is the backend's number with
/// the vendor's in front of it. NVIDIA's is 0, so its numbers are what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Vendor {
    /// CUDA.
    #[default]
    Nvidia = 0,
    /// HIP.
    Amd = 1,
    /// Level Zero and SYCL.
    Intel = 2,
    /// Synapse.
    Gaudi = 3,
}

/// Bits of a number that are the backend's own.
const GPU_BITS: u32 = 10;
const QUEUE_BITS: u32 = 14;
const CALL_BITS: u32 = 32;

impl Vendor {
    /// How many there are: the numbers below this are vendors.
    pub const COUNT: usize = 4;

    /// What a record calls the vendor's device of this index.
    pub const fn gpu(self, index: u32) -> u32 {
        (self as u32) << GPU_BITS | index & ((1 << GPU_BITS) - 1)
    }

    /// What a record calls the vendor's queue of this number.
    pub const fn queue(self, number: u32) -> u32 {
        (self as u32) << QUEUE_BITS | number & ((1 << QUEUE_BITS) - 1)
    }

    /// What a record calls the call of this correlation id.
    pub const fn call(self, correlation: u64) -> u64 {
        (self as u64) << CALL_BITS | correlation & ((1 << CALL_BITS) - 1)
    }

    /// The vendor of this number.
    pub const fn from_index(number: usize) -> Vendor {
        match number % Vendor::COUNT {
            0 => Vendor::Nvidia,
            1 => Vendor::Amd,
            2 => Vendor::Intel,
            _ => Vendor::Gaudi,
        }
    }

    /// The vendor and its own index in a record's number of a device.
    pub const fn of_gpu(number: u32) -> (Vendor, u32) {
        let vendor = Vendor::from_index((number >> GPU_BITS) as usize);
        (vendor, number & ((1 << GPU_BITS) - 1))
    }

    /// The vendor's number and its own number in a record's number of a queue.
    pub const fn of_queue(number: u32) -> (usize, usize) {
        let vendor = (number >> QUEUE_BITS) as usize % Vendor::COUNT;
        (vendor, (number & ((1 << QUEUE_BITS) - 1)) as usize)
    }

    /// The vendor's number and the correlation id in a record's number of a call.
    pub const fn of_call(number: u64) -> (u32, u32) {
        ((number >> CALL_BITS) as u32 % Vendor::COUNT as u32, number as u32)
    }
}

/// The unit of a device's counter: one of Perfetto's `MeasureUnit`s over another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GpuUnit {
    /// 0: none.
    pub over: u8,
    /// 0: none.
    pub under: u8,
}

impl GpuUnit {
    /// %.
    pub const PERCENT: GpuUnit = GpuUnit { over: 37, under: 0 };
    /// B.
    pub const BYTES: GpuUnit = GpuUnit { over: 7, under: 0 };
    /// B/s.
    pub const BYTES_PER_SECOND: GpuUnit = GpuUnit { over: 7, under: 22 };
    /// MHz.
    pub const MEGAHERTZ: GpuUnit = GpuUnit { over: 15, under: 0 };
    /// W.
    pub const WATT: GpuUnit = GpuUnit { over: 29, under: 0 };
    /// °C.
    pub const CELSIUS: GpuUnit = GpuUnit { over: 34, under: 0 };

    /// As a record has it.
    pub const fn to_bits(self) -> u64 {
        self.over as u64 | (self.under as u64) << 8
    }

    /// What a record has.
    pub const fn from_bits(bits: u64) -> GpuUnit {
        GpuUnit { over: bits as u8, under: (bits >> 8) as u8 }
    }
}

/// The interface that work was given to a device by, where Perfetto has a number for it
/// (`InternedGraphicsContext.Api`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum GpuApi {
    /// One that Perfetto does not know: Level Zero, Synapse.
    #[default]
    Unsaid = 0,
    /// CUDA.
    Cuda = 4,
    /// HIP.
    Hip = 5,
}

impl GpuApi {
    /// The API with this number; `Unsaid` if there is none.
    pub const fn from_u8(n: u8) -> GpuApi {
        match n {
            4 => GpuApi::Cuda,
            5 => GpuApi::Hip,
            _ => GpuApi::Unsaid,
        }
    }
}

/// Always the first tail slot of a device record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct DeviceSlot {
    /// The queue, as a [`crate::Kind::Queue`] record named it ([`Vendor::queue`]).
    pub queue: u32,
    /// The device, as a [`crate::Kind::Gpu`] record named it ([`Vendor::gpu`]).
    pub gpu: u32,
    /// The full name of the kernel, if it is longer than the slice's.
    pub kernel: StrId,
    /// A [`Stage`].
    pub stage: u8,
    /// 1 if a [`LaunchSlot`] follows.
    pub launch: u8,
    /// Always zero.
    pub zero: [u8; 2],
    /// The kernel's symbol, if that is not its name.
    pub symbol: StrId,
    /// Always zero.
    pub rest: [u8; 12],
}

/// How a kernel was launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct LaunchSlot {
    /// Blocks in the grid.
    pub grid: [u32; 3],
    /// Threads in a block.
    pub block: [u32; 3],
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory, in bytes per block.
    pub shared: u32,
}

impl DeviceSlot {
    /// The slot as the first two extras of its record.
    pub fn extras(self) -> [Extra; 2] {
        bytemuck::cast(self)
    }
}

impl LaunchSlot {
    /// The slot as the third and fourth extra of its record. At least one real extra must
    /// follow if the record has a string by value.
    pub fn extras(self) -> [Extra; 2] {
        bytemuck::cast(self)
    }
}

const _: () = assert!(size_of::<DeviceSlot>() == SLOT_BYTES);
const _: () = assert!(size_of::<LaunchSlot>() == SLOT_BYTES);
const _: () = assert!(std::mem::offset_of!(DeviceSlot, stage) == 12);
const _: () = assert!(std::mem::offset_of!(DeviceSlot, symbol) == 16);
