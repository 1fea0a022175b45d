//! Every option, in one table.
//!
//! [`OPTIONS`] is the only place that knows an option's name, syntax, default and help.
//! It feeds the environment (`KYMOGRAPH_<KEY>`), the text that the C ABI takes
//! (`KEY=VALUE` lines), `kymo record --set`, `--help` and the reference in the docs
//! ([`markdown`], [`text`]). A new option is one new row and one new field.
//!
//! Nothing here fails halfway: a bad value leaves the default in place and is reported as
//! a [`Problem`], because a traced program must run whatever its environment says.

mod daemon;
mod dump_on;
mod python;
mod reference;
mod rotate;
mod value;

use kymograph_backends::environment::is_privileged;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use daemon::Daemon;
pub use dump_on::{DumpOn, Slow};
pub use kymograph_protos::CategoryFilter;
pub use python::{PyTorch, Python};
pub use reference::{markdown, text};
pub use rotate::Rotate;

/// The longest flush interval: what a SIGKILL may lose at most.
pub const MAX_FLUSH: Duration = Duration::from_secs(1);

/// Puts a value into its field, or says what is wrong with it ("expected …").
type Setter = fn(&mut Config, &OsStr) -> Result<(), String>;

/// One row of the option table.
pub struct OptionSpec {
    /// Name in `KEY=VALUE` text; matched without regard to case.
    pub key: &'static str,
    /// Name of the environment variable.
    pub env: &'static str,
    /// Syntax of the value, for people.
    pub value: &'static str,
    /// The default, in the same syntax; empty when there is none.
    pub default: &'static str,
    /// What it does, in one or two sentences.
    pub help: &'static str,
    set: Setter,
}

impl fmt::Debug for OptionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptionSpec({})", self.key)
    }
}

macro_rules! option {
    ($key:literal, $value:literal, $default:literal, $help:literal, $set:expr) => {
        OptionSpec {
            key: $key,
            env: concat!("KYMOGRAPH_", $key),
            value: $value,
            default: $default,
            help: $help,
            set: $set,
        }
    };
}

/// The option table. `kymo` and the library know no other options.
#[rustfmt::skip]
pub static OPTIONS: &[OptionSpec] = &[
    option!("OUTPUT", "PATH", "trace.pftrace",
        "File that the trace is written to; .gz and .zst at its end choose a compression, %p becomes the process id.",
        |c, v| { c.output = v.into(); Ok(()) }),
    option!("BUFFER", "SIZE", "64M",
        "Memory for events that wait to be written, for the whole process; bytes, or with K, M or G.",
        |c, v| { c.buffer = value::size(v)?; Ok(()) }),
    option!("RECOVER", "SIZE", "",
        "Keep up to this much of the recording in OUTPUT.recover until all of it is written: if the program is killed, `kymo recover` makes a trace of that file. For programs that record by themselves; under `kymo record` nothing is lost anyway.",
        |c, v| { c.recover = value::optional(v, value::size)?; Ok(()) }),
    option!("POLICY", "drop|stall:DURATION", "drop",
        "When a buffer is full: drop the event and count it, or let the thread wait up to this long first.",
        |c, v| { c.policy = value::policy(v)?; Ok(()) }),
    option!("FLUSH", "DURATION", "200ms",
        "How often events are written to the output; at most 1s. A killed process loses no more than this.",
        |c, v| { c.flush = value::flush(v)?; Ok(()) }),
    option!("CATEGORIES", "LIST", "*",
        "Categories (NVTX and ITT domains) to record: names with *, in any case, separated by commas; -NAME leaves one out.",
        |c, v| { c.categories = CategoryFilter::parse(value::text(v)?)?; Ok(()) }),
    option!("FORK", "record|silent", "record",
        "Whether the children of fork() are recorded.",
        |c, v| { c.fork = value::choice(v, &[("record", ForkPolicy::Record), ("silent", ForkPolicy::Silent)])?; Ok(()) }),
    option!("CLOCK", "auto|tsc|boottime", "auto",
        "Source of time: the processor's counter where it is trustworthy, that counter always, or CLOCK_BOOTTIME.",
        |c, v| { c.clock = value::choice(v, &[("auto", ClockChoice::Auto), ("tsc", ClockChoice::Tsc), ("boottime", ClockChoice::Boottime)])?; Ok(()) }),
    option!("SAFE", "0|1", "0",
        "Refuse an output that is a symbolic link, has several names, or belongs to another user.",
        |c, v| { c.safe = value::boolean(v)?; Ok(()) }),
    option!("MODE", "OCTAL", "",
        "Permissions of the output, such as 0600. Unset: 0666 less the umask.",
        |c, v| { c.mode = value::optional(v, value::mode)?; Ok(()) }),
    option!("COMPRESS", "auto|none|gzip|zstd|packets", "auto",
        "Compression of the output; auto chooses by its extension. packets compresses inside the trace: it needs no extension, and the trace can be followed, cut and joined.",
        |c, v| { c.compress = value::choice(v, &[("auto", Compress::Auto), ("none", Compress::None), ("gzip", Compress::Gzip), ("zstd", Compress::Zstd), ("packets", Compress::Packets)])?; Ok(()) }),
    option!("DURATION", "DURATION", "",
        "Stop recording after this long; the program goes on. Unset: until it ends.",
        |c, v| { c.duration = value::optional(v, value::duration)?; Ok(()) }),
    option!("ROTATE", "SIZE|DURATION", "",
        "Cut the trace into OUTPUT.1, OUTPUT.2 … before the extension, each a trace of its own: whenever one is this large or lasts this long, such as 100M, 10m, or 100M,10m. Not for a flight recorder.",
        |c, v| { c.rotate = value::optional(v, |v| Rotate::parse(value::text(v)?))?; Ok(()) }),
    option!("KEEP", "NUMBER", "",
        "How many of the numbered files (parts, dumps) are kept, at least 2; older ones are removed. Unset: all.",
        |c, v| { c.keep = value::optional(v, value::keep)?; Ok(()) }),
    option!("FLIGHT", "DURATION", "",
        "Flight recorder: keep only the last seconds, as many as this says, in memory, and write them on request (see DUMP_ON). Unset: everything is written as it comes.",
        |c, v| { c.flight = value::optional(v, value::duration)?; Ok(()) }),
    option!("FLIGHT_MEMORY", "SIZE", "256M",
        "Memory for the flight recorder, at least 2M; the processes of a recording share it. What does not fit is discarded, oldest first.",
        |c, v| { c.flight_memory = value::at_least(v, 2 << 20)?; Ok(()) }),
    option!("DUMP_ON", "LIST", "exit,crash",
        "What makes a flight recorder write what it has, apart from being asked: exit (into OUTPUT, however the recording of a process ends), and into OUTPUT.1, OUTPUT.2 … before the extension: crash (under `kymo record`, any signal that ends the program, or that crashes one of its processes), panic, abort (elsewhere, by a SIGABRT handler), and NAME>DURATION for slices that take longer, such as ProfilerStep#*>250ms; none for nothing.",
        |c, v| { c.dump_on = DumpOn::parse(value::text(v)?)?; Ok(()) }),
    option!("PROCESS_NAME", "TEXT", "",
        "Name of the process in the trace. Unset: its command line.",
        |c, v| { c.process_name = value::optional(v, |v| value::text(v).map(str::to_owned))?; Ok(()) }),
    option!("PYTORCH", "auto|on|shapes|off", "auto",
        "Operators of PyTorch: auto records them if CATEGORIES takes them (cpu_op, user_annotation), on always, shapes with the shapes, types and values of their inputs. Where they cannot be observed, on and shapes record them in daemon threads too.",
        |c, v| { c.pytorch = value::choice(v, &[("auto", PyTorch::Auto), ("on", PyTorch::On), ("shapes", PyTorch::Shapes), ("off", PyTorch::Off)])?; Ok(()) }),
    option!("PYTHON", "functions|modules|sampled[=HZ]|off", "off",
        "Calls of Python, on all threads: functions records a slice for each, which makes programs with many calls slower; modules only those of PyTorch's modules and optimizers; sampled the stacks of all threads at a rate (100 per second), by a thread of ours. From Python 3.9 on.",
        |c, v| { c.python = python::python(v)?; Ok(()) }),
    option!("PYTORCH_MEMORY", "0|1", "0",
        "Allocations of PyTorch's tensors, on the CPU and on devices: instants [memory] as in PyTorch's own traces, and a counter for each device.",
        |c, v| { c.pytorch_memory = value::boolean(v)?; Ok(()) }),
    option!("ACTIVITY_TYPES", "LIST", "",
        "What to record of devices: Kineto's names, separated by commas, and graph_trace, memory, memory_pool, unified_memory, hip_sync, hsa_api, level_zero_api, sycl_api. Unset: kernel, gpu_memcpy, gpu_memset, calls and waits of every vendor (cuda_runtime, which HIP's are too, cuda_driver, cuda_sync, xpu_runtime, xpu_driver, xpu_sync), collective_comm, gpu_user_annotation, and overhead of CUDA and HIP.",
        |c, v| { c.activity_types = value::text(v)?.to_owned(); Ok(()) }),
    option!("GPU_COUNTERS", "DURATION", "",
        "How often utilisation, memory, power, clocks, temperature and throughput of the NVIDIA GPUs that are used are sampled; 10ms at least. Unset: never.",
        |c, v| { c.gpu_counters = value::optional(v, value::sampling)?; Ok(()) }),
    option!("ALL_ARGS", "0|1", "0",
        "Give device activities also the arguments that follow from others, as Kineto does: device, stream, occupancy, bandwidth.",
        |c, v| { c.all_args = value::boolean(v)?; Ok(()) }),
    option!("SAMPLES", "0|1", "0",
        "Store the first records of each kind that a vendor's library hands over in the trace's metadata, byte by byte: for `kymo doctor --selftest`, and for reports of faults.",
        |c, v| { c.samples = value::boolean(v)?; Ok(()) }),
    option!("CUPTI_PATH", "PATH", "",
        "CUPTI, or its folder, if the program has not loaded one and it is not where it usually is.",
        |c, v| { c.cupti_path = value::optional(v, value::path)?; Ok(()) }),
    option!("ALSO", "PATH,…", "",
        "Further places that get the same trace: files, or pipes. Under `kymo record` a pipe whose reader goes away is sent everything anew when there is another; elsewhere a place that fails is given up, which is counted.",
        |c, v| { c.also = value::text(v)?.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect(); Ok(()) }),
    option!("CUPTI_FINALIZE", "0|1", "1",
        "Take CUPTI out of the process after a recording (from CUDA 12.6 on, if nothing else uses it): left in, it slows every launch down a little.",
        |c, v| { c.cupti_finalize = value::boolean(v)?; Ok(()) }),
    option!("PTI_PATH", "PATH", "",
        "Intel's PTI (libpti_view.so), or its folder, if the program has not loaded it and it is not where it usually is.",
        |c, v| { c.pti_path = value::optional(v, value::path)?; Ok(()) }),
    option!("TRACE_PROCESSOR", "URL", "",
        "Have `kymo record` send the trace to this `trace_processor_shell server http` while it is written, so that it is loaded when the recording ends. The output is written all the same.",
        |c, v| { c.trace_processor = value::optional(v, |v| value::text(v).map(str::to_owned))?; Ok(()) }),
    option!("CONTROL", "PATH", "",
        "Page through which processes share one output. Set by `kymo record`; leave it alone.",
        |c, v| { c.control = value::optional(v, value::path)?; Ok(()) }),
    option!("DAEMON", "NAME", "",
        "Take requests for traces from this daemon; dynolog's is called dynolog. KINETO_USE_DAEMON stands for that one.",
        |c, v| { c.daemon.name = daemon::name(v)?; Ok(()) }),
    option!("DAEMON_FOLDER", "PATH", "",
        "Folder of the daemon's socket, exactly as the daemon has it; KINETO_IPC_SOCKET_DIR is another name for it. Unset: the socket has no path.",
        |c, v| { c.daemon.folder = value::optional(v, value::path)?; Ok(()) }),
    option!("DAEMON_JOB", "NUMBER", "0",
        "Job of the scheduler that the process belongs to, by which requests are addressed. SLURM_JOB_ID is another name for it.",
        |c, v| { c.daemon.job = daemon::number(v)?; Ok(()) }),
    option!("DAEMON_POLL", "DURATION", "5s",
        "How often the daemon is asked for requests; from 1s to 30s.",
        |c, v| { c.daemon.poll = daemon::poll(v)?; Ok(()) }),
    option!("DAEMON_UID", "NUMBER", "",
        "User whose daemon may request traces, besides root and the user of the process.",
        |c, v| { c.daemon.uid = value::optional(v, daemon::number)?; Ok(()) }),
    option!("WAIT", "0|1", "0",
        "Record nothing until a trace is requested (`kymo trigger`).",
        |c, v| { c.wait = value::boolean(v)?; Ok(()) }),
    option!("SIGNAL", "NAME", "",
        "A signal that asks for a trace of DURATION (1s when unset), such as USR2; not if the program handles it.",
        |c, v| { c.signal = value::optional(v, value::signal)?; Ok(()) }),
    option!("KINETO_CONFIG", "PATH|default", "",
        "Kineto's own configuration file, of which ACTIVITY_TYPES and how often a daemon is asked are taken over; default is what $KINETO_CONFIG names, else /etc/libkineto.conf. Unset: it is not read.",
        |c, v| { c.kineto_config = value::optional(v, value::path)?; Ok(()) }),
    option!("SOCKETS", "PATH", "",
        "Folder in which `kymo ps` and `kymo trigger` find the processes that they can ask. Unset: /run/user/<uid>/kymograph, else /tmp/kymograph-<uid>.",
        |c, v| { c.sockets = value::optional(v, value::path)?; Ok(()) }),
    option!("TRACE_DIRS", "LIST", "",
        "Folders, separated by colons, to which traces that others ask for may be written. Unset: any folder if the same user asks; /tmp if a daemon does.",
        |c, v| { c.trace_dirs = std::env::split_paths(v).filter(|path| !path.as_os_str().is_empty()).collect(); Ok(()) }),
    option!("JSON_NOTES", "PATH", "",
        "Folder in which a process notes which of its traces are to become JSON. Set by `kymo record --wait`; leave it alone.",
        |c, v| { c.json_notes = value::optional(v, value::path)?; Ok(()) }),
    option!("KEEPER", "PATH", "",
        "Folder of the `kymo record --wait` that finishes a requested trace if the process is killed meanwhile. Set by it; leave it alone.",
        |c, v| { c.keeper = value::optional(v, value::path)?; Ok(()) }),
    option!("LIBRARY", "PATH", "",
        "The libkymograph.so that `kymo record` injects. Unset: the one beside kymo, else the one that kymo carries.",
        |c, v| { c.library = value::optional(v, value::path)?; Ok(()) }),
];

/// What happens when a thread's buffer is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// The event is dropped and counted.
    Drop,
    /// The thread waits up to this long, then the event is dropped and counted.
    Stall(Duration),
}

/// What becomes of a forked child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForkPolicy {
    /// It is recorded.
    Record,
    /// It records nothing.
    Silent,
}

/// Which clock events are stamped with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockChoice {
    /// The processor's counter where the kernel trusts it, else `CLOCK_BOOTTIME`.
    Auto,
    /// The processor's counter, even where the kernel does not trust it.
    Tsc,
    /// `CLOCK_BOOTTIME`.
    Boottime,
}

/// How the output is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compress {
    /// By the output's extension.
    Auto,
    /// Not at all.
    None,
    /// gzip, one member that is complete after every flush.
    Gzip,
    /// zstd, one frame per flush.
    Zstd,
    /// zlib, in packets that hold packets.
    Packets,
}

/// How to record. [`Config::default`] is what the table says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Config {
    /// `OUTPUT`. See [`Config::output_path`] for `%p`.
    pub output: PathBuf,
    /// `BUFFER`, in bytes, for the whole process.
    pub buffer: u64,
    /// `RECOVER`, in bytes.
    pub recover: Option<u64>,
    /// `POLICY`.
    pub policy: Policy,
    /// `FLUSH`; from 1 ms to [`MAX_FLUSH`].
    pub flush: Duration,
    /// `CATEGORIES`.
    pub categories: CategoryFilter,
    /// `FORK`.
    pub fork: ForkPolicy,
    /// `CLOCK`.
    pub clock: ClockChoice,
    /// `SAFE`.
    pub safe: bool,
    /// `MODE`, the permission bits.
    pub mode: Option<u32>,
    /// `COMPRESS`. See [`Config::compression`].
    pub compress: Compress,
    /// `DURATION`.
    pub duration: Option<Duration>,
    /// `ROTATE`.
    pub rotate: Option<Rotate>,
    /// `KEEP`.
    pub keep: Option<u32>,
    /// `FLIGHT`.
    pub flight: Option<Duration>,
    /// `FLIGHT_MEMORY`, in bytes, for all processes of a recording.
    pub flight_memory: u64,
    /// `DUMP_ON`.
    pub dump_on: DumpOn,
    /// `PROCESS_NAME`.
    pub process_name: Option<String>,
    /// `PYTORCH`.
    pub pytorch: PyTorch,
    /// `PYTHON`.
    pub python: Python,
    /// `PYTORCH_MEMORY`.
    pub pytorch_memory: bool,
    /// `ACTIVITY_TYPES`.
    pub activity_types: String,
    /// `GPU_COUNTERS`.
    pub gpu_counters: Option<Duration>,
    /// `ALL_ARGS`.
    pub all_args: bool,
    /// `SAMPLES`.
    pub samples: bool,
    /// `CUPTI_PATH`.
    pub cupti_path: Option<PathBuf>,
    /// `ALSO`.
    pub also: Vec<PathBuf>,
    /// `CUPTI_FINALIZE`.
    pub cupti_finalize: bool,
    /// `PTI_PATH`.
    pub pti_path: Option<PathBuf>,
    /// `TRACE_PROCESSOR`.
    pub trace_processor: Option<String>,
    /// `CONTROL`.
    pub control: Option<PathBuf>,
    /// `DAEMON` and what goes with it.
    pub daemon: Daemon,
    /// `WAIT`.
    pub wait: bool,
    /// `SIGNAL`, its number.
    pub signal: Option<i32>,
    /// `KINETO_CONFIG`.
    pub kineto_config: Option<PathBuf>,
    /// `SOCKETS`.
    pub sockets: Option<PathBuf>,
    /// `TRACE_DIRS`; empty when unset.
    pub trace_dirs: Vec<PathBuf>,
    /// `JSON_NOTES`.
    pub json_notes: Option<PathBuf>,
    /// `KEEPER`.
    pub keeper: Option<PathBuf>,
    /// `LIBRARY`.
    pub library: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Config {
            output: PathBuf::new(),
            buffer: 0,
            recover: None,
            policy: Policy::Drop,
            flush: MAX_FLUSH,
            categories: CategoryFilter::default(),
            fork: ForkPolicy::Record,
            clock: ClockChoice::Auto,
            safe: false,
            mode: None,
            compress: Compress::Auto,
            duration: None,
            rotate: None,
            keep: None,
            flight: None,
            flight_memory: 0,
            dump_on: DumpOn::default(),
            process_name: None,
            pytorch: PyTorch::Auto,
            python: Python::Off,
            pytorch_memory: false,
            activity_types: String::new(),
            gpu_counters: None,
            all_args: false,
            samples: false,
            cupti_path: None,
            also: Vec::new(),
            cupti_finalize: true,
            pti_path: None,
            trace_processor: None,
            control: None,
            daemon: Daemon::NONE,
            wait: false,
            signal: None,
            kineto_config: None,
            sockets: None,
            trace_dirs: Vec::new(),
            json_notes: None,
            keeper: None,
            library: None,
        };
        // The table's defaults are the defaults: there is no second list to disagree with
        // it. That each parses is a test.
        for option in OPTIONS {
            let _ = (option.set)(&mut config, option.default.as_ref());
        }
        config
    }
}

impl Config {
    /// The default, writing to `path`.
    pub fn to_file(path: impl Into<PathBuf>) -> Config {
        Config { output: path.into(), ..Config::default() }
    }

    /// Sets one option. `key` is a key of [`OPTIONS`], in any case; an empty value stands
    /// for the default.
    ///
    /// # Errors
    /// An unknown key or a bad value; the configuration is then as before.
    pub fn set(&mut self, key: &str, value: impl AsRef<OsStr>) -> Result<(), Problem> {
        self.set_from(key, value.as_ref(), key)
    }

    fn set_from(&mut self, key: &str, value: &OsStr, name: &str) -> Result<(), Problem> {
        let Some(option) = OPTIONS.iter().find(|o| o.key.eq_ignore_ascii_case(key)) else {
            return Err(Problem::unknown(key, name));
        };
        let set = if value.is_empty() { option.default.as_ref() } else { value };
        (option.set)(self, set).map_err(|why| Problem::bad(name, value, &why))
    }

    /// Reads `KEY=VALUE` lines. Blank lines and lines that begin with `#` are skipped;
    /// spaces around key and value do not count. Later lines win. What cannot be used is
    /// reported and leaves its option as it was.
    pub fn parse_text(text: &str) -> (Config, Vec<Problem>) {
        let mut config = Config::default();
        let problems = config.apply_text(text);
        (config, problems)
    }

    /// As [`Config::parse_text`], on top of this configuration.
    pub fn apply_text(&mut self, text: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = format!("line {}", number + 1);
            let result = match line.split_once('=') {
                Some((key, value)) => {
                    let (key, value) = (key.trim(), value.trim());
                    self.set_from(key, value.as_ref(), &format!("{at}: {key}"))
                }
                None => Err(Problem(format!("{at}: `{line}` is not KEY=VALUE"))),
            };
            problems.extend(result.err());
        }
        problems
    }

    /// Reads the environment: every variable whose name begins with `KYMOGRAPH_`, and those
    /// by which Kineto finds its daemon.
    ///
    /// In a program that has more rights than who started it (setuid, setgid, file
    /// capabilities) the environment is ignored, and `SAFE` is on: the folder that it was
    /// started in is not its own choice either.
    ///
    /// Reads `environ`, which is not safe against another thread that calls `setenv` at
    /// the same moment: call it from the library's constructor, or early.
    pub fn from_env() -> (Config, Vec<Problem>) {
        if is_privileged() {
            return (Config { safe: true, ..Config::default() }, Vec::new());
        }
        Config::from_vars(std::env::vars_os())
    }

    /// As [`Config::from_env`], from variables that the caller has.
    pub fn from_vars<K, V>(vars: impl IntoIterator<Item = (K, V)>) -> (Config, Vec<Problem>)
    where
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let mut config = Config::default();
        let mut problems = Vec::new();
        let (mut ours, mut kinetos) = (Vec::new(), Vec::new());
        for (name, value) in vars {
            let Some(name) = name.as_ref().to_str() else {
                continue;
            };
            let Some(key) = name.strip_prefix("KYMOGRAPH_") else {
                kinetos.extend(daemon::of_kineto(name, value.as_ref()));
                continue;
            };
            problems.extend(config.set_from(key, value.as_ref(), name).err());
            ours.push(key.to_ascii_uppercase());
        }
        // Ours say more precisely what is meant.
        kinetos.retain(|(key, _)| !ours.iter().any(|ours| ours == key));
        for (key, value) in kinetos {
            problems.extend(config.set_from(key, &value, key).err());
        }
        (config, problems)
    }

    /// The output for the process `pid`: `%p` in it becomes the process id. A forked child
    /// that has no shared output of `kymo record` (`forked`) and no `%p` to tell it from
    /// its parent gets its id before the extension: `trace.4711.pftrace`.
    pub fn output_path(&self, pid: u32, forked: bool) -> PathBuf {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let path = self.output.as_os_str().as_bytes();
        let pid = pid.to_string();
        if let Some(at) = path.windows(2).position(|w| w == b"%p") {
            let expanded = [&path[..at], pid.as_bytes(), &path[at + 2..]].concat();
            return std::ffi::OsString::from_vec(expanded).into();
        }
        if !forked {
            return self.output.clone();
        }
        inserted(path, pid.as_bytes())
    }

    /// The numbered files beside the output: `trace.1.pftrace` for `trace.pftrace`.
    pub fn numbered_path(&self, number: u32) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let path = self.output_path(std::process::id(), false);
        inserted(path.as_os_str().as_bytes(), number.to_string().as_bytes())
    }

    /// How long the end of a recording may take that keeps in memory what it has.
    pub(crate) fn closing_time(&self) -> Duration {
        let writes = self.flight.is_some() && self.dump_on.exit;
        Duration::from_secs(if writes { 60 } else { 0 })
    }

    /// Whether `ACTIVITY_TYPES` asks for what Kineto calls so: nothing in it asks for all.
    pub(crate) fn records(&self, activity: &str) -> bool {
        let mut names = self.activity_types.split(',').map(str::trim).filter(|n| !n.is_empty());
        names.clone().next().is_none() || names.any(|name| name.eq_ignore_ascii_case(activity))
    }

    /// The compression that the output gets: `COMPRESS`, with `auto` decided by the
    /// extension. Never [`Compress::Auto`].
    pub fn compression(&self) -> Compress {
        match self.compress {
            Compress::Auto => match self.output.extension().and_then(OsStr::to_str) {
                Some("gz") => Compress::Gzip,
                Some("zst") => Compress::Zstd,
                _ => Compress::None,
            },
            chosen => chosen,
        }
    }
}

/// A path with something before the extension.
fn inserted(path: &[u8], what: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    // Before the first dot of the name, not the last: `t.pftrace.gz` keeps both.
    let name = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let dot = path[name..].iter().skip(1).position(|&b| b == b'.');
    let at = dot.map_or(path.len(), |dot| name + 1 + dot);
    std::ffi::OsString::from_vec([&path[..at], b".", what, &path[at..]].concat()).into()
}

/// Reads a duration such as `200ms`: a number and its unit, from `ns` to `h`, up to a year.
#[doc(hidden)]
pub fn duration(text: &str) -> Result<Duration, String> {
    value::duration(text.as_ref())
}

/// Something in the options that could not be used. `Display` gives one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem(String);

impl Problem {
    fn unknown(key: &str, name: &str) -> Problem {
        let near = OPTIONS
            .iter()
            .map(|o| (value::distance(&key.to_ascii_uppercase(), o.key), o))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, o)| *distance <= 1 + o.key.len() / 3);
        Problem(match near {
            Some((_, o)) if name.starts_with("KYMOGRAPH_") => {
                format!("{name}: no such option; did you mean {}?", o.env)
            }
            Some((_, o)) => format!("{name}: no such option; did you mean {}?", o.key),
            None => {
                let keys: Vec<_> = OPTIONS.iter().map(|o| o.key).collect();
                format!("{name}: no such option; there are {}", keys.join(", "))
            }
        })
    }

    fn bad(name: &str, value: &OsStr, why: &str) -> Problem {
        Problem(format!("{name}={}: {why}", Path::new(value).display()))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}
