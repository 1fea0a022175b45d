//! What can be chosen: one set of options for all metrics, each of which reads its own.

use crate::reading::{Plugin, Reading};

/// Options of metrics. The defaults are those of the tools that have the metric.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Whose rules are followed.
    pub reading: Reading,
    /// The state of the TensorBoard plugin whose rules are followed (`overview`,
    /// `gpu_utilization`); none for the exact reading.
    pub tensorboard: Option<Plugin>,
    /// Device streams that are wanted; empty for all.
    pub streams: Vec<i64>,
    /// Profiler steps that are wanted; empty for all.
    pub steps: Vec<i64>,
    /// Devices that are wanted, by number; empty for all. Of the host, everything stays.
    pub devices: Vec<i64>,
    /// What lasts at some time between two, in nanoseconds since the trace's first event.
    pub times: Option<(i64, i64)>,
    /// Parts of the names of events that are wanted; empty for all.
    pub names: Vec<String>,
    /// Gaps between two activities of a stream that are shorter, in nanoseconds, are the cost
    /// of launching back to back (`idle_time`).
    pub consecutive_kernel_delay: i64,
    /// How many names are shown before the rest is folded into `others`
    /// (`kernel_breakdown`, `user_annotations`).
    pub num_kernels: usize,
    /// Names whose running sum lies beyond this quantile of running sums are folded, too.
    pub duration_ratio: f64,
    /// Whether copies and sets of memory count (`kernel_breakdown`, `launch_stats`).
    pub include_memory: bool,
    /// Annotations on the device, not on the host (`user_annotations`).
    pub gpu_annotations: bool,
    /// Names that contain one of these are never folded (`user_annotations`).
    pub allowlist: Vec<String>,
    /// The length at which a launch queue is full (`blocked_on_queue`).
    pub max_queue_length: i64,
    /// What the names of operators must contain (`frequent_sequences`).
    pub operator: String,
    /// The fewest kernels of a sequence (`frequent_sequences`).
    pub min_pattern_len: i64,
    /// How many ranks may be named (`stragglers`).
    pub num_candidates: usize,
    /// What the name of the annotation must contain whose time is looked at
    /// (`critical_path`); empty for the whole trace.
    pub annotation: String,
    /// Which of the annotations of that name, counted from 0: the first and the last one.
    pub instance: (usize, usize),
    /// Names and factors: what if events with such a name took so many times as long
    /// (`critical_path`).
    pub scales: Vec<(String, f64)>,
    /// Nodes and times, in nanoseconds: what if the edge between them took so long (likewise).
    pub edges: Vec<(u32, u32, i64)>,
    /// Which events are compared (`diff`).
    pub side: Side,
    /// Whether Python functions count as callees of operators (`operators`), as they do in a
    /// `torch.profiler` with `verbose=True`.
    pub python_functions: bool,
    /// Whether Python functions have rows of their own (`operators`, `operators_total`).
    pub python_rows: bool,
    /// How many Python functions tell operators apart (`operators_by_stack`).
    pub stack_depth: usize,
    /// Which time stacks have (`stacks`).
    pub weight: Weight,
    /// The most rows of a rank that are wanted, of tables that may have very many: those with the most
    /// time (`stacks`, `kernels_by_operator`); none for all.
    pub most_rows: Option<usize>,
    /// Whether PyTorch's rules are followed where they differ (`stacks`).
    pub torch: bool,
    /// Whether long names are shortened to what tells them apart.
    pub short_names: bool,
    /// How much slower, as a part of one, something may become (`regressions`).
    pub fail_above: f64,
    /// The floating point operations of a device per second, if not those of the table of
    /// devices (`roofline`).
    pub peak_flops: Option<f64>,
    /// The bytes of memory that a device moves per second, likewise.
    pub peak_bandwidth: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            reading: Reading::Exact,
            tensorboard: None,
            streams: Vec::new(),
            steps: Vec::new(),
            devices: Vec::new(),
            times: None,
            names: Vec::new(),
            consecutive_kernel_delay: 30_000,
            num_kernels: 10,
            duration_ratio: 0.8,
            include_memory: true,
            gpu_annotations: true,
            allowlist: Vec::new(),
            max_queue_length: 1024,
            operator: String::new(),
            min_pattern_len: 3,
            num_candidates: 2,
            annotation: "ProfilerStep".to_owned(),
            instance: (0, 0),
            scales: Vec::new(),
            edges: Vec::new(),
            side: Side::All,
            python_functions: false,
            python_rows: false,
            stack_depth: 5,
            weight: Weight::Host,
            most_rows: None,
            torch: false,
            short_names: false,
            fail_above: 0.03,
            peak_flops: None,
            peak_bandwidth: None,
        }
    }
}

/// Which events are compared (`diff`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Side {
    /// All.
    #[default]
    All,
    /// Those of the host.
    Host,
    /// Those of devices.
    Device,
}

/// Which time stacks have (`stacks`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weight {
    /// That of the host.
    #[default]
    Host,
    /// That of devices.
    Device,
}
