//! Operators as the TensorBoard plugin has them: its tree, and whose the device work is.

use hashbrown::{HashMap, HashSet};

use crate::compat::tensorboard::{self, Plugin, is_collective, uses_tensor_cores};
use crate::model::{Kind, Model};

/// What operators of one name did; times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    pub(super) calls: u64,
    pub(super) host: i64,
    pub(super) self_host: i64,
    pub(super) device: i64,
    pub(super) self_device: i64,
    /// The part of device time in which tensor cores are used.
    pub(super) tensor: i64,
    pub(super) self_tensor: i64,
    /// Whether tensor cores could be used.
    pub(super) eligible: bool,
}

/// What a node of the tree is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Operator,
    /// Something that only has a place in the tree.
    Other,
}

struct Node {
    row: u32,
    role: Role,
    time: (i64, i64),
    children: Vec<u32>,
    calls: Vec<u32>,
    gone: bool,
    sum: Sum,
}

/// Rows in the plugin's order: by name, and by shapes if those tell operators apart.
pub(super) fn operators(
    model: &Model<'_>,
    plugin: Plugin,
    shapes: bool,
) -> Vec<((String, Option<String>), Sum)> {
    let nodes = tree(model, plugin).0;
    let mut places: HashMap<(u32, Option<String>), usize> = HashMap::new();
    let mut sums: Vec<((String, Option<String>), Sum)> = Vec::new();
    let dims = model.trace.strings.find("Input Dims");
    for node in nodes.iter().filter(|node| !node.gone && node.role == Role::Operator) {
        let name = model.name(node.row);
        if is_left_out(name) {
            continue;
        }
        let shape = shapes.then(|| {
            model.arg(node.row, dims).map_or("[]".to_owned(), |dims| model.trace.json(dims))
        });
        let key = (model.events.names[node.row as usize].0, shape.clone());
        let place = *places.entry(key).or_insert_with(|| {
            // The first call of a name says whether all of them can use tensor cores.
            let sum = Sum { eligible: node.sum.eligible, ..Sum::default() };
            sums.push(((name.to_owned(), shape), sum));
            sums.len() - 1
        });
        let (sum, own) = (&mut sums[place].1, &node.sum);
        sum.calls += 1;
        sum.host += own.host;
        sum.self_host += own.self_host;
        sum.device += own.device;
        sum.self_device += own.self_device;
        sum.tensor += own.tensor;
        sum.self_tensor += own.self_tensor;
    }
    let on_device = sums.iter().any(|(_, sum)| sum.device > 0);
    sums.sort_by_key(|(_, s)| -if on_device { s.self_device } else { s.self_host });
    sums
}

/// Whose the work of devices is.
pub(in crate::metric) struct Work {
    /// The operator of each event of a device that has one, and whether it can use tensor cores.
    of: HashMap<u32, (u32, bool)>,
    calls: Calls,
}

/// Whose an event of a device is.
pub(in crate::metric) enum Owner {
    /// An operator, and whether it can use tensor cores.
    Operator(u32, bool),
    /// The root of the call tree, which counts it so many times.
    Root(u64),
}

impl Work {
    pub(in crate::metric) fn of(model: &Model<'_>, plugin: Plugin) -> Work {
        let (nodes, of, calls) = tree(model, plugin);
        let operator = |(work, node): (u32, u32)| {
            let node = &nodes[node as usize];
            (work, (node.row, node.sum.eligible))
        };
        Work { of: of.into_iter().map(operator).collect(), calls }
    }

    /// The owner of an event of a device; `None` for what the plugin loses.
    pub(in crate::metric) fn owner(&self, model: &Model<'_>, row: u32) -> Option<Owner> {
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
#[derive(Default)]
struct Calls {
    all: HashSet<i64>,
    /// Those without an `External id`, on threads that have nodes.
    of_root: HashSet<i64>,
    /// Threads that have steps.
    main: u64,
}

/// All nodes, the node that launched each event of a device, and the calls.
fn tree(model: &Model<'_>, plugin: Plugin) -> (Vec<Node>, Vec<(u32, u32)>, Calls) {
    let mut nodes = Vec::new();
    let (threads, calls) = threads(model, plugin);
    for thread in threads {
        nest(thread, &mut nodes);
    }
    merge(model, &mut nodes);
    let work = measure(model, plugin, &mut nodes);
    (nodes, work, calls)
}

fn is_left_out(name: &str) -> bool {
    const OTHERS: [&str; 6] = [
        "DataParallel.forward",
        "DistributedDataParallel.forward",
        "Optimizer.",
        "enumerate(DataLoader)",
        "enumerate(DataPipe)",
        "ProfilerStep",
    ];
    OTHERS.iter().any(|start| name.starts_with(start))
}

/// Nodes by thread, threads and nodes in the order of beginnings; calls with those that have
/// their `External id`, each with the first.
fn threads(model: &Model<'_>, plugin: Plugin) -> (Vec<Vec<Node>>, Calls) {
    let events = &model.events;
    let strings = &model.trace.strings;
    let names = ["External id", "external id"].map(|name| strings.find(name));
    let external = |row: u32| names.iter().find_map(|name| model.int(row, *name));
    let module = strings.find("Python module id");
    let category = |row: u32| model.text(events.category(model.trace, row));
    let mut rows: Vec<u32> = (0..events.len() as u32).collect();
    rows.sort_by_key(|row| events.starts[*row as usize]);
    let mut calls: HashMap<i64, Vec<u32>> = HashMap::new();
    let mut known = Calls::default();
    let mut order: HashMap<i64, usize> = HashMap::new();
    let mut threads: Vec<Vec<Node>> = Vec::new();
    for row in rows {
        let name = model.name(row);
        let special = || {
            name.starts_with("enumerate(Data")
                || name.starts_with("Optimizer.step")
                || name.starts_with("ProfilerStep#")
                || is_collective(name)
        };
        let role = match events.kinds[row as usize] {
            Kind::Runtime => {
                if plugin == Plugin::Last || category(row).eq_ignore_ascii_case("runtime") {
                    let id = external(row).unwrap_or(0);
                    calls.entry(id).or_default().push(row);
                    known.all.insert(events.correlations[row as usize]);
                }
                continue;
            }
            Kind::Operator if special() => Role::Other,
            Kind::Operator => Role::Operator,
            Kind::Annotation | Kind::DeviceAnnotation if special() => Role::Other,
            Kind::Python if model.arg(row, module).is_some() => Role::Other,
            Kind::Python if category(row).eq_ignore_ascii_case("python") => Role::Other,
            _ => continue,
        };
        let thread = *order.entry(events.lane(row).tid).or_insert_with(|| {
            threads.push(Vec::new());
            threads.len() - 1
        });
        let time = tensorboard::interval(Some(plugin), events.interval(row));
        let sum = Sum::default();
        let (children, calls) = (Vec::new(), Vec::new());
        threads[thread].push(Node { row, role, time, children, calls, gone: false, sum });
    }
    for node in threads.iter_mut().flatten() {
        let id = external(node.row).filter(|id| *id != 0);
        node.calls = id.and_then(|id| calls.remove(&id)).unwrap_or_default();
    }
    for row in calls.remove(&0).into_iter().flatten() {
        if order.contains_key(&events.lane(row).tid) {
            known.of_root.insert(events.correlations[row as usize]);
        }
    }
    let is_step = |node: &Node| model.name(node.row).starts_with("ProfilerStep#");
    known.main = threads.iter().filter(|thread| thread.iter().any(is_step)).count() as u64;
    (threads, known)
}

/// An event lies in another if it begins before that ends, and ends no later; what only begins in
/// it is left out.
fn nest(mut thread: Vec<Node>, nodes: &mut Vec<Node>) {
    thread.sort_by_key(|node| (node.time.0, -node.time.1));
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
        }
        open.push(number);
        nodes.push(node);
    }
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
        let (start, end) = tensorboard::interval(Some(plugin), events.interval(row));
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

/// Operators that the plugin knows to be able to use tensor cores.
fn is_eligible(name: &str) -> bool {
    const OPERATORS: [&str; 34] = [
        "_convolution",
        "_convolution_nogroup",
        "_convolution_double_backward",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_tbc",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "convolution",
        "cudnn_convolution",
        "cudnn_convolution_transpose",
        "cudnn_convolution_backward",
        "cudnn_convolution_backward_input",
        "cudnn_convolution_backward_weight",
        "prelu",
        "addmm",
        "addmv",
        "addr",
        "matmul",
        "mm",
        "mv",
        "linear",
        "addbmm",
        "baddbmm",
        "bmm",
        "chain_matmul",
        "linalg_multi_dot",
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
    ];
    name.strip_prefix("aten::")
        .is_some_and(|name| OPERATORS.contains(&name) || name == "rnn_relu_cell")
}
