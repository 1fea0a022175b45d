//! Whether a program became slower: `kymo analyze regressions BASE… TEST… --fail-above 3%`, whose
//! exit status is 3 if it did.
//!
//! BASE and TEST are as many words each, a file, a folder or a pattern: the ranks of a run, and
//! several runs if ranks repeat. The first row is the duration of steps (of the whole trace,
//! where it has no steps), and only it decides: it is a `regression` if
//!
//! * the interval of the change, a bootstrap over steps with a confidence of 95 %, lies above
//!   `--fail-above`, and
//! * a permutation test says that steps that do not differ are as far apart at most once in a
//!   hundred times. So at most one of a hundred comparisons of a program with itself is an
//!   alarm, whatever the distribution of steps. Fewer than five steps on each side cannot say
//!   so much; the verdict is then `too few steps`.
//!
//! The other rows say what is behind it: what steps divide into (`step_variance`), kernels and
//! other device work, and what the host does, by name, without what it calls. Of names, those
//! with at least a hundredth of a step are shown. `slower` and `faster` mean that the interval
//! lies beyond `--fail-above`, at one false verdict in a hundred for all rows together.
//!
//! Times of several ranks are means over ranks. With five or more runs on each side, runs are
//! compared instead of steps. Steps of one run have more in common than those of different
//! runs, such as clocks and temperature: that is what `--fail-above` is for, and several runs.

pub mod test;

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::step_variance::{QUANTITIES, by_name, parts as step_parts};
use crate::model::steps;
use crate::table::{Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part};
use test::{Comparison, compare};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "regressions",
    answers: "whether steps became slower from one run to another, and what made them so",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("kind", "step, device or host"),
    Column::text("name", "duration or a part of it; the name of the work or the event"),
    Column::int("base_steps", "how many steps BASE has"),
    Column::int("test_steps", "how many steps TEST has"),
    Column::mean_duration("base", "the mean over steps of BASE"),
    Column::mean_duration("test", "the mean over steps of TEST"),
    Column::mean_duration("difference", "how much longer in TEST"),
    Column::percent("change", "the difference, of BASE"),
    Column::percent("low", "the change is at least so much, with a confidence of 95 %"),
    Column::percent("high", "likewise at most"),
    Column::float("p", "how likely steps that do not differ are as far apart"),
    Column::text("verdict", "regression, slower, same, faster, unclear or too few steps"),
];

/// What ranks give.
const PARTS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("kind", "step, device or host"),
    Column::text("name", "of what"),
    Column::int("step", "the step"),
    Column::duration("time", "how long it took"),
];

/// How many comparisons of a program with itself may be alarms.
pub const FALSE_ALARMS: f64 = 0.01;

/// The part of a step from which on a name is shown.
const SHOWN: f64 = 0.01;

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let parts = step_parts(model, options);
    let mut rows = Rows::new(PARTS);
    let mut put = |kind: &str, name: &str, step: i64, time: i64| {
        rows.push([model.rank.into(), kind.into(), name.into(), step.into(), time.into()]);
    };
    if parts.is_empty() {
        let all = 0..model.events.len() as u32;
        let end = all.map(|row| model.events.end(row)).max();
        let Some(end) = end else {
            return Err(Error::Nothing(format!("rank {} has no events", model.rank)));
        };
        put("step", QUANTITIES[0], 0, end.saturating_sub(model.origin));
        return rows.finish();
    }
    for part in parts.iter() {
        for (quantity, time) in QUANTITIES.iter().zip(part.times) {
            put("step", quantity, part.number, time);
        }
    }
    let numbers: Vec<i64> = parts.iter().map(|part| part.number).collect();
    for ((on_device, name), by_step) in by_name(model, &numbers) {
        let name = model.text(name);
        if steps::number(name).is_some() {
            continue;
        }
        for (step, (_, time)) in by_step {
            put(if on_device { "device" } else { "host" }, name, step, time);
        }
    }
    rows.finish()
}

/// Times by run and step: a sum over ranks.
type Runs = Vec<BTreeMap<i64, f64>>;

/// What one side has.
#[derive(Default)]
struct Side<'a> {
    /// How many ranks each run has, and each of its steps is in.
    steps: Runs,
    times: BTreeMap<(&'a str, &'a str), Runs>,
}

impl<'a> Side<'a> {
    /// From the parts of a side: the n-th of a rank belongs to the n-th run.
    fn of(parts: impl Iterator<Item = &'a Part>) -> Side<'a> {
        let mut side = Side::default();
        let mut runs: BTreeMap<i64, usize> = BTreeMap::new();
        for part in parts {
            let cells = Cells::of(&part.batch);
            let count = part.batch.num_rows();
            let Some(rank) = cells.int("rank", 0).filter(|_| count > 0) else { continue };
            let run = runs.entry(rank).or_insert(0);
            for row in 0..count {
                let text = |column| cells.text(column, row).unwrap_or_default();
                let step = cells.int("step", row).unwrap_or(-1);
                let time = cells.int("time", row).unwrap_or(0) as f64;
                let key = (text("kind"), text("name"));
                if key == ("step", QUANTITIES[0]) {
                    add(&mut side.steps, *run, step, 1.0);
                }
                add(side.times.entry(key).or_default(), *run, step, time);
            }
            *run += 1;
        }
        side
    }

    /// The means over ranks of something, run by run; 0 in steps that do not have it.
    fn measured(&self, key: (&str, &str)) -> Vec<Vec<f64>> {
        let times = self.times.get(&key);
        let of_run = |(run, steps): (usize, &BTreeMap<i64, f64>)| {
            let times = times.and_then(|runs| runs.get(run));
            let time = |step| times.and_then(|times| times.get(step)).copied().unwrap_or(0.0);
            steps.iter().map(|(step, ranks)| time(step) / ranks).collect()
        };
        self.steps.iter().enumerate().map(of_run).collect()
    }
}

fn add(runs: &mut Runs, run: usize, step: i64, value: f64) {
    if runs.len() <= run {
        runs.resize(run + 1, BTreeMap::new());
    }
    *runs[run].entry(step).or_default() += value;
}

fn over_ranks(_: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    let [base, test] = [0, 1].map(|side| Side::of(parts.iter().filter(|part| part.rank == side)));
    let whole = ("step", QUANTITIES[0]);
    let Some(steps) = compare(&base.measured(whole), &test.measured(whole)) else {
        let what = "BASE or TEST has no events to measure: give traces on both sides";
        return Err(Error::Nothing(what.to_owned()));
    };
    let mut keys: Vec<(&str, &str)> = base.times.keys().chain(test.times.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let mut others: Vec<((&str, &str), Comparison)> = Vec::new();
    for key in keys.into_iter().filter(|key| *key != whole) {
        let (before, after) = (base.measured(key), test.measured(key));
        let mean = |runs: &[Vec<f64>]| {
            let all = runs.concat();
            all.iter().sum::<f64>() / all.len() as f64
        };
        if mean(&before).max(mean(&after)) < steps.base * SHOWN {
            continue;
        }
        let new = Comparison {
            base: mean(&before),
            test: mean(&after),
            change: f64::NAN,
            interval: (f64::NAN, f64::NAN),
            p: f64::NAN,
            least_p: f64::NAN,
        };
        others.push((key, compare(&before, &after).unwrap_or(new)));
    }
    let rank = |kind: &str| QUANTITIES.contains(&kind);
    others.order_by(|(a, x), (b, y)| {
        let more = |c: &Comparison| c.test - c.base;
        (!rank(a.1)).cmp(&!rank(b.1)).then(more(y).total_cmp(&more(x))).then(a.cmp(b))
    });
    let level = FALSE_ALARMS / others.len().max(1) as f64;
    let count = |side: &Side<'_>| side.steps.iter().map(BTreeMap::len).sum::<usize>();
    let mut rows = Rows::new(COLUMNS);
    let mut put = |(kind, name): (&str, &str), c: Comparison, verdict: &str| {
        rows.push([
            kind.into(),
            name.into(),
            count(&base).into(),
            count(&test).into(),
            c.base.into(),
            c.test.into(),
            (c.test - c.base).into(),
            (c.change * 100.0).into(),
            (c.interval.0 * 100.0).into(),
            (c.interval.1 * 100.0).into(),
            c.p.into(),
            verdict.into(),
        ]);
    };
    put(whole, steps, verdict(&steps, options, FALSE_ALARMS, "regression"));
    for (key, comparison) in others {
        put(key, comparison, verdict(&comparison, options, level, "slower"));
    }
    rows.finish()
}

fn verdict(c: &Comparison, options: &Options, level: f64, slower: &'static str) -> &'static str {
    let (low, high) = c.interval;
    let most = options.fail_above;
    if c.base <= 0.0 {
        return "only in TEST";
    }
    if low > -most && high < most {
        return "same";
    }
    match c {
        _ if low.is_nan() || c.least_p > level => "too few steps",
        _ if low > most && c.p <= level => slower,
        _ if high < -most && c.p <= level => "faster",
        _ => "unclear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{over, rows};

    /// Steps of about 100 µs, a kernel of 40 % of each, `slower` times as long.
    fn run(slower: f64, noise: [i64; 6]) -> String {
        let mut lines = String::new();
        let mut at = 0.0;
        for (number, noise) in noise.iter().enumerate() {
            let dur = (100.0 + *noise as f64) * slower;
            let (launch, work) = (at + 1.0, at + 10.0);
            let kernel = dur * 0.4;
            lines += &format!(
                "user_annotation | ProfilerStep#{number} | 1 | {at} | {dur} |\n\
                 cuda_runtime | cudaLaunchKernel | 1 | {launch} | 2 | \"correlation\": {number}1\n\
                 kernel | gemm | 7 | {work} | {kernel} | \"correlation\": {number}1\n"
            );
            at += dur;
        }
        lines
    }

    const NOISE: [[i64; 6]; 2] = [[0, 1, -1, 2, -2, 0], [1, -1, 0, -2, 1, 2]];

    #[test]
    fn a_slower_run_is_found_and_what_made_it_so() {
        let (base, test) = (run(1.0, NOISE[0]), run(1.2, NOISE[1]));
        let sides = [(0, base.as_str()), (1, test.as_str())];
        let batch = over(&METRIC, &sides, &Options::default());
        let found = rows(&batch, &["kind", "name", "base_steps", "verdict"]);
        assert_eq!(found[0], "step duration 6 regression");
        assert!(found.contains(&"device gemm 6 slower".to_owned()), "{found:#?}");
        let cells = Cells::of(&batch);
        let (low, high) = (cells.float("low", 0).unwrap(), cells.float("high", 0).unwrap());
        assert!(low < 20.2 && 20.2 < high && high - low < 8.0, "{low} to {high}");
        let back = over(&METRIC, &[(0, test.as_str()), (1, base.as_str())], &Options::default());
        assert_eq!(rows(&back, &["verdict"])[0], "faster");
    }

    #[test]
    fn the_same_program_is_none() {
        let (base, test) = (run(1.0, NOISE[0]), run(1.0, NOISE[1]));
        let batch = over(&METRIC, &[(0, &base), (1, &test)], &Options::default());
        assert!(rows(&batch, &["verdict"]).iter().all(|verdict| verdict == "same"));
    }

    #[test]
    fn few_steps_cannot_say_so_much() {
        let alone = |slower| format!("user_annotation | ProfilerStep#1 | 1 | 0 | {slower} |");
        let (base, test) = (alone(100), alone(150));
        let batch = over(&METRIC, &[(0, &base), (1, &test)], &Options::default());
        assert_eq!(rows(&batch, &["change", "low", "verdict"])[0], "50 - too few steps");
    }
}
