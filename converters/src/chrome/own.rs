//! Our own recordings in Kineto's terms, for tools that know nothing else.
//!
//! What a recording says once, in the place that Perfetto has for it, Kineto repeats in the
//! arguments of each event: which call launched which kernel, the context, the resources of
//! a kernel. And what has a plain name here has one from CUDA's headers there. Other traces are
//! written as they are.

use std::collections::{HashMap, HashSet};

use crate::json::{write_float, write_string, write_uint};
use crate::trace::{Activity, Class, StrId, Trace, Value, Work, class, work_category};

/// Beyond this a viewer written in JavaScript cannot tell numbers apart.
const EXACT: u64 = 1 << 53;

/// Correlation numbers as files have them. Ours have the number of a process in their high
/// half, which only matters where several processes used devices.
#[derive(Debug, Default)]
pub(crate) struct Correlations {
    low: bool,
    others: HashMap<u64, u64>,
}

impl Correlations {
    /// For the numbers of a trace.
    pub(crate) fn new(trace: &Trace) -> Correlations {
        let activities = trace.activities.iter().map(|activity| activity.correlation);
        let links = trace.flows.links.iter().map(|link| link.correlation);
        let processes: HashSet<u64> =
            activities.chain(links).filter(|n| *n != 0).map(|number| number >> 32).collect();
        Correlations { low: trace.is_own() && processes.len() <= 1, others: HashMap::new() }
    }

    /// The number in the file.
    pub(crate) fn number(&mut self, correlation: u64) -> u64 {
        if self.low {
            return correlation & u64::from(u32::MAX);
        }
        if correlation < EXACT {
            return correlation;
        }
        let next = (1 << 52) + self.others.len() as u64 + 1;
        *self.others.entry(correlation).or_insert(next)
    }
}

/// Properties of devices: our name, Kineto's.
const PROPERTIES: [(&str, &str); 5] = [
    ("multiprocessors", "numSms"),
    ("max_threads_per_multiprocessor", "maxThreadsPerMultiprocessor"),
    ("registers_per_multiprocessor", "regsPerMultiprocessor"),
    ("shared_memory_per_multiprocessor", "sharedMemPerMultiprocessor"),
    ("memory_bytes", "totalGlobalMem"),
];

/// Adds a property of a device to those of an object, if Kineto has it under another name.
pub(crate) fn property(out: &mut String, name: &str, value: &str) -> bool {
    if let Some((major, minor)) = value.split_once('.').filter(|_| name == "compute_capability")
        && let (Ok(major), Ok(minor)) = (major.parse::<u32>(), minor.parse::<u32>())
    {
        *out += &format!(", \"computeMajor\": {major}, \"computeMinor\": {minor}");
        return true;
    }
    let known = PROPERTIES.iter().find(|(own, _)| *own == name);
    let Some(((_, theirs), number)) = known.zip(value.parse::<u64>().ok()) else { return false };
    *out += &format!(", \"{theirs}\": {number}");
    true
}

/// What Kineto computes of a copy and a fill; recordings have it where a vendor says it.
const BANDWIDTH: &str = "memory bandwidth (GB/s)";

/// Names of arguments in our recordings, and what they say.
#[derive(Debug)]
pub(crate) struct Names {
    registers: Option<StrId>,
    shared_static: Option<StrId>,
    shared_dynamic: Option<StrId>,
    blocks_per_sm: Option<StrId>,
    context: Option<StrId>,
    bytes: Option<StrId>,
    bandwidth: Option<StrId>,
    /// Multiprocessors of each device.
    multiprocessors: Vec<Option<u64>>,
}

impl Names {
    pub(crate) fn new(trace: &Trace) -> Names {
        let find = |name| trace.strings.find(name);
        let of_device = |properties| {
            let value = trace.args.find(properties, find("multiprocessors")?)?;
            match value {
                Value::Str(text) => trace.strings.get(text).parse().ok(),
                value => number(value),
            }
        };
        Names {
            registers: find("registers_per_thread"),
            shared_static: find("shared_mem_static"),
            shared_dynamic: find("shared_mem_dynamic"),
            blocks_per_sm: find("blocks per SM"),
            context: find("context"),
            bytes: find("bytes"),
            bandwidth: find(BANDWIDTH),
            multiprocessors: trace.devices.iter().map(|(_, d)| of_device(d.properties)).collect(),
        }
    }

    /// Whether an argument of a kernel is said in another way.
    pub(crate) fn replaces(&self, name: StrId) -> bool {
        Some(name) == self.registers || Some(name) == self.shared_static
    }

    /// Writes what Kineto says of an activity besides its arguments.
    pub(crate) fn activity(&self, trace: &Trace, activity: &Activity, out: &mut Out<'_>) {
        if let Some(context) = activity.context
            && self.context.is_none_or(|key| trace.args.find(activity.args, key).is_none())
        {
            out.put("context", |to| write_uint(to, trace.contexts[context].number));
        }
        self.bandwidth(trace, activity, out);
        let Some(kernel) = activity.kernel.map(|kernel| &trace.kernels[kernel]) else { return };
        let find = |set, name: Option<StrId>| number(trace.args.find(set, name?)?);
        if let Some(registers) = find(kernel.args, self.registers) {
            out.put("registers per thread", |to| write_uint(to, registers));
        }
        let fixed = find(kernel.args, self.shared_static);
        let dynamic = find(activity.args, self.shared_dynamic);
        if fixed.or(dynamic).is_some() {
            let bytes = fixed.unwrap_or(0).saturating_add(dynamic.unwrap_or(0));
            out.put("shared memory", |to| write_uint(to, bytes));
        }
        if self.blocks_per_sm.is_none_or(|key| trace.args.find(activity.args, key).is_none()) {
            self.per_sm(trace, activity, out);
        }
    }

    /// Of a copy or a fill: bytes per nanosecond, which Kineto leaves out of one that took no time.
    fn bandwidth(&self, trace: &Trace, activity: &Activity, out: &mut Out<'_>) {
        let stage = activity.stage.map(|stage| &trace.stages[stage]);
        let moves =
            matches!(class(work_category(trace, stage)), Class::Work(Work::Copy | Work::Set));
        let said = self.bandwidth.is_some_and(|key| trace.args.find(activity.args, key).is_some());
        let bytes = self.bytes.and_then(|name| number(trace.args.find(activity.args, name)?));
        if let Some(bytes) = bytes.filter(|_| moves && !said && activity.dur.0 > 0) {
            let rate = bytes as f64 / activity.dur.0 as f64;
            out.put(BANDWIDTH, |to| write_float(to, rate));
        }
    }

    fn per_sm(&self, trace: &Trace, activity: &Activity, out: &mut Out<'_>) {
        let Some(launch) = activity.launch.map(|launch| trace.launches[launch]) else { return };
        let (Some(grid), Some(block)) = (launch.grid, launch.block) else { return };
        let device = trace.queues[activity.queue].device;
        let sms = self.multiprocessors.get(device.index()).copied().flatten();
        let Some(sms) = sms.filter(|sms| *sms > 0) else { return };
        let extent =
            |dim: crate::trace::Dim3| f64::from(dim.x) * f64::from(dim.y) * f64::from(dim.z);
        let blocks = extent(grid) / sms as f64;
        out.put("blocks per SM", |to| write_float(to, blocks));
        out.put("warps per SM", |to| write_float(to, blocks * extent(block) / 32.0));
    }
}

/// Arguments being written: the text, and where the first one stands.
pub(crate) struct Out<'a> {
    pub(crate) text: &'a mut Vec<u8>,
    pub(crate) first: usize,
}

impl Out<'_> {
    pub(crate) fn put(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        if self.text.len() > self.first {
            self.text.extend_from_slice(b", ");
        }
        write_string(self.text, name);
        self.text.extend_from_slice(b": ");
        value(self.text);
    }
}

fn number(value: Value) -> Option<u64> {
    match value {
        Value::U64(n) => Some(n),
        Value::I64(n) => u64::try_from(n).ok(),
        _ => None,
    }
}
