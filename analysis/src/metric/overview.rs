//! What each step's time was spent on, as the overview of the TensorBoard plugin has it.
//!
//! What happens at a moment is what comes first in the order of columns: a kernel, else a copy,
//! a fill, communication, a call of the runtime, the data loader, an operator; the rest is
//! `other`. A step lasts from its range's beginning, or the end of the step before it, to its
//! range's end or that of the work that was launched in it, whichever is later. Steps at the end
//! whose work is not in the trace are left out, as is the last one if it has a fifth less of it
//! than the one before.
//!
//! `--compat tensorboard` follows torch-tb-profiler 0.4.3, which knows no calls of the runtime
//! since PyTorch 1.12, and takes the annotation of a collective on the host for communication and
//! its kernel for a kernel; `--compat tensorboard-last` what the plugin was when it was given up,
//! which knows calls. The exact reading takes communication from devices. Without steps the
//! whole trace is step 0.

use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::HashSet;

use crate::compat::tensorboard::{self, External, Plugin, is_collective, is_data_loader};
use crate::interval::{Interval, covered, intersection, merge, subtraction};
use crate::metric::one_by_one;
use crate::model::{Class, Kind, Model, NONE, Numbered};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "overview",
    answers: "what each step's time was spent on: kernels, copies, calls, the data loader",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("step", "the step, or average"),
    Column::mean_duration("kernel", "a kernel ran"),
    Column::mean_duration("memcpy", "else, a copy ran"),
    Column::mean_duration("memset", "else, a fill ran"),
    Column::mean_duration("communication", "else, devices or ranks communicated"),
    Column::mean_duration("runtime", "else, the host was in a call of the runtime or the driver"),
    Column::mean_duration("data_loader", "else, it was in a data loader"),
    Column::mean_duration("cpu_exec", "else, it was in an operator"),
    Column::mean_duration("other", "none of these"),
    Column::mean_duration("total", "the step's time"),
];

/// Kernels, copies, fills, communication, calls, data loader, operators.
const ROLES: usize = 7;

/// What an event is to the overview.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Device(u8),
    Call,
    Host(u8),
    Step,
}

/// A step as the overview has it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) start: i64,
    pub(super) end: i64,
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let steps = steps(model, options)?;
    let mut left = merge(steps.iter().map(|step| (step.start, step.end)));
    let mut costs = Vec::new();
    for of_role in merged(model, options) {
        let own = intersection(&left, &of_role);
        left = subtraction(&left, &own);
        costs.push(own);
    }
    costs.push(left);
    let mut rows = Rows::new(COLUMNS);
    let mut sums = [0.0; ROLES + 2];
    let mut put = |name: &str, t: [f64; ROLES + 2]| {
        rows.push([
            model.rank.into(),
            name.into(),
            t[0].into(),
            t[1].into(),
            t[2].into(),
            t[3].into(),
            t[4].into(),
            t[5].into(),
            t[6].into(),
            t[7].into(),
            t[8].into(),
        ]);
    };
    for step in steps.iter() {
        let mut times = [0.0; ROLES + 2];
        for (time, cost) in times.iter_mut().zip(&costs) {
            *time = covered(cost, step.start, step.end) as f64;
        }
        times[ROLES + 1] = (step.end - step.start) as f64;
        sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        put(&step.name, times);
    }
    put("average", sums.map(|sum| sum / steps.len() as f64));
    rows.finish()
}

/// When something of each role lasts.
pub(super) fn merged(model: &Model<'_>, options: &Options) -> Vec<Vec<Interval>> {
    // In the order of their beginnings, unless the plugin's rounding changes that.
    let mut times: Vec<Vec<Interval>> = vec![Vec::new(); ROLES];
    let mut latest = [i64::MIN; ROLES];
    for (row, role) in roles(model, options.tensorboard).iter().copied() {
        let at = match role {
            Role::Device(at) | Role::Host(at) => at,
            Role::Call => 4,
            Role::Step => continue,
        };
        let at = usize::from(at);
        let (start, end) = model.events.interval(row);
        if options.tensorboard.is_some() {
            times[at].push(tensorboard::interval(options.tensorboard, (start, end)));
            continue;
        }
        // As `merge` does it: most lie in the one before.
        match times[at].last_mut() {
            Some(group) if start <= latest[at] => group.1 = group.1.max(end),
            _ => times[at].push((start, end)),
        }
        latest[at] = latest[at].max(end);
    }
    if options.tensorboard.is_none() {
        return times;
    }
    let joined = |mut of_role: Vec<Interval>| {
        of_role.sort_unstable();
        merge(of_role)
    };
    times.into_iter().map(joined).collect()
}

/// What counts, in the order of beginnings.
fn roles(model: &Model<'_>, plugin: Option<Plugin>) -> Arc<Vec<(u32, Role)>> {
    model.shared(plugin, || find_roles(model, plugin))
}

fn find_roles(model: &Model<'_>, plugin: Option<Plugin>) -> Vec<(u32, Role)> {
    let events = &model.events;
    let external = External::of(model);
    let is_host = |row: u32| !events.on_device(row);
    let collective = |row: u32| is_host(row) && is_collective(model.name(row));
    // The plugin's way to tell communication kernels.
    let mut communicating: HashSet<Option<i64>> = HashSet::new();
    if plugin.is_some() {
        let rows = (0..events.len() as u32).filter(|row| collective(*row));
        communicating.extend(rows.map(|row| external.number(model, row)));
    }
    let classes = model.classes();
    let mut is_step = model.names_that(|name| name.starts_with("ProfilerStep#"));
    let mut is_data_loader = model.names_that(is_data_loader);
    let mut is_collective = model.names_that(is_collective);
    let mut role = |row: u32| -> Option<Role> {
        let kind = events.kinds[row as usize];
        let mut host = || match row {
            _ if is_data_loader(row) => 5,
            _ if plugin.is_some() && is_collective(row) => 3,
            _ => 6,
        };
        match (kind, plugin) {
            (Kind::Kernel | Kind::Communication, None) => {
                let comm = classes.of_row(model, row) == Class::Communication;
                Some(Role::Device(if comm { 3 } else { 0 }))
            }
            (Kind::Kernel, Some(_)) => {
                let comm = communicating.contains(&external.number(model, row));
                Some(Role::Device(if comm { 3 } else { 0 }))
            }
            (Kind::Copy, _) => Some(Role::Device(1)),
            (Kind::Set, _) => Some(Role::Device(2)),
            (Kind::Operator | Kind::Annotation | Kind::Step, _) if is_step(row) => Some(Role::Step),
            (Kind::DeviceAnnotation, Some(_)) if is_step(row) => Some(Role::Step),
            (Kind::Runtime, Some(Plugin::Wheel)) => {
                let category = model.text(events.category(model.trace, row));
                category.eq_ignore_ascii_case("runtime").then_some(Role::Call)
            }
            (Kind::Runtime, _) | (Kind::Driver, None) => Some(Role::Call),
            (Kind::Operator, _) => Some(Role::Host(host())),
            (Kind::Annotation | Kind::DeviceAnnotation, Some(Plugin::Wheel)) => {
                let role = Role::Host(host());
                is_collective(row).then_some(role)
            }
            (Kind::Annotation, _) | (Kind::DeviceAnnotation, Some(Plugin::Last)) => {
                Some(Role::Host(host()))
            }
            _ => None,
        }
    };
    let rows = model.by_time();
    rows.iter().copied().filter_map(|row| Some((row, role(row)?))).collect()
}

/// The steps of a trace.
pub(super) fn steps(model: &Model<'_>, options: &Options) -> Result<Arc<Vec<Step>>, Error> {
    let plugin = options.tensorboard;
    let steps = model.shared(plugin, || find_steps(model, plugin));
    if steps.is_empty() {
        return Err(Error::Nothing(format!("rank {} has no events to look at", model.rank)));
    }
    Ok(steps)
}

/// None if there is nothing that steps could last as long as.
fn find_steps(model: &Model<'_>, plugin: Option<Plugin>) -> Vec<Step> {
    let roles = roles(model, plugin);
    let interval = |row| tensorboard::interval(plugin, model.events.interval(row));
    let named = |row: u32| model.name(row).split('#').nth(1).unwrap_or_default().to_owned();
    let exact: HashSet<u32> = model.steps().all.iter().map(|step| step.row).collect();
    let is_step = |row: u32, role: Role| match plugin {
        Some(_) => role == Role::Step,
        None => exact.contains(&row),
    };
    let mut found: Vec<Step> = roles
        .iter()
        .filter(|(row, role)| is_step(*row, *role))
        .map(|(row, _)| {
            let (start, end) = interval(*row);
            Step { name: named(*row), start, end }
        })
        .collect();
    if found.is_empty() {
        let host = roles.iter().filter(|(_, role)| matches!(role, Role::Host(_)));
        let host = host.map(|(row, _)| interval(*row));
        let ends = host.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let ends = ends.or_else(|| {
            let busy = model.busy_at_all();
            Some((busy.first()?.0, busy.last()?.1))
        });
        let Some((start, end)) = ends else { return found };
        found.push(Step { name: "0".to_owned(), start, end });
    }
    with_device_time(model, &roles, &mut found, interval);
    found
}

/// Lets steps last as long as the work that was launched in them.
fn with_device_time(
    model: &Model<'_>,
    roles: &[(u32, Role)],
    steps: &mut Vec<Step>,
    interval: impl Fn(u32) -> Interval,
) {
    let events = &model.events;
    let number = |row: u32| events.correlations[row as usize];
    let launches = || {
        let calls = roles.iter().filter(|(_, role)| *role == Role::Call).map(|(row, _)| *row);
        calls.filter(|row| number(*row) != -1)
    };
    let mut calls = Numbered::new(NONE, launches().map(number), events.len());
    for row in launches() {
        let first = calls.at(number(row));
        if *first == NONE {
            *first = row;
        }
    }
    let mut spans: Vec<(Option<Interval>, u64)> = vec![(None, 0); steps.len()];
    let mut unmatched: Vec<Interval> = Vec::new();
    // The latest end of each step and those before it: the first step that ends after some moment is
    // the first whose latest end is after that.
    let latest: Vec<i64> = steps
        .iter()
        .scan(i64::MIN, |latest, step| {
            *latest = step.end.max(*latest);
            Some(*latest)
        })
        .collect();
    for (work, _) in roles.iter().filter(|(_, role)| matches!(role, Role::Device(_))) {
        let (start, end) = interval(*work);
        let call = Some(calls.get(number(*work))).filter(|call| *call != NONE);
        let step = call.and_then(|call| {
            let (from, to) = interval(call);
            let first = latest.partition_point(|end| *end <= from);
            let holds = |step: &Step| from >= step.start && from < step.end && to <= step.end;
            Some(first + steps[first..].iter().position(holds)?)
        });
        match step {
            Some(step) => {
                let (span, count) = &mut spans[step];
                *span = Some(span.map_or((start, end), |(a, b)| (a.min(start), b.max(end))));
                *count += 1;
            }
            None => unmatched.push((start, end)),
        }
    }
    if spans.iter().all(|(span, _)| span.is_none()) {
        return;
    }
    let mut before = steps[0].start;
    if let Some((first, _)) = spans[0].0 {
        let ends = unmatched.iter().map(|(_, end)| *end).filter(|end| *end <= first);
        before = ends.max().unwrap_or(before);
    }
    for (step, (span, _)) in steps.iter_mut().zip(&spans) {
        step.start = step.start.max(before);
        step.end = step.end.max(span.map_or(i64::MIN, |(_, end)| end)).max(step.start);
        before = step.end;
    }
    let mut kept = steps.len();
    while kept > 0 && spans[kept - 1].1 == 0 {
        kept -= 1;
    }
    if kept > 1 && spans[kept - 2].1 as f64 * 0.8 > spans[kept - 1].1 as f64 {
        kept -= 1;
    }
    steps.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn each_moment_has_the_first_role_that_fits() {
        let lines = r#"
            user_annotation | ProfilerStep#7 | 1 | 0 | 100 |
            cpu_op | enumerate(DataLoader)#x.__next__ | 1 | 0 | 20 |
            cpu_op | aten::mm | 1 | 30 | 30 |
            cuda_runtime | cudaLaunchKernel | 1 | 40 | 10 | "correlation": 1
            kernel | gemm | 7 | 45 | 25 | "correlation": 1
            cuda_runtime | cudaLaunchKernelExC | 1 | 52 | 2 | "correlation": 2
            kernel | ncclDevKernel_AllReduce | 9 | 60 | 60 | "correlation": 2
        "#;
        let batch = table(&METRIC, lines, &Options::default());
        let columns = [
            "step",
            "kernel",
            "communication",
            "runtime",
            "data_loader",
            "cpu_exec",
            "other",
            "total",
        ];
        let expected = "25000 50000 5000 20000 10000 10000 120000";
        assert_eq!(
            rows(&batch, &columns),
            [format!("7 {expected}"), format!("average {expected}")]
        );
    }
}
