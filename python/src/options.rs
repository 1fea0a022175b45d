//! What metrics can be told: one table, of which Python's signatures are made.

use kymograph_analysis::compat::hta::{Rules, Version};
use kymograph_analysis::compat::tensorboard::Plugin;
use kymograph_analysis::metric::{diff, stacks};
use kymograph_analysis::{Options, Reading};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What a caller wants of a metric.
#[derive(Debug, Default)]
pub struct Wanted {
    pub options: Options,
    /// Ranks that are wanted; empty for all.
    pub ranks: Vec<i64>,
    pub sort: Option<String>,
    pub limit: Option<usize>,
    /// Of the tool whose rules are followed.
    rounding: Option<bool>,
    last_step: Option<bool>,
}

type Value<'a, 'py> = &'a Bound<'py, PyAny>;

/// A row of the table.
struct Spec {
    name: &'static str,
    /// Which metrics read it; empty for all.
    metrics: &'static [&'static str],
    /// Python's type of it.
    ty: &'static str,
    help: &'static str,
    put: fn(&mut Wanted, Value<'_, '_>) -> PyResult<()>,
}

macro_rules! spec {
    ($name:literal, [$($metric:literal),*], $ty:literal, $help:literal, $put:expr) => {
        Spec { name: $name, metrics: &[$($metric),*], ty: $ty, help: $help, put: $put }
    };
}

/// All options. The help says what happens without one.
#[rustfmt::skip]
static OPTIONS: &[Spec] = &[
    spec!("num_kernels", ["kernel_breakdown", "user_annotations", "kernel_annotations"], "int",
        "Names that are shown before the rest is folded into `others`; 10.",
        |w, v| { w.options.num_kernels = v.extract()?; Ok(()) }),
    spec!("duration_ratio", ["kernel_breakdown", "user_annotations", "kernel_annotations"], "float",
        "Names whose running sum lies beyond this quantile of running sums are folded, too; 0.8.",
        |w, v| { w.options.duration_ratio = v.extract()?; Ok(()) }),
    spec!("include_memory", ["kernel_breakdown", "kernel_types", "launch_stats", "kernel_durations"], "bool",
        "Whether copies and fills of memory count; True.",
        |w, v| { w.options.include_memory = v.extract()?; Ok(()) }),
    spec!("gpu_annotations", ["user_annotations"], "bool",
        "Annotations as devices saw them, not those of the host; True.",
        |w, v| { w.options.gpu_annotations = v.extract()?; Ok(()) }),
    spec!("allowlist", ["user_annotations"], "Sequence[str]",
        "Names that contain one of these are never folded; none.",
        |w, v| { w.options.allowlist = v.extract()?; Ok(()) }),
    spec!("consecutive_kernel_delay", ["idle_time", "idle_intervals"], "int",
        "Gaps of a stream that are shorter, in nanoseconds, are the cost of launching; 30000.",
        |w, v| { w.options.consecutive_kernel_delay = v.extract()?; Ok(()) }),
    spec!("max_queue_length", ["blocked_on_queue"], "int",
        "The length at which a launch queue is full; 1024.",
        |w, v| { w.options.max_queue_length = v.extract()?; Ok(()) }),
    spec!("operator", ["frequent_sequences"], "str",
        "What the names of operators contain; needed.",
        |w, v| { w.options.operator = v.extract()?; Ok(()) }),
    spec!("min_pattern_len", ["frequent_sequences"], "int",
        "The fewest kernels of a sequence; 3.",
        |w, v| { w.options.min_pattern_len = v.extract()?; Ok(()) }),
    spec!("num_candidates", ["stragglers"], "int",
        "How many ranks may be named by HTA's rule; 2.",
        |w, v| { w.options.num_candidates = v.extract()?; Ok(()) }),
    spec!("annotation", ["critical_path", "critical_path_summary", "critical_path_edges"], "str",
        "What the name of the annotation contains whose time is looked at; empty for the whole trace; ProfilerStep.",
        |w, v| { w.options.annotation = v.extract()?; Ok(()) }),
    spec!("instance", ["critical_path", "critical_path_summary", "critical_path_edges"], "int | tuple[int, int]",
        "Which of these annotations, counted from 0, or the first and the last of several; 0.",
        |w, v| { w.options.instance = range(v)?; Ok(()) }),
    spec!("scales", ["critical_path", "critical_path_summary", "critical_path_edges"], "dict[str, float]",
        "What if events with such a text in their names took so many times as long; none.",
        |w, v| { w.options.scales = v.cast::<PyDict>()?.items().extract()?; Ok(()) }),
    spec!("edges", ["critical_path", "critical_path_summary", "critical_path_edges"], "Sequence[tuple[int, int, int]]",
        "What if the edge between two nodes of `critical_path_edges` took so many nanoseconds; none.",
        |w, v| { w.options.edges = v.extract()?; Ok(()) }),
    spec!("side", ["diff"], "str",
        "Only events of the `host` or of the `device`; both.",
        |w, v| { w.options.side = side(v)?; Ok(()) }),
    spec!("short_names", ["diff"], "bool",
        "Shorten the names of kernels, so that those of other types and shapes are one; False.",
        |w, v| { w.options.short_names = v.extract()?; Ok(()) }),
    spec!("python_functions", ["operators", "operators_by_shape"], "bool",
        "Let Python functions count as callees, as in a torch.profiler with verbose=True; False.",
        |w, v| { w.options.python_functions = v.extract()?; Ok(()) }),
    spec!("python_rows", ["operators", "operators_total"], "bool",
        "Whether Python functions have rows of their own; False.",
        |w, v| { w.options.python_rows = v.extract()?; Ok(()) }),
    spec!("stack_depth", ["operators_by_stack"], "int",
        "How many Python functions tell operators apart; 5.",
        |w, v| { w.options.stack_depth = v.extract()?; Ok(()) }),
    spec!("weight", ["stacks"], "str",
        "Which time stacks have: that of the `host` or of the `device`; host.",
        |w, v| { w.options.weight = weight(v)?; Ok(()) }),
    spec!("fail_above", ["regressions"], "float",
        "How much slower, as a part of one, steps may become; 0.03.",
        |w, v| { w.options.fail_above = v.extract()?; Ok(()) }),
    spec!("peak_flops", ["roofline"], "float",
        "What the device computes at most per second; that of the table of devices.",
        |w, v| { w.options.peak_flops = Some(v.extract()?); Ok(()) }),
    spec!("peak_bandwidth", ["roofline"], "float",
        "How many bytes its memory moves at most per second; likewise.",
        |w, v| { w.options.peak_bandwidth = Some(v.extract()?); Ok(()) }),
    spec!("ranks", [], "Sequence[int]",
        "Only these ranks; all.",
        |w, v| { w.ranks = v.extract()?; Ok(()) }),
    spec!("steps", [], "int | tuple[int, int]",
        "Only this profiler step, or the steps from the first to the second, both included; all.",
        |w, v| { w.options.steps = steps(v)?; Ok(()) }),
    spec!("devices", [], "Sequence[int]",
        "Only devices of these numbers; all.",
        |w, v| { w.options.devices = v.extract()?; Ok(()) }),
    spec!("streams", [], "Sequence[int]",
        "Only these streams of devices; all.",
        |w, v| { w.options.streams = v.extract()?; Ok(()) }),
    spec!("names", [], "Sequence[str]",
        "Only events whose names contain one of these; all.",
        |w, v| { w.options.names = v.extract()?; Ok(()) }),
    spec!("times", [], "tuple[int, int]",
        "Only what happens between two times, in nanoseconds since the trace's first event; all.",
        |w, v| { w.options.times = Some(v.extract()?); Ok(()) }),
    spec!("compat", [], "str",
        "The rules, the rounding and the column names of another tool: `hta`, `traceinsight`, `tensorboard`, `tensorboard-last` or `torch`; our own.",
        |w, v| { compat(w, &v.extract::<String>()?) }),
    spec!("rounding", [], "bool",
        "With compat: round times to microseconds, as HTA does; True.",
        |w, v| { w.rounding = Some(v.extract()?); Ok(()) }),
    spec!("last_step", [], "bool",
        "With compat: keep the last step, as HTA does with include_last_profiler_step; False.",
        |w, v| { w.last_step = Some(v.extract()?); Ok(()) }),
    spec!("sort", [], "str",
        "Order rows by this column: numbers from the largest down, texts from A to Z.",
        |w, v| { w.sort = Some(v.extract()?); Ok(()) }),
    spec!("limit", [], "int",
        "How many rows there may be; all.",
        |w, v| { w.limit = Some(v.extract()?); Ok(()) }),
];

/// All options: name, the metrics that read it (none: all of them), type and help.
#[pyfunction]
pub fn options() -> Vec<(&'static str, Vec<&'static str>, &'static str, &'static str)> {
    OPTIONS.iter().map(|spec| (spec.name, spec.metrics.to_vec(), spec.ty, spec.help)).collect()
}

/// A text of the command's as Python's users know the options: `--num-kernels 3` is `num_kernels=3`.
/// Those of other commands stay as they are.
pub fn in_python(text: &str) -> String {
    let mut parts = text.split("--");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c != '-' && !c.is_ascii_lowercase()).unwrap_or(part.len());
        let (word, rest) = part.split_at(end);
        let name = word.replace('-', "_");
        let positive = name.strip_prefix("no_").unwrap_or(&name);
        if OPTIONS.iter().all(|spec| spec.name != positive) {
            said.extend(["--", part]);
            continue;
        }
        let value = rest.strip_prefix(' ').unwrap_or_default();
        let value = value.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let is_value = value.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit());
        if positive != name {
            said.extend([positive, "=False", rest]);
        } else if COMPATIBLE.contains(&value) {
            said.extend([&name, "=\"", value, "\"", &rest[1 + value.len()..]]);
        } else if is_value {
            said.extend([&name, "=", &rest[1..]]);
        } else {
            said.extend(["`", &name, "`", rest]);
        }
    }
    said
}

/// What `compat` may be.
const COMPATIBLE: [&str; 4] = ["hta", "traceinsight", "torch", "tensorboard"];

impl Wanted {
    /// What a dictionary says for a metric; what is None is as if it were not there.
    pub fn of(metric: &str, given: &Bound<'_, PyDict>) -> PyResult<Wanted> {
        let mut wanted = Wanted::default();
        for (name, value) in given {
            let name: String = name.extract()?;
            let spec = OPTIONS.iter().find(|spec| spec.name == name);
            let spec = spec.filter(|s| s.metrics.is_empty() || s.metrics.contains(&metric));
            let Some(spec) = spec else {
                return Err(PyTypeError::new_err(format!("{metric} has no option `{name}`")));
            };
            if !value.is_none() {
                (spec.put)(&mut wanted, &value).map_err(|error| {
                    let why = error.value(value.py());
                    PyValueError::new_err(format!("{name}={value:?}: {why}"))
                })?;
            }
        }
        wanted.settle()?;
        Ok(wanted)
    }

    /// What only makes sense with another option.
    fn settle(&mut self) -> PyResult<()> {
        match &mut self.options.reading {
            Reading::Hta(rules) => {
                rules.rounding = self.rounding.unwrap_or(true);
                rules.last_step = self.last_step.unwrap_or(false);
                Ok(())
            }
            Reading::Exact if self.rounding.or(self.last_step).is_some() => {
                let what = "rounding and last_step go with compat=\"hta\" or \"traceinsight\"";
                Err(PyValueError::new_err(what))
            }
            Reading::Exact => Ok(()),
        }
    }
}

fn compat(wanted: &mut Wanted, tool: &str) -> PyResult<()> {
    let hta = |version| Reading::Hta(Rules { version, rounding: true, last_step: false });
    let options = &mut wanted.options;
    match tool {
        "hta" => options.reading = hta(Version::Hta),
        "traceinsight" => options.reading = hta(Version::TraceInsight),
        "tensorboard" => options.tensorboard = Some(Plugin::Wheel),
        "tensorboard-last" => options.tensorboard = Some(Plugin::Last),
        "torch" => options.torch = true,
        _ => {
            let what = "hta, traceinsight, tensorboard, tensorboard-last or torch is wanted";
            return Err(PyValueError::new_err(what));
        }
    }
    Ok(())
}

/// A number, or the first and the last of several.
fn range(value: Value<'_, '_>) -> PyResult<(usize, usize)> {
    match value.extract::<usize>() {
        Ok(one) => Ok((one, one)),
        Err(_) => value.extract(),
    }
}

fn steps(value: Value<'_, '_>) -> PyResult<Vec<i64>> {
    let (first, last) = match value.extract::<i64>() {
        Ok(one) => (one, one),
        Err(_) => value.extract()?,
    };
    match last.checked_sub(first) {
        Some(0..100_000) => Ok((first..=last).collect()),
        _ => Err(PyValueError::new_err("a number or two, the smaller one first, are wanted")),
    }
}

fn side(value: Value<'_, '_>) -> PyResult<diff::Side> {
    match value.extract::<String>()?.as_str() {
        "host" => Ok(diff::Side::Host),
        "device" => Ok(diff::Side::Device),
        _ => Err(PyValueError::new_err("host or device is wanted")),
    }
}

fn weight(value: Value<'_, '_>) -> PyResult<stacks::Weight> {
    match value.extract::<String>()?.as_str() {
        "host" => Ok(stacks::Weight::Host),
        "device" => Ok(stacks::Weight::Device),
        _ => Err(PyValueError::new_err("host or device is wanted")),
    }
}
