//! Operators as PyTorch's profiler sees them: what calls what, and whose the device work is.

use kymograph_converters::order::Order as _;
use std::sync::Arc;

use hashbrown::HashMap;
use kymograph_converters::trace::{ArgsId, StrId, Value};

use crate::Error;
use crate::model::{Argument, Events, Kind, Model, NONE};

/// An event of the host or of a device.
#[derive(Clone, Debug)]
pub(in crate::metric) struct Event {
    pub(in crate::metric) row: u32,
    /// Beginning and end in microseconds since the trace began.
    pub(in crate::metric) start: f64,
    pub(in crate::metric) end: f64,
    pub(in crate::metric) on_device: bool,
    /// The event around it; [`NONE`] for none.
    parent: u32,
    /// The first and the last of the events that it calls, and the next one that its caller calls.
    first: u32,
    last: u32,
    next: u32,
    /// How long device work takes that it launched itself.
    kernels: f64,
    /// A node in the tree that stands for nothing of its own: see [`Tree::merge`].
    gone: bool,
}

impl Event {
    pub(in crate::metric) fn time(&self) -> f64 {
        self.end - self.start
    }
}

/// See the module.
#[derive(Debug)]
pub(in crate::metric) struct Tree {
    /// In the order of their beginnings, the longest first.
    pub(in crate::metric) events: Vec<Event>,
    /// How long device work below each takes, itself included.
    device: Vec<f64>,
    /// The time of the host and of devices that each did not spend in what it calls.
    own: Vec<(f64, f64)>,
    /// Bytes that were allocated less those that were freed while each lasted: host, device. Empty
    /// if the trace does not say what was allocated.
    pub(in crate::metric) memory: Vec<[i64; 2]>,
}

impl Tree {
    /// The tree of a model, with Python functions or without. While one metric holds it, others
    /// get the same one.
    pub(in crate::metric) fn of(model: &Model<'_>, python: bool) -> Result<Arc<Tree>, Error> {
        let tree = model.while_held(("operators", python), || Tree::new(model, python));
        if tree.events.is_empty() {
            let rank = model.rank;
            return Err(Error::Nothing(format!("rank {rank} has neither operators nor kernels")));
        }
        Ok(tree)
    }

    fn new(model: &Model<'_>, python: bool) -> Tree {
        let mut tree = Tree {
            events: events(model, python),
            device: Vec::new(),
            own: Vec::new(),
            memory: Vec::new(),
        };
        tree.count_memory(model);
        let threads = tree.link(model);
        tree.nest(&threads);
        tree.merge(model);
        tree.add_up();
        tree
    }

    /// How long each takes with what it calls, and without.
    fn add_up(&mut self) {
        self.device = vec![0.0; self.events.len()];
        self.own = vec![(0.0, 0.0); self.events.len()];
        // Callers come before what they call.
        for at in (0..self.events.len()).rev() {
            let (mut host, mut device) = (0.0, 0.0);
            for child in self.children(at) {
                host += self.host_time(child);
                device += self.device[child];
            }
            let event = &self.events[at];
            self.device[at] = if event.on_device { event.time() } else { event.kernels + device };
            self.own[at] = (self.host_time(at) - host, self.device[at] - device);
        }
    }

    /// All events that are left.
    pub(in crate::metric) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.events.len()).filter(|at| !self.events[*at].gone)
    }

    /// What an event calls, in order.
    fn children(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let known = |at: u32| (at != NONE).then_some(at as usize);
        std::iter::successors(known(self.events[at].first), move |at| known(self.events[*at].next))
    }

    /// The event around an event.
    pub(in crate::metric) fn parent(&self, at: usize) -> Option<usize> {
        Some(self.events[at].parent).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    pub(in crate::metric) fn host_time(&self, at: usize) -> f64 {
        if self.events[at].on_device { 0.0 } else { self.events[at].time() }
    }

    /// The time of the host and of devices that an event did not spend in what it calls.
    pub(in crate::metric) fn self_times(&self, at: usize) -> (f64, f64) {
        self.own[at]
    }

    pub(in crate::metric) fn device_time(&self, at: usize) -> f64 {
        self.device[at]
    }

    pub(in crate::metric) fn self_memory(&self, at: usize, device: usize) -> i64 {
        let below: i64 = self.children(at).map(|child| self.memory[child][device]).sum();
        self.memory[at][device] - below
    }

    /// What was allocated and freed while each event of the host lasted, on any thread.
    fn count_memory(&mut self, model: &Model<'_>) {
        let find = |name| model.trace.strings.find(name);
        let (Some(memory), Some(bytes)) = (find("[memory]"), find("Bytes")) else { return };
        let device = find("Device Type");
        let number =
            |args: Option<ArgsId>, name: Option<StrId>| match model.trace.args.find(args, name?)? {
                Value::I64(n) => Some(n),
                _ => None,
            };
        let mut records: [Vec<(i64, i64)>; 2] = Default::default();
        for instant in model.trace.instants.iter().filter(|instant| instant.name == memory) {
            // The numbers of c10: the host's kinds, and those of devices.
            let side = match number(instant.args, device) {
                Some(0 | 5 | 7) => 0,
                Some(_) => 1,
                None => continue,
            };
            records[side].extend(number(instant.args, Some(bytes)).map(|n| (instant.time.0, n)));
        }
        if records.iter().all(Vec::is_empty) {
            return;
        }
        self.memory = vec![[0; 2]; self.events.len()];
        for (side, records) in records.iter_mut().enumerate() {
            records.order_by_numbers(|(time, _)| [*time]);
            let mut sums = vec![0i64];
            sums.extend(records.iter().scan(0i64, |sum, (_, bytes)| {
                *sum = sum.saturating_add(*bytes);
                Some(*sum)
            }));
            let events = self.events.iter().zip(&mut self.memory);
            for (event, memory) in events.filter(|(event, _)| !event.on_device) {
                let (start, end) = model.events.interval(event.row);
                let from = records.partition_point(|(time, _)| *time < start);
                let to = records.partition_point(|(time, _)| *time <= end);
                memory[side] = sums[to] - sums[from];
            }
        }
    }

    /// Gives operators the device work of their number, and calls of the runtime the threads of
    /// their operators. Gives back the thread of each event of the host.
    fn link(&mut self, model: &Model<'_>) -> Vec<(i64, i64)> {
        let external = External::new(model);
        let mut operators: HashMap<i64, usize> = HashMap::new();
        for (at, event) in self.events.iter().enumerate() {
            let kind = model.events.kinds[event.row as usize];
            if matches!(kind, Kind::Operator | Kind::Annotation)
                && let Some(number) = external.of(event.row)
            {
                operators.insert(number, at);
            }
        }
        let mut threads = Vec::with_capacity(self.events.len());
        for at in 0..self.events.len() {
            let row = self.events[at].row;
            let kind = model.events.kinds[row as usize];
            let own = model.events.lane(row);
            let is_call = matches!(kind, Kind::Runtime | Kind::Driver);
            let mut thread = (own.pid, own.tid);
            if (is_call || self.events[at].on_device)
                && let Some(operator) = external.of(row).and_then(|n| operators.get(&n))
            {
                if is_call {
                    let lane = model.events.lane(self.events[*operator].row);
                    thread = (lane.pid, lane.tid);
                } else if kind.is_work() {
                    self.events[*operator].kernels += self.events[at].time();
                }
            }
            threads.push(thread);
        }
        threads
    }

    /// An event lies in another if it begins before that ends, and ends no later.
    fn nest(&mut self, threads: &[(i64, i64)]) {
        let mut numbers: HashMap<(i64, i64), usize> = HashMap::new();
        let mut open: Vec<Vec<u32>> = Vec::new();
        // Mostly the thread of one event is that of the next, too.
        let mut last = None;
        for (at, thread) in threads.iter().enumerate() {
            if self.events[at].on_device {
                continue;
            }
            let number = match last {
                Some((known, number)) if known == thread => number,
                _ => *numbers.entry(*thread).or_insert_with(|| {
                    open.push(Vec::new());
                    open.len() - 1
                }),
            };
            last = Some((thread, number));
            let stack = &mut open[number];
            let (start, end) = (self.events[at].start, self.events[at].end);
            while let Some(top) = stack.last() {
                let around = &self.events[*top as usize];
                if start >= around.end || end > around.end {
                    stack.pop();
                } else {
                    break;
                }
            }
            let parent = stack.last().copied();
            stack.push(at as u32);
            if let Some(parent) = parent {
                self.events[at].parent = parent;
                let around = &mut self.events[parent as usize];
                let before = std::mem::replace(&mut around.last, at as u32);
                match self.events.get_mut(before as usize) {
                    Some(before) => before.next = at as u32,
                    None => self.events[parent as usize].first = at as u32,
                }
            }
        }
    }

    /// An only child of its parent's name is its parent.
    fn merge(&mut self, model: &Model<'_>) {
        let mut is_step = model.names_that(|name| name.starts_with(STEP));
        let names = &model.events.names;
        let mut same = |one: u32, other: u32| {
            names[one as usize] == names[other as usize] || is_step(one) && is_step(other)
        };
        loop {
            let mut merged = false;
            for at in 0..self.events.len() {
                let parent = self.events[at].parent as usize;
                if parent == NONE as usize || self.events[at].gone {
                    continue;
                }
                // Of its parent it is the only child if it is both the first and the last.
                let Event { first, last, row, .. } = self.events[parent];
                if first != last || !same(self.events[at].row, row) {
                    continue;
                }
                let own = &mut self.events[at];
                let (first, last) = (own.first, own.last);
                (own.first, own.last) = (NONE, NONE);
                let mut child = first;
                while let Some(event) = self.events.get_mut(child as usize) {
                    event.parent = parent as u32;
                    child = event.next;
                }
                (self.events[parent].first, self.events[parent].last) = (first, last);
                self.events[parent].kernels = self.events[at].kernels;
                self.events[at].gone = true;
                merged = true;
            }
            if !merged {
                return;
            }
        }
    }
}

/// How names of steps begin.
const STEP: &str = "ProfilerStep#";

/// What an event is called: steps have no numbers.
pub(super) fn name<'a>(model: &Model<'a>, row: u32) -> &'a str {
    match model.name(row) {
        step if step.starts_with(STEP) => "ProfilerStep*",
        name => name,
    }
}

/// Events in the order of their beginnings, of those that begin together the longest first.
fn events(model: &Model<'_>, python: bool) -> Vec<Event> {
    let events = &model.events;
    let rows = model.shared("order of operators", || order(model));
    let rows = rows.iter().copied();
    let is_function =
        |row: u32| events.kinds[row as usize] == Kind::Python && !events.on_device(row);
    let rows = rows.filter(|row| python || !is_function(*row));
    let span = model.trace.strings.find("PyTorch Profiler (0)");
    let spans = events.names.iter().zip(&events.starts).find(|(name, _)| Some(**name) == span);
    let origin = spans.map_or(model.origin, |(_, start)| *start);
    let micros = |time: i64| time.saturating_sub(origin) as f64 / 1e3;
    let event = |row: u32| {
        let (start, end) = events.interval(row);
        let kind = events.kinds[row as usize];
        Event {
            row,
            start: micros(start),
            end: micros(end),
            on_device: is_on_device(events, row, kind),
            parent: NONE,
            first: NONE,
            last: NONE,
            next: NONE,
            kernels: 0.0,
            gone: false,
        }
    };
    rows.map(event).collect()
}

/// All that may be in a tree, in the order of [`events`].
fn order(model: &Model<'_>) -> Vec<u32> {
    let events = &model.events;
    let counts = |row: &u32| {
        let outside = matches!(events.kinds[*row as usize], Kind::Other | Kind::Step);
        !outside || events.on_device(*row)
    };
    // With what they are sorted by beside them, and their own order where that is the same.
    let key = |row: u32| (events.starts[row as usize], std::cmp::Reverse(events.end(row)), row);
    let rows = model.thread_by_thread();
    let mut rows: Vec<_> = rows.iter().copied().filter(counts).map(key).collect();
    rows.sort();
    rows.into_iter().map(|(.., row)| row).collect()
}

fn is_on_device(events: &Events, row: u32, kind: Kind) -> bool {
    events.on_device(row) || matches!(kind, Kind::DeviceAnnotation | Kind::Sync)
}

/// The number that joins operators with calls and device work.
struct External<'m, 'a>(Argument<'m, 'a>);

impl<'m, 'a> External<'m, 'a> {
    fn new(model: &'m Model<'a>) -> External<'m, 'a> {
        let own = model.argument("External id");
        External(if own.is_known() { own } else { model.argument("external id") })
    }

    fn of(&self, row: u32) -> Option<i64> {
        match self.0.value(row)? {
            Value::I64(n) => Some(n).filter(|n| *n != 0),
            _ => None,
        }
    }
}
