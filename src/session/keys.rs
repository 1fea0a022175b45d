//! Every key of a request, in one table: Kineto's, by which PyTorch's tools and dynolog
//! ask, and ours. The options of [`crate::config::OPTIONS`] are keys as well.

use std::time::Duration;

use super::text::Draft;

/// Puts a value into the draft, or says what is wrong with it ("expected …").
type Setter = fn(&mut Draft, &str) -> Result<(), String>;

/// One key.
pub struct Key {
    /// Its name; Kineto's are matched exactly, ours in any case.
    pub name: &'static str,
    /// Syntax of the value, for people.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
    pub(super) set: Setter,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.name)
    }
}

macro_rules! keys {
    ($($name:literal, $value:literal, $help:literal, $set:expr;)*) => {
        &[$(Key { name: $name, value: $value, help: $help, set: $set },)*]
    };
}

/// See the module.
#[rustfmt::skip]
pub static KEYS: &[Key] = keys! {
    // Ours.
    "START", "now|NANOSECONDS", "When the window opens: after the warm-up, or at this time, counted from 1970.",
        |d, v| { d.start = if v == "now" { None } else { Some(number(v)?) }; Ok(()) };
    "WARMUP", "DURATION", "How long sources are on before the window opens.",
        |d, v| { d.warmup = time(v)?; Ok(()) };
    "TIME", "DURATION", "How long the window stays open.",
        |d, v| { d.duration = Some(time(v)?); Ok(()) };
    "ITERATIONS", "NUMBER", "Record so many of the program's iterations (it calls step() between them).",
        |d, v| { d.iterations = number(v)?; d.first.get_or_insert(0); Ok(()) };
    "ITERATION_OF", "NAME", "Iterations are the ranges of this name, in which * stands for anything.",
        |d, v| { d.iteration_of = v.to_owned(); Ok(()) };
    "FIRST_ITERATION", "NUMBER", "The first iteration to record; 0 for the next.",
        |d, v| { d.first = Some(number(v)?); Ok(()) };
    "WARMUP_ITERATIONS", "NUMBER", "Iterations before that in which sources are on.",
        |d, v| { d.warmup_iterations = number(v)?; Ok(()) };
    "TRACE_ID", "TEXT", "An id that the trace carries.",
        |d, v| { d.trace_id = v.to_owned(); Ok(()) };
    // Kineto's.
    "ACTIVITIES_ENABLED", "BOOL", "Whether the request is to be followed.",
        |d, v| { d.enabled = boolean(v)?; Ok(()) };
    "ACTIVITY_TYPES", "LIST", "What to record of devices, by Kineto's names.",
        |d, v| { d.activity_types = Some(activity_types(v)?); Ok(()) };
    "ACTIVITIES_LOG_FILE", "PATH", "Where to write the trace; _<pid> is added to its name.",
        |d, v| { d.log_file = Some(v.to_owned()); Ok(()) };
    "ACTIVITIES_DURATION_SECS", "SECONDS", "How long the window stays open.",
        |d, v| { d.duration = Some(Duration::from_secs(int(v)?)); Ok(()) };
    "ACTIVITIES_DURATION_MSECS", "MILLISECONDS", "How long the window stays open. Unset: 500.",
        |d, v| { d.duration = Some(Duration::from_millis(int(v)?)); Ok(()) };
    "ACTIVITIES_ITERATIONS", "NUMBER", "How many iterations to record, with PROFILE_START_ITERATION.",
        |d, v| { d.iterations = int(v)?; Ok(()) };
    "ACTIVITIES_WARMUP_PERIOD_SECS", "SECONDS", "How long sources are on before the window opens. Unset: 5.",
        |d, v| { d.warmup = Duration::from_secs(int(v)?); Ok(()) };
    "ACTIVITIES_WARMUP_ITERATIONS", "NUMBER", "Iterations before the first in which sources are on.",
        |d, v| { d.warmup_iterations = int(v)?; Ok(()) };
    "PROFILE_START_TIME", "MILLISECONDS", "When the window opens, counted from 1970; 0: after the warm-up.",
        |d, v| { d.start = Some(int(v)?.saturating_mul(1_000_000)).filter(|ns| *ns > 0); Ok(()) };
    "PROFILE_START_ITERATION", "NUMBER", "The first iteration to record; 0 for the next.",
        |d, v| { d.first = Some(int(v)?); Ok(()) };
    "PROFILE_START_ITERATION_ROUNDUP", "NUMBER", "If that has passed: the first is a multiple of this.",
        |d, v| {
            d.roundup = int(v)?;
            if d.roundup > 0 { d.first.get_or_insert(0); }
            Ok(())
        };
    "REQUEST_TRACE_ID", "TEXT", "An id that the trace carries.",
        |d, v| { d.trace_id = v.to_owned(); Ok(()) };
    "REQUEST_GROUP_TRACE_ID", "TEXT", "An id that the traces of a group have in common.",
        |d, v| { d.group_trace_id = v.to_owned(); Ok(()) };
    // Kineto's, with nothing to do here.
    "ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB", "NUMBER", "Not used: see BUFFER.", |_, v| int(v).map(drop);
    "ACTIVITIES_DISPLAY_CUDA_SYNC_WAIT_EVENTS", "BOOL", "Not used.", |_, v| boolean(v).map(drop);
    "CUPTI_PER_THREAD_BUFFER_ENABLED", "BOOL", "Not used.", |_, v| boolean(v).map(drop);
    "CUPTI_PM_SAMPLING_METRICS", "LIST", "Not used.", |_, _| Ok(());
    "CUPTI_PM_SAMPLING_DEVICE_ID", "NUMBER", "Not used.", |_, _| Ok(());
    // Setting one of these is reported as having no effect.
    "CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION", "BOOL", "Not used: see PYTORCH.", |d, v| d.vain(boolean(v)?, SHAPES);
    "PROFILE_REPORT_INPUT_SHAPES", "BOOL", "Not used: see PYTORCH.", |d, v| d.vain(boolean(v)?, SHAPES);
    "PROFILE_PROFILE_MEMORY", "BOOL", "Not used: see PYTORCH_MEMORY.", |d, v| d.vain(boolean(v)?, MEMORY);
    "PROFILE_WITH_STACK", "BOOL", "Not used: see PYTHON.", |d, v| d.vain(boolean(v)?, STACKS);
    "PYTHON_STACK_TRACE", "BOOL", "Not used: see PYTHON.", |d, v| d.vain(boolean(v)?, STACKS);
    "PROFILE_WITH_FLOPS", "BOOL", "Not used.", |d, v| d.vain(boolean(v)?, STACKS);
    "PROFILE_WITH_MODULES", "BOOL", "Not used: see PYTHON.", |d, v| d.vain(boolean(v)?, STACKS);
    "PROFILE_MEMORY", "BOOL", "Refused: `kymo trigger --memory-snapshot` takes snapshots of PyTorch's memory.",
        |d, v| { d.memory = boolean(v)?; Ok(()) };
    "PROFILE_MEMORY_DURATION_MSECS", "NUMBER", "Not used.", |_, v| int(v).map(drop);
    "ROCTRACER_MAX_EVENTS", "NUMBER", "Not used.", |_, v| int(v).map(drop);
    "ENABLE_IPC_FABRIC", "BOOL", "Not used.", |_, v| boolean(v).map(drop);
    "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS", "SECONDS", "How often a daemon is asked.",
        |d, v| { d.poll = Some(Duration::from_secs(int(v)?.max(1))); Ok(()) };
    "VERBOSE_LOG_LEVEL", "NUMBER", "Not used.", |_, _| Ok(());
    "VERBOSE_LOG_MODULES", "LIST", "Not used.", |_, _| Ok(());
    "CUSTOM_CONFIG", "TEXT", "Carried in the trace.",
        |d, v| { d.custom = v.to_owned(); Ok(()) };
    "XPUPTI_PROFILER_METRICS", "LIST", "Not used.", |_, _| Ok(());
    "XPUPTI_PROFILER_ENABLE_PER_KERNEL", "BOOL", "Not used.", |_, v| boolean(v).map(drop);
    "XPUPTI_PROFILER_MAX_SCOPES", "NUMBER", "Not used.", |_, v| int(v).map(drop);
};

/// Why nothing comes of what was asked for.
pub(super) const SHAPES: &str =
    "shapes are recorded if the program was started with PYTORCH=shapes";
const MEMORY: &str =
    "PyTorch's allocations are recorded if the program was started with PYTORCH_MEMORY=1";
const STACKS: &str = "calls of Python are recorded if the program was started with PYTHON=functions \
                      or modules, and FLOPs are not";

/// Kineto's activity types (ActivityType.h); all are accepted, as Kineto does.
const TYPES: [&str; 29] = [
    "cpu_op",
    "user_annotation",
    "gpu_user_annotation",
    "gpu_memcpy",
    "gpu_memset",
    "kernel",
    "external_correlation",
    "cuda_runtime",
    "cuda_driver",
    "cpu_instant_event",
    "python_function",
    "overhead",
    "mtia_runtime",
    "mtia_ccp_events",
    "mtia_insight",
    "cuda_sync",
    "cuda_event",
    "mtia_counters",
    "glow_runtime",
    "cuda_profiler_range",
    "hpu_op",
    "xpu_runtime",
    "xpu_driver",
    "collective_comm",
    "privateuse1_runtime",
    "privateuse1_driver",
    "xpu_scope_profiler",
    "xpu_sync",
    "hardware_counters",
];

/// Types that Kineto does not have.
const OUR_TYPES: [&str; 4] = ["graph_trace", "memory", "memory_pool", "unified_memory"];

fn activity_types(value: &str) -> Result<String, String> {
    let names = value.split(',').map(|name| name.trim().to_ascii_lowercase());
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    let known = |name: &str| TYPES.contains(&name) || OUR_TYPES.contains(&name);
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(format!("there is no activity type {name}")),
        None => Ok(names.join(",")),
    }
}

/// As Kineto reads them: signed, and not negative.
fn int(value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|n| *n <= i64::MAX as u64);
    number.ok_or_else(|| "expected a number that is not negative".to_owned())
}

fn number(value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| "expected a number that is not negative".to_owned())
}

fn boolean(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "y" | "yes" | "t" | "true" | "1" => Ok(true),
        "n" | "no" | "f" | "false" | "0" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

fn time(value: &str) -> Result<Duration, String> {
    crate::config::duration(value)
}
