//! Operators as PyTorch's profiler sees them: what calls what, and whose the device work is.

use kymograph_converters::order::Order as _;
use std::sync::Arc;

use hashbrown::HashMap;
use kymograph_converters::trace::{ArgsId, StrId, Value};

use crate::Error;
use crate::model::{Events, Kind, Lane, Model, NONE, Numbered};

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
    /// How long device work below it takes, itself included.
    device: f64,
    /// The time of the host and of devices that it did not spend in what it calls.
    own: (f64, f64),
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
        let order = order(model);
        let mut tree = Tree { events: events(model, &order, python), memory: Vec::new() };
        tree.count_memory(model);
        let threads = tree.link(model, &order);
        tree.nest(&threads);
        tree.merge(model);
        tree.add_up();
        tree
    }

    /// How long each takes with what it calls, and without.
    fn add_up(&mut self) {
        // Callers come before what they call.
        for at in (0..self.events.len()).rev() {
            let event = &self.events[at];
            let (own_host, own_device) = match event.on_device {
                true => (0.0, event.time()),
                false => (event.time(), event.kernels),
            };
            let (mut host, mut device) = (0.0, 0.0);
            let mut child = event.first;
            while let Some(event) = self.events.get(child as usize) {
                // What has a caller is on the host.
                host += event.time();
                device += event.device;
                child = event.next;
            }
            let all = if event.on_device { own_device } else { own_device + device };
            let event = &mut self.events[at];
            event.device = all;
            event.own = (own_host - host, all - device);
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
        self.events[at].own
    }

    pub(in crate::metric) fn device_time(&self, at: usize) -> f64 {
        self.events[at].device
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
    fn link(&mut self, model: &Model<'_>, order: &Order) -> Vec<u32> {
        let threads = threads(&model.events);
        let thread = |row: u32| threads[model.events.lane_of[row as usize] as usize];
        let counts = |event: &&Event| {
            let kind = model.events.kinds[event.row as usize];
            matches!(kind, Kind::Operator | Kind::Annotation)
        };
        let ranges = self.events.iter().filter(counts).map(|event| order.number(event.row));
        let mut operators = Numbered::new(NONE, ranges, self.events.len());
        for (at, event) in (0..).zip(&self.events).filter(|(_, event)| counts(event)) {
            *operators.at(order.number(event.row)) = at;
        }
        let mut of = Vec::with_capacity(self.events.len());
        for at in 0..self.events.len() {
            let Event { row, on_device, .. } = self.events[at];
            let kind = model.events.kinds[row as usize];
            let is_call = matches!(kind, Kind::Runtime | Kind::Driver);
            let mut own = thread(row);
            if (is_call || on_device)
                && let Some(number) = Some(order.number(row)).filter(|number| *number != 0)
                && let Some(operator) = Some(operators.get(number)).filter(|at| *at != NONE)
            {
                let operator = operator as usize;
                if is_call {
                    own = thread(self.events[operator].row);
                } else if kind.is_work() {
                    self.events[operator].kernels += self.events[at].time();
                }
            }
            of.push(own);
        }
        of
    }

    /// An event lies in another if it begins before that ends, and ends no later.
    fn nest(&mut self, threads: &[u32]) {
        let mut open: Vec<Vec<u32>> = Vec::new();
        for (at, thread) in threads.iter().enumerate() {
            let Event { start, end, on_device, .. } = self.events[at];
            if on_device {
                continue;
            }
            let thread = *thread as usize;
            if open.len() <= thread {
                open.resize(thread + 1, Vec::new());
            }
            let stack = &mut open[thread];
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
        // What an event calls comes after it, so that what it gets from a child is still looked at.
        for at in 0..self.events.len() {
            let Event { parent, row, first, last, kernels, .. } = self.events[at];
            let Some(around) = self.events.get_mut(parent as usize) else { continue };
            // Of its parent it is the only child if it is both the first and the last.
            if around.first != around.last || !same(row, around.row) {
                continue;
            }
            (around.first, around.last) = (first, last);
            around.kernels = kernels;
            let mut child = first;
            while let Some(event) = self.events.get_mut(child as usize) {
                event.parent = parent;
                child = event.next;
            }
            let own = &mut self.events[at];
            (own.first, own.last) = (NONE, NONE);
            own.gone = true;
        }
    }
}

/// A number for the thread of each lane; lanes of one process and thread have the same.
pub(super) fn threads(events: &Events) -> Vec<u32> {
    let mut numbers: HashMap<(i64, i64), u32> = HashMap::new();
    let number = |lane: &Lane| {
        let next = numbers.len() as u32;
        *numbers.entry((lane.pid, lane.tid)).or_insert(next)
    };
    events.lanes.iter().map(number).collect()
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
fn events(model: &Model<'_>, order: &Order, python: bool) -> Vec<Event> {
    let events = &model.events;
    let span = model.trace.strings.find("PyTorch Profiler (0)");
    let spans = events.names.iter().zip(&events.starts).find(|(name, _)| Some(**name) == span);
    let origin = spans.map_or(model.origin, |(_, start)| *start);
    let micros = |time: i64| time.saturating_sub(origin) as f64 / 1e3;
    let mut all = Vec::with_capacity(order.rows.len());
    for row in order.rows.iter().copied() {
        let kind = events.kinds[row as usize];
        if kind == Kind::Python && !python && !events.on_device(row) {
            continue;
        }
        let (start, end) = events.interval(row);
        all.push(Event {
            row,
            start: micros(start),
            end: micros(end),
            on_device: is_on_device(events, row, kind),
            parent: NONE,
            first: NONE,
            last: NONE,
            next: NONE,
            kernels: 0.0,
            device: 0.0,
            own: (0.0, 0.0),
            gone: false,
        });
    }
    all
}

/// What trees are made of.
struct Order {
    /// All that may be in a tree, in the order of [`events`].
    rows: Vec<u32>,
    /// The `External id` of each event of the model that has to do with device work, which joins
    /// operators with calls and such work; 0 for none.
    numbers: Vec<i64>,
}

impl Order {
    fn number(&self, row: u32) -> i64 {
        self.numbers[row as usize]
    }
}

fn order(model: &Model<'_>) -> Arc<Order> {
    model.shared("order of operators", || Order { rows: rows(model), numbers: numbers(model) })
}

fn rows(model: &Model<'_>) -> Vec<u32> {
    let events = &model.events;
    let counts = |row: &u32| {
        let outside = matches!(events.kinds[*row as usize], Kind::Other | Kind::Step);
        !outside || events.on_device(*row)
    };
    let mut rows = Vec::with_capacity(events.len());
    rows.extend(model.by_time().iter().copied().filter(counts));
    events.sort_together(&mut rows, |one, other| {
        events.end(other).cmp(&events.end(one)).then(one.cmp(&other))
    });
    rows
}

fn numbers(model: &Model<'_>) -> Vec<i64> {
    let events = &model.events;
    let own = model.argument("External id");
    let external = if own.is_known() { own } else { model.argument("external id") };
    let joins = |row: u32, kind: Kind| {
        matches!(kind, Kind::Operator | Kind::Annotation | Kind::Runtime | Kind::Driver)
            || is_on_device(events, row, kind)
    };
    let number = |(row, kind): (u32, &Kind)| {
        let value = if joins(row, *kind) { external.value(row) } else { None };
        if let Some(Value::I64(number)) = value { number } else { 0 }
    };
    (0..).zip(&events.kinds).map(number).collect()
}

fn is_on_device(events: &Events, row: u32, kind: Kind) -> bool {
    events.on_device(row) || matches!(kind, Kind::DeviceAnnotation | Kind::Sync)
}
