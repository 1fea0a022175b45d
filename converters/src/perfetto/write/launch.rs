//! What viewers show of an activity: added to its arguments and to those of its kernel, as in
//! our own recordings (`kymograph_protos::packet`), unless it has them. Whoever reads the file
//! takes most of it out again.

use hashbrown::{HashMap, HashSet};
use kymograph_protos::packet::{Arg, Name, Value as Wire};

use super::wire;
use crate::trace::{Activity, Dim3, KernelId, Launch, LaunchId, QueueId, StrId, Trace, Value};

/// Sizes in which a kernel is told of on one queue; with further ones it is told of without.
const MOST_SIZES: u32 = 16;

/// A kernel in one place and size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Variant {
    pub(super) kernel: KernelId,
    queue: QueueId,
    launch: Option<LaunchId>,
}

/// Their numbers, and which of them the sequence was told.
#[derive(Default)]
pub(super) struct Variants {
    numbers: HashMap<Variant, u64>,
    sizes: HashMap<(KernelId, QueueId), u32>,
    told: HashSet<u64>,
}

impl Variants {
    /// The one of an activity with a kernel, and its number.
    pub(super) fn of(&mut self, activity: &Activity) -> Option<(u64, Variant)> {
        let (queue, launch) = (activity.queue, activity.launch);
        let mut wanted = Variant { kernel: activity.kernel?, queue, launch };
        if !self.numbers.contains_key(&wanted) {
            let sizes = self.sizes.entry((wanted.kernel, queue)).or_default();
            *sizes += 1;
            if *sizes > MOST_SIZES {
                wanted.launch = None;
            }
        }
        let next = self.numbers.len() as u64 + 1;
        Some((*self.numbers.entry(wanted).or_insert(next), wanted))
    }

    /// Whether it is told of for the first time.
    pub(super) fn is_new(&mut self, number: u64) -> bool {
        self.told.insert(number)
    }
}

/// What there is to be said.
pub(super) struct About<'a> {
    trace: &'a Trace,
    activity: &'a Activity,
    foreign: bool,
    /// What another recorder says of some of its activities, and so of all that have it.
    theirs: &'a [&'static str],
}

/// Arguments that other recorders have as well.
const COMMON: [&str; 3] = ["device", "stream", "correlation"];

/// Those that the recorder of a trace, if that is not us, gave to some activity.
pub(super) fn theirs(trace: &Trace) -> Vec<&'static str> {
    let given = |name: &&str| {
        let name = trace.strings.find(name);
        let find = |args| name.is_some_and(|name| trace.args.find(args, name).is_some());
        trace.activities.iter().any(|activity| find(activity.args))
    };
    if trace.is_own() { Vec::new() } else { COMMON.into_iter().filter(given).collect() }
}

impl<'a> About<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        activity: &'a Activity,
        theirs: &'a [&'static str],
    ) -> About<'a> {
        About { trace, activity, foreign: !trace.is_own(), theirs }
    }

    fn has(&self, name: &str) -> bool {
        let Some(name) = self.trace.strings.find(name) else { return false };
        let kernel = self.activity.kernel.and_then(|kernel| self.trace.kernels[kernel].args);
        let find = |args| self.trace.args.find(args, name).is_some();
        find(self.activity.args) || find(kernel)
    }

    fn add(&self, args: &mut Vec<Arg<'static>>, name: &'static str, value: Wire<'static>) {
        if !self.theirs.contains(&name) && !self.has(name) {
            args.push(Arg { name: Name::Bytes(name.as_bytes()), value });
        }
    }

    /// Of the event itself: what could not be said with its kernel. Other recorders say their
    /// part in arguments of their own.
    pub(super) fn event_args(&self, args: &mut Vec<Arg<'static>>, variant: Option<Variant>) {
        let call = self.activity.correlation & 0xffff_ffff;
        if call != 0 && !self.foreign {
            self.add(args, "correlation", Wire::U64(call));
        }
        match variant {
            None if self.foreign => {}
            None => self.place(args),
            Some(variant) if variant.launch != self.activity.launch => {
                self.sizes(args, self.activity.launch);
            }
            Some(_) => {}
        }
    }

    /// Of a kernel in this place and size.
    pub(super) fn kernel_args(&self, args: &mut Vec<Arg<'static>>, variant: Variant) {
        let trace = self.trace;
        let own = trace.kernels[variant.kernel].args;
        let registers = trace.strings.find("registers per thread");
        if let Some(registers) = registers.and_then(|name| trace.args.find(own, name))
            && matches!(registers, Value::I64(_) | Value::U64(_))
        {
            self.add(args, "registers_per_thread", wire(registers));
        }
        self.place(args);
        self.sizes(args, variant.launch);
    }

    /// Where it ran, and for which process.
    fn place(&self, args: &mut Vec<Arg<'static>>) {
        let (trace, queue) = (self.trace, self.activity.queue);
        let device = trace.devices[trace.queues[queue].device].number;
        self.add(args, "device", Wire::I64(device));
        self.add(args, "stream", Wire::I64(trace.stream(queue)));
        let pid = self.activity.context.map(|context| trace.contexts[context].pid);
        let Some(pid) = pid.filter(|pid| *pid > 0) else { return };
        self.add(args, "process_id", Wire::I64(pid));
        let process = trace.processes.iter().map(|(_, process)| process);
        let name = process.into_iter().find(|process| process.pid == pid).map(|p| p.name);
        if let Some(name) = name.filter(|name| *name != StrId::NONE) {
            self.add(args, "process_name", Wire::Str(name));
        }
    }

    fn sizes(&self, args: &mut Vec<Arg<'static>>, launch: Option<LaunchId>) {
        let Some(launch) = launch.map(|launch| self.trace.launches[launch]) else { return };
        let Launch { grid: Some(grid), block: Some(block) } = launch else { return };
        let size =
            |of: Dim3| u64::from(of.x).saturating_mul(of.y.into()).saturating_mul(of.z.into());
        let (grid, block) = (size(grid), size(block));
        self.add(args, "grid_size", Wire::U64(grid));
        self.add(args, "workgroup_size", Wire::U64(block));
        self.add(args, "thread_count", Wire::U64(grid.saturating_mul(block)));
    }
}
