//! What allocations are for, as far as a trace shows: where each was made, and until when it is held.

use super::records::Record;
use crate::metric::idle_causes::loads_data;
use crate::model::{Model, chains};

/// What an allocation is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Category {
    BeforeTrace,
    Parameter,
    OptimizerState,
    Input,
    Activation,
    Gradient,
    Temporary,
    Other,
}

impl Category {
    pub(super) const ALL: [Category; 8] = [
        Category::BeforeTrace,
        Category::Parameter,
        Category::OptimizerState,
        Category::Input,
        Category::Activation,
        Category::Gradient,
        Category::Temporary,
        Category::Other,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Category::BeforeTrace => "before_trace",
            Category::Parameter => "parameter",
            Category::OptimizerState => "optimizer_state",
            Category::Input => "input",
            Category::Activation => "activation",
            Category::Gradient => "gradient",
            Category::Temporary => "temporary",
            Category::Other => "other",
        }
    }
}

/// The part of a training step that an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Loader,
    Optimizer,
    Backward,
}

/// What the name of an event says.
fn phase_of(name: &str) -> Option<Phase> {
    let plain = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    if name.starts_with("autograd::engine::evaluate_function")
        || name == "torch::autograd::AccumulateGrad"
        || plain.ends_with("Backward")
    {
        Some(Phase::Backward)
    } else if name.starts_with("Optimizer.step#")
        || name.starts_with("Optimizer.zero_grad#")
        || name.contains("torch/optim/") && name.ends_with(": step")
    {
        Some(Phase::Optimizer)
    } else if loads_data(name) {
        Some(Phase::Loader)
    } else {
        None
    }
}

/// When the parts of training steps begin and end.
pub(super) struct Phases {
    /// For each record, the innermost part of a step around it, and when that ends.
    around: Vec<Option<(Phase, i64)>>,
    /// Backward passes: the first beginning and the last end of nodes with neither a step nor a call
    /// of the optimizer beginning between them.
    passes: Vec<(i64, i64)>,
}

impl Phases {
    pub(super) fn of(model: &Model<'_>, records: &[Record]) -> Phases {
        let events = &model.events;
        let mut any = model.names_that(|name| phase_of(name).is_some());
        let mut nodes = Vec::new();
        let mut edges: Vec<i64> =
            model.steps().all.iter().map(|step| events.starts[step.row as usize]).collect();
        let mut threads = hashbrown::HashMap::new();
        for thread in &model.calls().threads {
            let rows = model.calls().order[thread.rows.clone()].iter().copied();
            let rows: Vec<u32> = rows.filter(|row| any(*row)).collect();
            for row in &rows {
                match phase_of(model.name(*row)) {
                    Some(Phase::Backward) => nodes.push(events.interval(*row)),
                    Some(Phase::Optimizer) => edges.push(events.starts[*row as usize]),
                    _ => {}
                }
            }
            let outer = chains(events, &rows);
            threads.insert((thread.pid, thread.tid), (rows, outer));
        }
        edges.sort_unstable();
        let around = records.iter().map(|record| {
            let (rows, outer) = threads.get(&record.thread)?;
            let before = rows.partition_point(|row| events.starts[*row as usize] <= record.time);
            let places = std::iter::successors(before.checked_sub(1), |place| {
                Some(outer[*place]).filter(|place| *place != usize::MAX)
            });
            let mut lasting =
                places.map(|at| rows[at]).filter(|row| events.end(*row) > record.time);
            let row = lasting.next()?;
            Some((phase_of(model.name(row))?, events.end(row)))
        });
        Phases { around: around.collect(), passes: passes(nodes, &edges) }
    }

    /// What the allocation of a record is for, which is released at some time, or not in the trace.
    pub(super) fn category(&self, record: usize, time: i64, released: Option<i64>) -> Category {
        let held = |until: i64| released.is_none_or(|released| released > until);
        let (kept, next) = match self.around[record] {
            Some((Phase::Loader, _)) => return Category::Input,
            Some((Phase::Optimizer, end)) => (Category::OptimizerState, end),
            Some((Phase::Backward, end)) => {
                let pass = self.passes.partition_point(|(start, _)| *start <= time);
                let end = pass.checked_sub(1).map_or(end, |pass| self.passes[pass].1.max(end));
                (Category::Gradient, end)
            }
            None => {
                let next = self.passes.partition_point(|(start, _)| *start < time);
                match self.passes[next..] {
                    [_, (second, _), ..] if held(second) => return Category::Parameter,
                    [(first, _), ..] if held(first) => return Category::Activation,
                    _ if released.is_none() => return Category::Other,
                    _ => return Category::Temporary,
                }
            }
        };
        if held(next) { kept } else { Category::Temporary }
    }
}

fn passes(mut nodes: Vec<(i64, i64)>, edges: &[i64]) -> Vec<(i64, i64)> {
    nodes.sort_unstable();
    let mut passes: Vec<(i64, i64)> = Vec::new();
    let mut before = i64::MIN;
    for (start, end) in nodes {
        let edges_before = |time: i64| edges.partition_point(|edge| *edge <= time);
        match passes.last_mut() {
            Some(pass) if edges_before(before) == edges_before(start) => pass.1 = pass.1.max(end),
            _ => passes.push((start, end)),
        }
        before = start;
    }
    passes
}
