//! Where the time of a model goes, by module (`torch.nn.Module`): what PyTorch's profiler records
//! with `with_stack=True` or `with_modules=True`.
//!
//! A row is a module in its place in the hierarchy, callers before what they call. Its host time
//! is how long its calls took; its own is without that of modules and operators that it calls
//! directly; its device time is that of the work launched in it, and its own that of work
//! launched in operators that it calls directly, not in other modules. A module's backward pass
//! is run by operators outside of it, and does not count.
//!
//! `--compat tensorboard` has the module view of the TensorBoard plugin: the hierarchy is that of
//! `Python parent id`, modules of one name and number count as one wherever they are called, work
//! is that of calls that have the `External id` of an operator, and modules without a caller are
//! in the order of names.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hashbrown::{HashMap, HashSet};

use crate::compat::tensorboard::{Plugin, Role, Tree};
use crate::metric::one_by_one;
use crate::model::{Kind, Model, NONE};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "modules",
    answers: "how long each module of a model takes, on the host and on devices",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("module", "the module"),
    Column::int("module_id", "its number among the modules of its kind; null if not known"),
    Column::text("path", "it and the modules around it, the outermost first, with ` > ` between"),
    Column::int("depth", "how many modules are around it"),
    Column::int("occurrences", "how often it was called"),
    Column::int("operators", "how many operators it called directly"),
    Column::duration("host_duration", "how long its calls took"),
    Column::duration("self_host_duration", "that without modules and operators that it called"),
    Column::duration("device_duration", "how long the work took that was launched in it"),
    Column::duration("self_device_duration", "that of operators that it called directly"),
    Column::mean_duration("avg_duration", "a call on devices in the mean, or on the host if 0"),
];

/// What a module did.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: i64,
    operators: i64,
    host: i64,
    self_host: i64,
    device: i64,
    self_device: i64,
}

/// A module in its place.
struct Place {
    name: String,
    id: Option<i64>,
    children: Vec<Place>,
    sum: Sum,
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let places = match options.tensorboard {
        None => exact(model),
        Some(plugin) => of_plugin(model, plugin),
    };
    if places.is_empty() {
        return Err(Error::Nothing(format!(
            "rank {} has no modules: torch.profiler records them with with_stack=True or \
             with_modules=True",
            model.rank
        )));
    }
    let mut rows = Rows::new(COLUMNS);
    let mut open: Vec<(Place, String, i64)> =
        places.into_iter().rev().map(|place| (place, String::new(), 0)).collect();
    while let Some((place, above, depth)) = open.pop() {
        let (name, sum) = (place.name.trim_start_matches("nn.Module: "), place.sum);
        let path = if above.is_empty() { name.to_owned() } else { format!("{above} > {name}") };
        let mean = if sum.device > 0 { sum.device } else { sum.host } as f64 / sum.calls as f64;
        rows.push([
            model.rank.into(),
            name.into(),
            place.id.into(),
            path.as_str().into(),
            depth.into(),
            sum.calls.into(),
            sum.operators.into(),
            sum.host.into(),
            sum.self_host.into(),
            sum.device.into(),
            sum.self_device.into(),
            mean.into(),
        ]);
        let below = place.children.into_iter().rev();
        open.extend(below.map(|child| (child, path.clone(), depth + 1)));
    }
    rows.finish()
}

fn exact(model: &Model<'_>) -> Vec<Place> {
    if !model.events.kinds.contains(&Kind::Python) {
        return Vec::new();
    }
    let (events, calls) = (&model.events, model.calls());
    let id = model.argument("Python module id");
    let mut named = model.names_that(|name| name.starts_with("nn.Module: "));
    let modules: Vec<bool> = (0..events.len() as u32)
        .map(|row| {
            events.kinds[row as usize] == Kind::Python && (named(row) || id.value(row).is_some())
        })
        .collect();
    let is_module = |row: u32| modules[row as usize];
    let is_operator = |row: u32| events.kinds[row as usize] == Kind::Operator;
    // Places by the place around them, the name and the number.
    let mut known: HashMap<(u32, &str, Option<i64>), u32> = HashMap::new();
    let mut places: Vec<(u32, Place)> = Vec::new();
    let mut of = vec![NONE; events.len()];
    // The innermost module or operator around each.
    let mut around = vec![NONE; events.len()];
    for row in calls.order.iter().copied() {
        let (at, time) = (row as usize, events.durs[row as usize]);
        let caller = calls.parent(row);
        let counts = |caller: u32| is_operator(caller) || is_module(caller);
        around[at] = caller.map_or(NONE, |caller| match counts(caller) {
            true => caller,
            false => around[caller as usize],
        });
        let module = caller.map_or(NONE, |caller| of[caller as usize]);
        of[at] = module;
        if !is_module(row) && !is_operator(row) {
            continue;
        }
        if around[at] != NONE && is_module(around[at]) {
            let above = &mut places[of[around[at] as usize] as usize].1.sum;
            above.self_host -= time;
            above.operators += i64::from(is_operator(row));
        }
        if is_module(row) {
            let (name, id) = (model.name(row), id.int(row));
            let place = *known.entry((module, name, id)).or_insert_with(|| {
                let (children, sum) = (Vec::new(), Sum::default());
                places.push((module, Place { name: name.to_owned(), id, children, sum }));
                places.len() as u32 - 1
            });
            of[at] = place;
            let sum = &mut places[place as usize].1.sum;
            (sum.calls, sum.host) = (sum.calls + 1, sum.host + time);
            sum.self_host += time;
        }
    }
    for work in model.device().iter().copied() {
        if !events.kinds[work as usize].is_work() {
            continue;
        }
        let call = model.owners().get(work).or_else(|| model.peers().get(work));
        let Some(mut place) = call.map(|call| of[call as usize]) else { continue };
        if let Some((_, own)) = places.get_mut(place as usize) {
            own.sum.self_device += events.durs[work as usize];
        }
        while let Some((above, own)) = places.get_mut(place as usize) {
            own.sum.device += events.durs[work as usize];
            place = *above;
        }
    }
    // Callers have lower numbers than what they call.
    let mut roots = Vec::new();
    let mut below: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
    for (number, (above, mut place)) in places.into_iter().enumerate().rev() {
        place.children = below.remove(&(number as u32)).unwrap_or_default();
        place.children.reverse();
        match above {
            NONE => roots.push(place),
            above => below.entry(above).or_default().push(place),
        }
    }
    roots.reverse();
    roots
}

fn of_plugin(model: &Model<'_>, plugin: Plugin) -> Vec<Place> {
    let tree = Tree::of(model, plugin);
    let id = model.trace.strings.find("Python module id");
    let mut sums: HashMap<(&str, Option<i64>), Sum> = HashMap::new();
    for node in tree.nodes.iter().filter(|node| node.role == Role::Module && !node.gone) {
        let sum = sums.entry((model.name(node.row), model.int(node.row, id))).or_default();
        sum.calls += 1;
        sum.host += node.sum.host;
        sum.self_host += node.sum.self_host;
        sum.device += node.sum.device;
        sum.self_device += node.sum.self_device;
        let children = node.children.iter().map(|child| &tree.nodes[*child as usize]);
        for child in children.filter(|child| child.is_operator(model)) {
            sum.operators += 1;
            sum.self_device += child.sum.device;
        }
    }
    hierarchy(model, &sums)
}

/// Modules by `Python id` and `Python parent id`: each hierarchy once, by name.
fn hierarchy(model: &Model<'_>, sums: &HashMap<(&str, Option<i64>), Sum>) -> Vec<Place> {
    let find = |name| model.trace.strings.find(name);
    let (id, parent, module) =
        (find("Python id"), find("Python parent id"), find("Python module id"));
    let events = &model.events;
    let is_python = |row: &u32| {
        let category = model.text(events.category(model.trace, *row));
        category.eq_ignore_ascii_case("python_function")
    };
    let mut functions: Vec<u32> = (0..events.len() as u32).filter(is_python).collect();
    events.sort_by_start(&mut functions);
    let by_id: HashMap<i64, u32> =
        functions.iter().filter_map(|row| Some((model.int(*row, id)?, *row))).collect();
    let callers: HashSet<i64> =
        functions.iter().filter_map(|row| model.int(*row, parent)).collect();
    // The module around each, in the order in which a walk from the leaves up finds them.
    let mut around: HashMap<u32, Option<u32>> = HashMap::new();
    let mut order: Vec<u32> = Vec::new();
    let mut seen: HashSet<(u32, Option<u32>)> = HashSet::new();
    let is_leaf = |row: &&u32| model.int(**row, id).is_some_and(|id| !callers.contains(&id));
    for leaf in functions.iter().filter(is_leaf) {
        let mut inner = None;
        let mut next = Some(*leaf);
        while let Some(row) = next {
            if model.arg(row, module).is_some() {
                if let Some(inner) = inner {
                    around.insert(inner, Some(row));
                }
                inner = Some(row);
                around.entry(row).or_insert_with(|| {
                    order.push(row);
                    None
                });
            }
            if !seen.insert((row, inner)) {
                break;
            }
            next = model.int(row, parent).and_then(|id| by_id.get(&id).copied());
        }
    }
    let mut below: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in &order {
        if let Some(Some(around)) = around.get(row) {
            below.entry(*around).or_default().push(*row);
        }
    }
    let place = |row: u32| Walk { model, below: &below, sums, module }.place(row, 0);
    let mut known = HashSet::new();
    let roots = order.iter().filter(|row| around.get(*row) == Some(&None));
    let mut roots: Vec<(String, Place)> = roots.map(|row| place(*row)).collect();
    roots.retain(|(key, _)| known.insert(key.clone()));
    let mut roots: Vec<Place> = roots.into_iter().map(|(_, place)| place).collect();
    // The plugin has those of one name in no order: the largest come first.
    roots.sort_by_cached_key(|place| {
        (place.name.replace("nn.Module: ", ""), std::cmp::Reverse(place.size()))
    });
    roots
}

impl Place {
    /// How many modules it is with those below it.
    fn size(&self) -> usize {
        1 + self.children.iter().map(Place::size).sum::<usize>()
    }
}

struct Walk<'a, 'b> {
    model: &'b Model<'a>,
    below: &'b HashMap<u32, Vec<u32>>,
    sums: &'b HashMap<(&'a str, Option<i64>), Sum>,
    module: Option<kymograph_converters::trace::StrId>,
}

/// Modules within each other beyond which a hierarchy is cut: the trace is broken.
const DEEPEST: usize = 500;

impl Walk<'_, '_> {
    /// A module with those below it, and a text that only equal ones have.
    fn place(&self, row: u32, depth: usize) -> (String, Place) {
        let name = self.model.name(row);
        let id = self.model.int(row, self.module);
        let mut key = format!("{name}\u{1}{id:?}(");
        let mut children = Vec::new();
        let below = self.below.get(&row).filter(|_| depth < DEEPEST);
        for child in below.into_iter().flatten() {
            let (own, child) = self.place(*child, depth + 1);
            key += &own;
            children.push(child);
        }
        let sum = self.sums.get(&(name, id)).copied().unwrap_or_default();
        (key + ")", Place { name: name.to_owned(), id, children, sum })
    }
}
