//! What readers of other profilers' formats have in common: rows by their numbers, and work of
//! devices in the hub's terms.

use hashbrown::{HashMap, HashSet};
use kymograph_protos::rows;

use crate::trace::{
    Activity, Api, Context, ContextId, Device, DeviceId, Dim3, EventRef, Instant, Kernel, KernelId,
    Launch, LaunchId, LaunchKind, LaunchLink, Nanos, ProcessId, Queue, QueueId, Slice, SliceId,
    StageId, StrId, ThreadId, Trace, TrackId, Value, Work,
};

/// A trace that a reader fills.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) trace: Trace,
    processes: HashMap<i64, ProcessId>,
    threads: HashMap<(i64, i64), ThreadId>,
    devices: HashMap<i64, DeviceId>,
    queues: HashMap<(i64, i64), QueueId>,
    contexts: HashMap<Context, ContextId>,
    stages: HashMap<&'static str, StageId>,
    kernels: HashMap<Kernel, KernelId>,
    launches: HashMap<Launch, LaunchId>,
    /// Calls that may have launched something: each with its correlation number.
    calls: Vec<(SliceId, u64, Api)>,
}

/// Names and values, as [`crate::trace::Args::add`] takes them.
pub(crate) type Entries = Vec<(StrId, Value)>;

/// What a device did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) work: Work,
    /// Device and stream.
    pub(crate) queue: QueueId,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) name: StrId,
    /// 0 if there is none.
    pub(crate) correlation: u64,
    pub(crate) context: Option<ContextId>,
    pub(crate) grid: Option<Dim3>,
    pub(crate) block: Option<Dim3>,
    /// What all launches of the kernel have in common.
    pub(crate) kernel: Entries,
}

impl Builder {
    pub(crate) fn text(&mut self, text: &str) -> StrId {
        self.trace.strings.intern(text)
    }

    /// A text as a value.
    pub(crate) fn string(&mut self, text: &str) -> Value {
        Value::Str(self.text(text))
    }

    pub(crate) fn process(&mut self, pid: i64) -> ProcessId {
        let trace = &mut self.trace;
        *self.processes.entry(pid).or_insert_with(|| trace.process(pid, ""))
    }

    pub(crate) fn name_process(&mut self, pid: i64, name: &str) {
        let (process, name) = (self.process(pid), self.text(name));
        self.trace.processes[process].name = name;
    }

    /// The track of a process.
    pub(crate) fn process_track(&mut self, pid: i64) -> TrackId {
        let process = self.process(pid);
        self.trace.processes[process].track
    }

    fn thread_id(&mut self, pid: i64, tid: i64) -> ThreadId {
        let process = self.process(pid);
        let trace = &mut self.trace;
        *self.threads.entry((pid, tid)).or_insert_with(|| trace.thread(process, tid, ""))
    }

    /// The track of a thread.
    pub(crate) fn thread(&mut self, pid: i64, tid: i64) -> TrackId {
        let thread = self.thread_id(pid, tid);
        self.trace.threads[thread].track
    }

    pub(crate) fn name_thread(&mut self, pid: i64, tid: i64, name: &str) {
        let (thread, name) = (self.thread_id(pid, tid), self.text(name));
        self.trace.threads[thread].name = name;
    }

    pub(crate) fn device(&mut self, number: i64) -> DeviceId {
        let trace = &mut self.trace;
        *self.devices.entry(number).or_insert_with(|| trace.devices.push(Device::new(number)))
    }

    /// A stream of a device.
    pub(crate) fn stream(&mut self, device: i64, stream: i64) -> QueueId {
        self.queue(device, stream, &rows::stream(stream))
    }

    /// A queue of a device, under a name of its own.
    pub(crate) fn queue(&mut self, device: i64, number: i64, name: &str) -> QueueId {
        if let Some(&queue) = self.queues.get(&(device, number)) {
            return queue;
        }
        let (id, name) = (self.device(device), self.text(name));
        let queue = Queue { device: id, number: number as u64, name, description: StrId::NONE };
        let queue = self.trace.queues.push(queue);
        self.queues.insert((device, number), queue);
        queue
    }

    pub(crate) fn context(&mut self, number: u64, pid: i64, api: Api) -> ContextId {
        let (context, trace) = (Context { number, pid, api }, &mut self.trace);
        *self.contexts.entry(context).or_insert_with(|| trace.contexts.push(context))
    }

    /// A slice from `start` to `end`; an end before that is unknown.
    pub(crate) fn slice(
        &mut self,
        track: TrackId,
        (start, end): (i64, i64),
        name: StrId,
        category: StrId,
        args: &[(StrId, Value)],
    ) -> SliceId {
        let dur = if end < start { Nanos::UNFINISHED } else { Nanos(end.saturating_sub(start)) };
        let args = self.trace.args.add(args);
        let slice = Slice { name, category, args, ..Slice::new(track, Nanos(start), dur) };
        self.trace.slices.push(slice)
    }

    pub(crate) fn instant(
        &mut self,
        track: TrackId,
        time: i64,
        name: StrId,
        category: StrId,
        args: &[(StrId, Value)],
    ) {
        let args = self.trace.args.add(args);
        self.trace.instants.push(Instant { track, time: Nanos(time), name, category, args });
    }

    /// Says that a slice is a call, which launched what has its number.
    pub(crate) fn call(&mut self, slice: SliceId, correlation: u64, api: Api) {
        if correlation != 0 {
            self.calls.push((slice, correlation, api));
        }
    }

    /// Takes in what a device did.
    pub(crate) fn work(&mut self, done: Done, args: &[(StrId, Value)]) {
        let stage = self.stage(done.work);
        let trace = &mut self.trace;
        let (mut kernel, mut launch) = (None, None);
        if done.work == Work::Kernel {
            let (name, args) = (done.name, trace.args.add(&done.kernel));
            let own = Kernel { name, demangled: name, architecture: StrId::NONE, args };
            kernel = Some(*self.kernels.entry(own).or_insert_with(|| trace.kernels.push(own)));
            let own = Launch { grid: done.grid, block: done.block };
            if own != Launch::default() {
                let entry = self.launches.entry(own);
                launch = Some(*entry.or_insert_with(|| trace.launches.push(own)));
            }
        }
        let dur = Nanos(done.end.saturating_sub(done.start).max(0));
        let args = trace.args.add(args);
        trace.activities.push(Activity {
            name: done.name,
            stage: Some(stage),
            context: done.context,
            kernel,
            launch,
            correlation: done.correlation,
            args,
            ..Activity::new(done.queue, Nanos(done.start), dur)
        });
    }

    fn stage(&mut self, work: Work) -> StageId {
        let category = match work {
            Work::Kernel => "kernel",
            Work::Copy => "gpu_memcpy",
            Work::Set => "gpu_memset",
        };
        if let Some(&stage) = self.stages.get(category) {
            return stage;
        }
        let stage = work.stage(&mut self.trace, category);
        let stage = self.trace.stages.push(stage);
        self.stages.insert(category, stage);
        stage
    }

    /// The trace: calls are joined with what they launched.
    pub(crate) fn finish(mut self, producer: &str) -> Trace {
        let trace = &mut self.trace;
        let launched: HashSet<u64> = trace.activities.iter().map(|a| a.correlation).collect();
        for (slice, correlation, api) in self.calls {
            if launched.contains(&correlation) {
                let (event, kind) = (EventRef::Slice(slice), LaunchKind::Submit);
                trace.flows.links.push(LaunchLink { event, correlation, kind, api });
            }
        }
        trace.facts.producer = trace.strings.intern(producer);
        self.trace
    }
}
