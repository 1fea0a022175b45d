//! The call tree of the plugin: operators, steps, modules, data loaders and optimizers by thread,
//! and whose the work of devices is.
//!
//! It is not [`Calls`](crate::model::Calls): only some events are nodes, a node that only begins in
//! another is lost, an operator's only child of its name is the operator itself, and calls of the
//! runtime belong to who has their `External id`.

use hashbrown::{HashMap, HashSet};
use kymograph_converters::order::Order as _;

use super::{
    External, Plugin, interval, is_collective, is_data_loader, is_eligible, uses_tensor_cores,
};
use crate::model::{Kind, Model};

/// What nodes did; times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) host: i64,
    pub(crate) self_host: i64,
    pub(crate) device: i64,
    pub(crate) self_device: i64,
    /// The part of device time in which tensor cores are used.
    pub(crate) tensor: i64,
    pub(crate) self_tensor: i64,
    /// Whether tensor cores could be used.
    pub(crate) eligible: bool,
}

/// What a node of the tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Operator,
    Step,
    Module,
    DataLoader,
    Optimizer,
    /// Something that only has a place in the tree.
    Other,
}

impl Role {
    /// Whether runs are compared node by node where they have such ones.
    pub(crate) fn is_landmark(self) -> bool {
        matches!(self, Role::Step | Role::Module | Role::DataLoader | Role::Optimizer)
    }
}

/// A node: an event of the host.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) row: u32,
    pub(crate) role: Role,
    pub(crate) time: (i64, i64),
    pub(crate) children: Vec<u32>,
    calls: Vec<u32>,
    /// Whether it is part of its parent, whose name it has.
    pub(crate) gone: bool,
    pub(crate) sum: Sum,
}

impl Node {
    /// Whether it counts as an operator.
    pub(crate) fn is_operator(&self, model: &Model<'_>) -> bool {
        const OTHERS: [&str; 2] = ["DataParallel.forward", "DistributedDataParallel.forward"];
        let name = model.name(self.row);
        let counts = !OTHERS.contains(&name) && !name.starts_with("Optimizer.");
        self.role == Role::Operator && !self.gone && counts
    }
}

/// A thread of the tree.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i64,
    /// Events without a caller, in the order of beginnings.
    pub(crate) roots: Vec<u32>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Thread by thread, callers before what they call.
    pub(crate) nodes: Vec<Node>,
    /// In the order in which they begin.
    pub(crate) threads: Vec<Thread>,
    /// Events of devices, and the nodes that launched them.
    launched: Vec<(u32, u32)>,
    calls: Calls,
}

impl Tree {
    pub(crate) fn of(model: &Model<'_>, plugin: Plugin) -> Tree {
        let mut nodes = Vec::new();
        let (lists, calls) = lists(model, plugin);
        let mut threads = Vec::new();
        for list in lists {
            let tid = list.first().map_or(-1, |node| model.events.lane(node.row).tid);
            threads.push(Thread { tid, roots: nest(list, &mut nodes) });
        }
        merge(model, &mut nodes);
        let launched = measure(model, plugin, &mut nodes);
        Tree { nodes, threads, launched, calls }
    }
}

/// Whose the work of devices is.
pub(crate) struct Work {
    /// The operator of each event of a device that has one, and whether it can use tensor cores.
    of: HashMap<u32, (u32, bool)>,
    calls: Calls,
}

/// Whose an event of a device is.
pub(crate) enum Owner {
    /// An operator, and whether it can use tensor cores.
    Operator(u32, bool),
    /// The root of the call tree, which counts it so many times.
    Root(u64),
}

impl Work {
    pub(crate) fn of(model: &Model<'_>, plugin: Plugin) -> Work {
        let tree = Tree::of(model, plugin);
        let operator = |(work, node): (u32, u32)| {
            let node = &tree.nodes[node as usize];
            (work, (node.row, node.sum.eligible))
        };
        Work { of: tree.launched.iter().copied().map(operator).collect(), calls: tree.calls }
    }

    /// The owner of an event of a device; `None` for what the plugin loses.
    pub(crate) fn owner(&self, model: &Model<'_>, row: u32) -> Option<Owner> {
        let number = model.events.correlations[row as usize];
        match self.of.get(&row) {
            Some((operator, eligible)) => Some(Owner::Operator(*operator, *eligible)),
            None if self.calls.of_root.contains(&number) => Some(Owner::Root(1)),
            // Each thread with steps takes what no call launched.
            None if !self.calls.all.contains(&number) && self.calls.main > 0 => {
                Some(Owner::Root(self.calls.main))
            }
            None => None,
        }
    }
}

/// Calls of the runtime, by their correlation numbers.
#[derive(Debug, Default)]
struct Calls {
    all: HashSet<i64>,
    /// Those without an `External id`, on threads that have nodes.
    of_root: HashSet<i64>,
    /// Threads that have steps.
    main: u64,
}

/// Nodes by thread, threads and nodes in the order of beginnings; calls with those that have
/// their `External id`, each with the first.
fn lists(model: &Model<'_>, plugin: Plugin) -> (Vec<Vec<Node>>, Calls) {
    let events = &model.events;
    let strings = &model.trace.strings;
    let numbers = External::of(model);
    let external = |row: u32| numbers.number(model, row);
    let module = strings.find("Python module id");
    let category = |row: u32| model.text(events.category(model.trace, row));
    let mut rows: Vec<u32> = (0..events.len() as u32).collect();
    events.sort_by_start(&mut rows);
    let mut calls: HashMap<Option<i64>, Vec<u32>> = HashMap::new();
    let mut known = Calls::default();
    let mut order: HashMap<i64, usize> = HashMap::new();
    let mut threads: Vec<Vec<Node>> = Vec::new();
    for row in rows {
        let name = model.name(row);
        let named = || match name {
            _ if name.starts_with("ProfilerStep#") => Some(Role::Step),
            _ if is_data_loader(name) => Some(Role::DataLoader),
            _ if name.starts_with("Optimizer.step") => Some(Role::Optimizer),
            _ => None,
        };
        let role = match events.kinds[row as usize] {
            Kind::Runtime => {
                if plugin == Plugin::Last || category(row).eq_ignore_ascii_case("runtime") {
                    calls.entry(external(row)).or_default().push(row);
                    known.all.insert(events.correlations[row as usize]);
                }
                continue;
            }
            Kind::Operator => named().unwrap_or(Role::Operator),
            Kind::Annotation | Kind::DeviceAnnotation => match named() {
                Some(Role::Step) => Role::Step,
                Some(role) if plugin == Plugin::Last => role,
                _ if is_collective(name) => Role::Other,
                _ => continue,
            },
            Kind::Python if model.arg(row, module).is_some() => Role::Module,
            Kind::Python if category(row).eq_ignore_ascii_case("python") => {
                named().unwrap_or(Role::Other)
            }
            _ => continue,
        };
        let thread = *order.entry(events.lane(row).tid).or_insert_with(|| {
            threads.push(Vec::new());
            threads.len() - 1
        });
        let time = interval(Some(plugin), events.interval(row));
        let sum = Sum::default();
        let (children, calls) = (Vec::new(), Vec::new());
        threads[thread].push(Node { row, role, time, children, calls, gone: false, sum });
    }
    for node in threads.iter_mut().flatten() {
        // What has no number takes the calls that have none.
        let id = external(node.row).filter(|_| node.role != Role::Module);
        if id != Some(0) {
            node.calls = calls.remove(&id).unwrap_or_default();
        }
    }
    for row in calls.remove(&Some(0)).into_iter().flatten() {
        if order.contains_key(&events.lane(row).tid) {
            known.of_root.insert(events.correlations[row as usize]);
        }
    }
    let is_step = |node: &Node| node.role == Role::Step;
    known.main = threads.iter().filter(|thread| thread.iter().any(is_step)).count() as u64;
    (threads, known)
}

/// An event lies in another if it begins before that ends, and ends no later; what only begins in
/// it is left out.
fn nest(mut thread: Vec<Node>, nodes: &mut Vec<Node>) -> Vec<u32> {
    let mut roots = Vec::new();
    thread.order_by_numbers(|node| [node.time.0, !node.time.1]);
    let mut open: Vec<u32> = Vec::new();
    for node in thread {
        while open.last().is_some_and(|top| node.time.0 >= nodes[*top as usize].time.1) {
            open.pop();
        }
        let number = nodes.len() as u32;
        if let Some(top) = open.last() {
            let around = &mut nodes[*top as usize];
            if node.time.1 > around.time.1 {
                continue;
            }
            around.children.push(number);
        } else {
            roots.push(number);
        }
        open.push(number);
        nodes.push(node);
    }
    roots
}

/// An operator's only child of its name is the operator itself.
fn merge(model: &Model<'_>, nodes: &mut [Node]) {
    for at in 0..nodes.len() {
        while let [child] = nodes[at].children[..] {
            let child = child as usize;
            let name = |node: &Node| model.events.names[node.row as usize];
            let operators = nodes[at].role == Role::Operator && nodes[child].role == Role::Operator;
            if nodes[at].gone || !operators || name(&nodes[at]) != name(&nodes[child]) {
                break;
            }
            nodes[child].gone = true;
            nodes[at].children = std::mem::take(&mut nodes[child].children);
            nodes[at].calls = std::mem::take(&mut nodes[child].calls);
        }
    }
}

/// Times of nodes, those of children first. Gives back the node of each event of a device.
fn measure(model: &Model<'_>, plugin: Plugin, nodes: &mut [Node]) -> Vec<(u32, u32)> {
    let mut launched = Vec::new();
    let events = &model.events;
    let mut work: HashMap<i64, Vec<u32>> = HashMap::new();
    for row in model.device().iter().copied() {
        let number = events.correlations[row as usize];
        let counts = matches!(events.kinds[row as usize], Kind::Kernel | Kind::Copy | Kind::Set);
        if number != -1 && counts {
            work.entry(number).or_default().push(row);
        }
    }
    let time = |row: u32| {
        let (start, end) = interval(Some(plugin), events.interval(row));
        end - start
    };
    let mut taken: HashSet<i64> = HashSet::new();
    for at in (0..nodes.len()).rev() {
        let mut sum = Sum { host: nodes[at].time.1 - nodes[at].time.0, ..Sum::default() };
        sum.self_host = sum.host;
        for call in &nodes[at].calls {
            sum.self_host -= time(*call);
            let number = events.correlations[*call as usize];
            if number == -1 || !taken.insert(number) {
                continue;
            }
            for row in work.get(&number).into_iter().flatten() {
                launched.push((*row, at as u32));
                sum.self_device += time(*row);
                let tensor = events.kinds[*row as usize] == Kind::Kernel
                    && uses_tensor_cores(model.name(*row));
                sum.self_tensor += if tensor { time(*row) } else { 0 };
            }
        }
        (sum.device, sum.tensor) = (sum.self_device, sum.self_tensor);
        let name = model.name(nodes[at].row);
        sum.eligible = is_eligible(name);
        for child in &nodes[at].children {
            let below = &nodes[*child as usize].sum;
            sum.self_host -= below.host;
            sum.device += below.device;
            sum.tensor += below.tensor;
            sum.eligible |= below.eligible;
        }
        nodes[at].sum = sum;
    }
    launched
}
