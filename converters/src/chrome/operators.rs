//! Operators of PyTorch in our own recordings, numbered as Kineto numbers them.
//!
//! Kineto gives each operator a number, `External id`, and says it again with the calls, kernels
//! and copies that the operator is innermost around. In a recording this follows from where slices
//! lie, and costs it nothing; files of Kineto's have it in the arguments.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::own::Out;
use super::steps::{self, STEP};
use crate::json::{write_int, write_uint};
use crate::trace::{ArgsId, EventRef, Slice, SliceId, StrId, Trace, Value};

/// The categories that have numbers: operators, and annotations.
const OPERATOR: &str = "cpu_op";
const ANNOTATION: &str = "user_annotation";
/// The category of calls of Python, which have numbers of their own, and their caller's.
const PYTHON: &str = "python_function";

/// What the name of a module's call begins with; its class and its number follow.
const MODULE: &str = "nn.Module: ";

/// What the autograd engine's call of a node is called; the name of the node follows.
const EVALUATE: &str = "autograd::engine::evaluate_function: ";

/// The operator that stands for a collective, and what Kineto says of it with its kernels, too.
const COLLECTIVE: &str = "record_param_comms";
const COLLECTIVE_ARGS: [&str; 13] = [
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "dtype",
    "In split size",
    "Out split size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Dst Rank",
    "Src Rank",
    "Seq",
];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Operators {
    /// By slices: the number of its own, or of the operator around it; 0: none.
    numbers: Vec<u32>,
    /// Numbers of operators by the correlation number of what they launched.
    launches: HashMap<u64, u32>,
    /// Calls of nodes by the autograd engine: the number and the thread of the node inside.
    evaluated: HashMap<SliceId, (Value, Value)>,
    /// Arguments of collectives, by the number of the operator; and those that kernels have, too.
    collectives: HashMap<u32, ArgsId>,
    collective: Option<StrId>,
    of_kernels: Vec<StrId>,
    /// Our steps, where they are to be written, and their category.
    steps: HashMap<SliceId, Slice>,
    step: Option<StrId>,
    /// Callers of calls of Python, and their category.
    callers: HashMap<SliceId, u32>,
    python: Option<StrId>,
    categories: [Option<StrId>; 2],
    sequence: Option<StrId>,
    forward: Option<StrId>,
}

impl Operators {
    /// Of a trace; none if it is not our own recording, or has none. `steps`: those that we count
    /// are annotations, too.
    pub(crate) fn new(trace: &Trace, steps: bool) -> Option<Operators> {
        let find = |name| trace.strings.find(name);
        let categories = [find(OPERATOR), find(ANNOTATION)];
        let step = find(STEP).filter(|_| steps);
        let python = find(PYTHON);
        if !trace.is_own() || [step, python, categories[0], categories[1]] == [None; 4] {
            return None;
        }
        let mut operators = Operators {
            numbers: vec![0; trace.slices.len()],
            launches: HashMap::new(),
            evaluated: HashMap::new(),
            collectives: HashMap::new(),
            collective: find(COLLECTIVE),
            of_kernels: COLLECTIVE_ARGS.iter().filter_map(|name| find(name)).collect(),
            steps: if step.is_some() { steps::place(trace) } else { HashMap::new() },
            step,
            callers: HashMap::new(),
            python,
            categories,
            sequence: find("Sequence number"),
            forward: find("Fwd thread id"),
        };
        operators.number(trace);
        for link in &trace.flows.links {
            if let EventRef::Slice(id) = link.event
                && let Some(number) = operators.numbers.get(id.index()).filter(|n| **n != 0)
            {
                operators.launches.insert(link.correlation, *number);
            }
        }
        Some(operators)
    }

    fn number(&mut self, trace: &Trace) {
        let mut order: Vec<SliceId> = trace.slices.ids().collect();
        order.sort_by_cached_key(|id| {
            let slice = trace.slices.get(*id);
            (slice.track.index(), slice.start, Reverse(slice.end().map_or(i64::MAX, |end| end.0)))
        });
        // Ends, numbers and slices of the operators that are open.
        let mut open: Vec<(i64, u32, SliceId)> = Vec::new();
        let mut calls: Vec<(i64, u32)> = Vec::new();
        let (mut track, mut last, mut last_call) = (None, 0, 0);
        for id in order {
            let slice = trace.slices.get(id);
            if track.replace(slice.track) != Some(slice.track) {
                open.clear();
                calls.clear();
            }
            if Some(slice.category) == self.python {
                while calls.last().is_some_and(|(end, _)| *end <= slice.start.0) {
                    calls.pop();
                }
                last_call += 1;
                self.numbers[id.index()] = last_call;
                self.callers.extend(calls.last().map(|(_, caller)| (id, *caller)));
                calls.push((slice.end().map_or(i64::MAX, |end| end.0), last_call));
                continue;
            }
            while open.last().is_some_and(|(end, ..)| *end <= slice.start.0) {
                open.pop();
            }
            let around = open.last().map_or(0, |(_, number, _)| *number);
            let number = if self.has_number(id, slice.category) {
                last += 1;
                last
            } else {
                around
            };
            if Some(slice.name) == self.collective
                && let Some(args) = slice.args
            {
                self.collectives.insert(number, args);
            }
            if Some(slice.category) == self.categories[0] {
                self.inherit(trace, open.last().map(|(.., around)| *around), slice.args);
                open.push((slice.end().map_or(i64::MAX, |end| end.0), number, id));
            }
            self.numbers[id.index()] = number;
        }
    }

    /// The engine's call of a node has the number and the thread of the node, as Kineto says it.
    fn inherit(&mut self, trace: &Trace, around: Option<SliceId>, args: Option<ArgsId>) {
        let find = |name: Option<StrId>| trace.args.find(args, name?);
        if let Some(around) = around
            && let (Some(sequence), Some(forward)) = (find(self.sequence), find(self.forward))
            && trace.strings.get(trace.slices.get(around).name).starts_with(EVALUATE)
        {
            self.evaluated.entry(around).or_insert((sequence, forward));
        }
    }

    fn has_number(&self, id: SliceId, category: StrId) -> bool {
        self.categories.contains(&Some(category))
            || Some(category) == self.step && self.steps.contains_key(&id)
    }

    /// A step of ours, as the slice and of the category that it is written as.
    pub(crate) fn step(&self, id: SliceId) -> Option<(Slice, &'static str)> {
        self.steps.get(&id).map(|slice| (*slice, ANNOTATION))
    }

    /// The operator around the launch of an activity.
    pub(crate) fn of_launch(&self, correlation: u64) -> Option<u32> {
        self.launches.get(&correlation).copied()
    }

    /// What is said of a collective with the kernels that this operator launched.
    pub(crate) fn collective<'t>(
        &'t self,
        trace: &'t Trace,
        number: u32,
    ) -> impl Iterator<Item = (StrId, Value)> + 't {
        let args = self.collectives.get(&number).copied();
        let all = self.of_kernels.iter();
        all.filter_map(move |name| Some((*name, trace.args.find(Some(args?), *name)?)))
    }

    /// Writes what Kineto says first of a slice.
    pub(crate) fn slice(
        &self,
        trace: &Trace,
        (id, category, args): (SliceId, StrId, Option<ArgsId>),
        out: &mut Out<'_>,
    ) {
        let number = self.numbers.get(id.index()).copied().unwrap_or(0);
        if number == 0 {
            return;
        }
        if Some(category) == self.python {
            let caller = self.callers.get(&id);
            out.put("Python parent id", |to| match caller {
                Some(caller) => write_uint(to, (*caller).into()),
                None => to.extend_from_slice(b"null"),
            });
            out.put("Python id", |to| write_uint(to, number.into()));
            let name = trace.strings.get(trace.slices.get(id).name);
            if let Some(module) = module_number(name) {
                out.put("Python module id", |to| write_uint(to, module));
            }
            return;
        }
        out.put("External id", |to| write_uint(to, number.into()));
        if !self.has_number(id, category) {
            return;
        }
        out.put("Record function id", |to| write_uint(to, 0));
        if let Some((sequence, forward)) = self.evaluated.get(&id) {
            out.put("Sequence number", |to| write_value(to, *sequence));
            out.put("Fwd thread id", |to| write_value(to, *forward));
        }
        let has = |name: Option<StrId>| name.is_some_and(|n| trace.args.find(args, n).is_some());
        if has(self.sequence) && !has(self.forward) {
            out.put("Fwd thread id", |to| write_uint(to, 0));
        }
        out.put("Ev Idx", |to| write_uint(to, u64::from(number) - 1));
    }
}

/// Which module of its class a call is of, by its name: `nn.Module: Linear_0`.
fn module_number(name: &str) -> Option<u64> {
    let (_, number) = name.strip_prefix(MODULE)?.rsplit_once('_')?;
    number.parse().ok()
}

/// A number.
fn write_value(to: &mut Vec<u8>, value: Value) {
    match value {
        Value::U64(n) => write_uint(to, n),
        Value::I64(n) => write_int(to, n),
        _ => to.extend_from_slice(b"null"),
    }
}
