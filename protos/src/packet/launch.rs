//! The arguments of an activity: which kernel, where, how large, for which process.
//! By these names viewers show it (the plugins for GPUs of Perfetto's UI).
//!
//! Nearly all of it is the same for every launch of a kernel in one place and size. That is
//! said once, with the kernel, in a **variant** of it; readers put it with the event's own
//! arguments. So a launch costs its correlation number and not 60 bytes. A kernel that comes
//! in ever new sizes gets no further variants: its sizes stand in the events.

use std::collections::HashMap;

use super::event::{Arg, Name};
use super::gpu::{Activity, Kernel, Launch};
use super::message::Message;
use super::sequence::{STRINGS, Sequence};
use super::stage::{COMPUTE_ARGS, KERNELS};
use super::text::Strings;
use crate::fields::{
    gpu_render_stage_event::{compute_kernel_launch, extra_compute_arg},
    interned_compute_kernel, interned_string,
};

/// Arguments of ours, by their place in [`NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
enum Own {
    Device,
    Stream,
    Correlation,
    GridSize,
    WorkgroupSize,
    ThreadCount,
    ProcessId,
    ProcessName,
    Registers,
    SharedStatic,
    /// And what follows: x, y, z of the grid, then of the block.
    GridX,
}

/// Those of the launch's dimensions are called as the fields of the event are.
const NAMES: [&str; 16] = [
    "device",
    "stream",
    "correlation",
    "grid_size",
    "workgroup_size",
    "thread_count",
    "process_id",
    "process_name",
    "registers_per_thread",
    "shared_mem_static",
    "launch.grid_size.x",
    "launch.grid_size.y",
    "launch.grid_size.z",
    "launch.workgroup_size.x",
    "launch.workgroup_size.y",
    "launch.workgroup_size.z",
];

/// Variants that a kernel gets by its sizes.
const MAX_SIZES: u32 = 16;

/// A kernel in one place and size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Variant {
    kernel: Kernel,
    queue: u32,
    /// None: the events say it.
    launch: Option<Launch>,
    /// Arguments that the event brings itself, as bits.
    brought: u16,
}

/// What a sequence has said.
#[derive(Debug, Default)]
pub(super) struct Launches {
    variants: HashMap<Variant, u32>,
    sizes: HashMap<(Kernel, u32), u32>,
    /// The variant before, and its number: launches come in runs.
    last: Option<(Variant, u32)>,
    names: [u32; NAMES.len()],
    process: Option<(Vec<u8>, u32)>,
}

impl Launches {
    pub(super) fn clear(&mut self) {
        *self = Launches::default();
    }
}

/// A number among the arguments; a text by its number.
enum Said {
    Number(u64),
    Text(u32),
}

/// What an activity refers to.
pub(super) struct Told {
    pub(super) kernel: Option<u32>,
    pub(super) launch: Option<Launch>,
    /// The launch message, but for its dimensions and the arguments that are the event's.
    pub(super) args: Vec<u8>,
}

impl Sequence {
    /// Tells of the kernel, and says what is left to be said with the event itself.
    pub(super) fn tell_launch(
        &mut self,
        strings: &impl Strings,
        activity: &Activity<'_>,
        mut args: Vec<u8>,
    ) -> Told {
        args.clear();
        let mut fresh = std::mem::take(&mut self.fresh);
        let brought = brought(strings, activity.args);
        let mut own = |sequence: &mut Sequence, fresh: &mut Vec<u8>, own: Own, said: Said| {
            if brought >> own as usize & 1 == 0 {
                let name = sequence.own_name(own as usize, fresh);
                Message::new(&mut args)
                    .message(compute_kernel_launch::ARGS, |arg| put(arg, name, &said));
            }
        };
        if activity.submission != 0 {
            let correlation = Said::Number(activity.submission.into());
            own(self, &mut fresh, Own::Correlation, correlation);
        }
        let (mut kernel, mut launch) = (None, activity.launch);
        match activity.kernel {
            Some(known) => {
                let queue = activity.queue.number;
                let wanted = Variant { kernel: known, queue, launch, brought };
                let (number, variant) = self.variant(strings, activity, wanted, &mut fresh);
                kernel = Some(number);
                if variant.launch.is_some() {
                    launch = None;
                }
            }
            None => {
                own(self, &mut fresh, Own::Device, Said::Number(activity.gpu.into()));
                own(self, &mut fresh, Own::Stream, Said::Number(activity.queue.stream));
                own(self, &mut fresh, Own::ProcessId, Said::Number(activity.queue.pid.into()));
                let process = self.process_text(activity.queue.process, &mut fresh);
                own(self, &mut fresh, Own::ProcessName, Said::Text(process));
            }
        }
        if let Some(launch) = launch {
            for (name, size) in launch.sizes() {
                own(self, &mut fresh, name, Said::Number(size));
            }
        }
        self.fresh = fresh;
        Told { kernel, launch, args }
    }

    /// The number of a variant, or of the one without sizes if there are too many.
    fn variant(
        &mut self,
        strings: &impl Strings,
        activity: &Activity<'_>,
        mut wanted: Variant,
        fresh: &mut Vec<u8>,
    ) -> (u32, Variant) {
        let launches = &mut self.gpu.launches;
        if let Some((last, number)) = launches.last
            && last == wanted
        {
            return (number, last);
        }
        let mut known = launches.variants.get(&wanted).copied();
        if known.is_none() && wanted.launch.is_some() {
            let sizes = launches.sizes.entry((wanted.kernel, wanted.queue)).or_default();
            *sizes += 1;
            if *sizes > MAX_SIZES {
                wanted.launch = None;
                known = launches.variants.get(&wanted).copied();
            }
        }
        let number = known.unwrap_or_else(|| {
            let number = self.gpu.launches.variants.len() as u32 + 1;
            self.gpu.launches.variants.insert(wanted, number);
            self.introduce_variant(strings, activity, (wanted, number), fresh);
            number
        });
        self.gpu.launches.last = Some((wanted, number));
        (number, wanted)
    }

    #[cold]
    fn introduce_variant(
        &mut self,
        strings: &impl Strings,
        activity: &Activity<'_>,
        (variant, number): (Variant, u32),
        fresh: &mut Vec<u8>,
    ) {
        let Variant { kernel, launch, .. } = variant;
        let process = self.process_text(activity.queue.process, fresh);
        let mut said = vec![
            (Own::Registers as usize, Said::Number(kernel.registers.into())),
            (Own::SharedStatic as usize, Said::Number(kernel.shared.into())),
            (Own::Device as usize, Said::Number(activity.gpu.into())),
            (Own::Stream as usize, Said::Number(activity.queue.stream)),
            (Own::ProcessId as usize, Said::Number(activity.queue.pid.into())),
            (Own::ProcessName as usize, Said::Text(process)),
        ];
        if let Some(launch) = launch {
            let sizes = launch.sizes().into_iter();
            said.extend(sizes.map(|(name, size)| (name as usize, Said::Number(size))));
            let dims = launch.grid.into_iter().chain(launch.block);
            let dims = (Own::GridX as usize..).zip(dims);
            said.extend(dims.map(|(name, extent)| (name, Said::Number(extent.into()))));
        }
        said.retain(|(name, _)| variant.brought >> name & 1 == 0);
        let said: Vec<_> =
            said.into_iter().map(|(name, said)| (self.own_name(name, fresh), said)).collect();
        let name = strings.text(kernel.name).bytes;
        let symbol = strings.text(kernel.symbol).bytes;
        Message::new(fresh).message(KERNELS, |entry| {
            entry.uint(interned_compute_kernel::IID, number.into());
            entry
                .text(interned_compute_kernel::NAME, if symbol.is_empty() { name } else { symbol })
                .text(interned_compute_kernel::DEMANGLED_NAME, name);
            if !activity.architecture.is_empty() {
                entry.text(interned_compute_kernel::ARCH, activity.architecture);
            }
            for (name, said) in &said {
                entry.message(interned_compute_kernel::ARGS, |arg| put(arg, *name, said));
            }
        });
    }

    /// The number of one of our names of arguments.
    #[inline]
    fn own_name(&mut self, own: usize, fresh: &mut Vec<u8>) -> u32 {
        match self.gpu.launches.names[own] {
            0 => {
                let number = self.gpu.arg_names.give_unnamed();
                self.gpu.launches.names[own] = number;
                introduce_text(fresh, COMPUTE_ARGS, number, NAMES[own].as_bytes());
                number
            }
            number => number,
        }
    }

    /// The number of the text that says what a process is called.
    fn process_text(&mut self, name: &[u8], fresh: &mut Vec<u8>) -> u32 {
        if let Some((known, number)) = &self.gpu.launches.process
            && known == name
        {
            return *number;
        }
        let number = self.strings.give_unnamed();
        introduce_text(fresh, STRINGS, number, name);
        self.gpu.launches.process = Some((name.to_vec(), number));
        number
    }
}

impl Launch {
    /// How many blocks there are, how many threads in each, and in all.
    fn sizes(&self) -> [(Own, u64); 3] {
        let size =
            |of: [u32; 3]| of.iter().fold(1u64, |n, extent| n.saturating_mul((*extent).into()));
        let (grid, block) = (size(self.grid), size(self.block));
        [
            (Own::GridSize, grid),
            (Own::WorkgroupSize, block),
            (Own::ThreadCount, grid.saturating_mul(block)),
        ]
    }
}

/// Which of our arguments an event has already.
fn brought(strings: &impl Strings, args: &[Arg<'_>]) -> u16 {
    let mut brought = 0;
    for arg in args {
        let name = match arg.name {
            Name::Id(id) => strings.text(id).bytes,
            Name::Bytes(bytes) => bytes,
        };
        if let Some(own) = NAMES.iter().position(|own| own.as_bytes() == name) {
            brought |= 1 << own;
        }
    }
    brought
}

fn put(arg: &mut Message<'_>, name: u32, said: &Said) {
    arg.uint(extra_compute_arg::NAME_IID, name.into());
    match said {
        Said::Number(number) => arg.uint(extra_compute_arg::UINT_VALUE, *number),
        Said::Text(number) => arg.uint(extra_compute_arg::STRING_VALUE_IID, (*number).into()),
    };
}

fn introduce_text(fresh: &mut Vec<u8>, field: u32, number: u32, text: &[u8]) {
    Message::new(fresh).message(field, |entry| {
        entry.uint(interned_string::IID, number.into()).text(interned_string::STR, text);
    });
}

const _: () = assert!(NAMES.len() == 16 && Own::GridX as usize + 6 == NAMES.len());
