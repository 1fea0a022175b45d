//! `kymo record`: runs a command with the library injected.
//!
//! `kymo` creates the output and the rendezvous directory where processes join the recording,
//! names the directory in the command's environment, and encodes what the processes record
//! ([`kymograph::collect`]). The output is a valid trace even if `kymo` is killed meanwhile.

use super::command::{self, Environment};
use super::destination::Destination;
use super::follow::Follow;
use super::help as texts;
use super::json::Json;
use super::launch;
use super::post::Server;
use super::status::{self, Line};
use super::witness::Witness;
use super::{Failure, ask, elf, ending, library, print, say, suffix, trigger};
use clap::Args;
use kymograph::capture::Rule;
use kymograph::clock;
use kymograph::collect::{Collector, Keeper, Outcome};
use kymograph::config::{Compress, Config, OPTIONS};
use kymograph::control::{Page, Rendezvous, State, Totals};
use kymograph::sink;
use kymograph_backends::vendors::{VENDORS, Variable};
use kymograph_protos::packet::{self, Fact};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Variables by which annotation libraries are told to be recorded. What vendors' libraries need
/// is in their table.
const COLLECTORS: [(&str, Variable); 2] =
    [("NVTX_INJECTION64_PATH", Variable::Library), ("INTEL_LIBITTNOTIFY64", Variable::Library)];

/// Records a command, its children and grandchildren into one trace.
#[derive(Args)]
#[command(override_usage = "kymo record [OPTIONS] [--] COMMAND [ARGS]...")]
#[command(after_long_help = texts::settings(false))]
pub(super) struct Record {
    #[arg(short, long, value_name = "FILE", help = help("OUTPUT"))]
    output: Option<PathBuf>,
    #[arg(long, visible_alias = "domain", value_name = "LIST", help = help("CATEGORIES"))]
    #[arg(allow_hyphen_values = true)]
    category: Vec<String>,
    #[arg(long, value_name = "DURATION", help = help("DURATION"))]
    duration: Option<String>,
    /// Leave the first part of the program out: the trace, and --duration, begin this long after
    /// the command.
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["wait", "flight"])]
    #[arg(value_parser = kymograph::config::duration)]
    delay: Option<Duration>,
    /// Keep only what happens in ranges of the program: between calls of cudaProfilerStart and
    /// cudaProfilerStop, or in an NVTX range of this name (and domain; * stands for anything).
    #[arg(long, value_name = "cudaProfilerApi|nvtx:NAME[@DOMAIN]")]
    #[arg(conflicts_with_all = ["wait", "flight", "rotate", "duration", "delay"])]
    capture_range: Option<String>,
    /// When such a range has ended: keep no other one, each, or each of the first N. They all
    /// are in the one trace.
    #[arg(
        long,
        value_name = "stop|repeat[:N]",
        default_value = "stop",
        requires = "capture_range"
    )]
    capture_range_end: String,
    #[arg(long, value_name = "DURATION", conflicts_with = "wait", help = help("FLIGHT"))]
    flight: Option<String>,
    #[arg(long, value_name = "SIZE", help = help("FLIGHT_MEMORY"))]
    memory: Option<String>,
    #[arg(long, value_name = "LIST", help = help("DUMP_ON"))]
    dump_on: Option<String>,
    #[arg(long, value_name = "SIZE|DURATION", conflicts_with = "flight", help = help("ROTATE"))]
    rotate: Option<String>,
    #[arg(long, value_name = "NUMBER", help = help("KEEP"))]
    keep: Option<String>,
    #[arg(long, value_name = "PATH", help = help("ALSO"))]
    also: Option<String>,
    #[arg(long, value_name = "URL", help = help("TRACE_PROCESSOR"))]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "http://127.0.0.1:9001")]
    to_trace_processor: Option<String>,
    #[arg(long, value_name = "SIZE", help = help("BUFFER"))]
    buffer: Option<String>,
    #[arg(long, value_name = "DURATION", help = help("FLUSH"))]
    flush_interval: Option<String>,
    #[arg(long, value_name = "POLICY", help = help("POLICY"))]
    policy: Option<String>,
    #[arg(long, value_name = "OCTAL", help = help("MODE"))]
    mode: Option<String>,
    #[arg(long, help = help("SAFE"))]
    safe: bool,
    #[arg(long, value_name = "DURATION", help = help("GPU_COUNTERS"))]
    gpu_counters: Option<String>,
    #[arg(long, value_name = "auto|on|shapes|off", help = help("PYTORCH"))]
    pytorch: Option<String>,
    #[arg(long, value_name = "functions|modules|sampled[=HZ]|off", help = help("PYTHON"))]
    python: Option<String>,
    #[arg(long, help = help("PYTORCH_MEMORY"))]
    pytorch_memory: bool,
    /// Record nothing until `kymo trigger` asks for a trace.
    #[arg(long, conflicts_with_all = ["output", "duration", "rotate", "also"])]
    #[arg(conflicts_with_all = ["to_trace_processor", "dump_on", "memory"])]
    wait: bool,
    /// Not possible: says what is.
    #[arg(long, value_name = "PID", conflicts_with_all = ["wait", "command"])]
    pid: Option<u32>,
    /// Any option by its name (see `kymo record --help` for all of them).
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Go on until all processes that the command has started have ended, daemons included.
    #[arg(long, conflicts_with = "wait")]
    wait_all: bool,
    /// Replace the output even if it is not a trace.
    #[arg(long, conflicts_with = "wait")]
    force: bool,
    /// Say nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// Show all settings, also those that Kymograph makes itself.
    #[arg(long, conflicts_with = "command")]
    help_all: bool,
    /// The command and its arguments.
    #[arg(required_unless_present_any = ["pid", "help_all"], trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

fn help(key: &str) -> String {
    let option = OPTIONS.iter().find(|option| option.key == key);
    option.map_or(String::new(), |option| match option.default {
        "" => option.help.to_owned(),
        default => format!("{} [default: {default}]", option.help),
    })
}

impl Record {
    /// Records; the result is the command's.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if self.help_all {
            print(&texts::settings(true));
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(pid) = self.pid {
            return Err(attach(pid)?);
        }
        let capture = self.capture_range.as_ref();
        let capture = capture.map(|range| Rule::parse(range, &self.capture_range_end));
        let capture =
            capture.transpose().map_err(|why| Failure(format!("--capture-range {why}")))?;
        let (mut config, mut settings) = self.settings()?;
        if std::env::var_os("KYMOGRAPH_WAIT").is_some() && !self.wait {
            // Of a `kymo record --wait` around this one.
            settings.insert("KYMOGRAPH_WAIT", "0".into());
        }
        if self.wait {
            return self.wait(&config, settings);
        }
        let program = command::find(&self.command[0])?;
        let library = library::find(&config)?;
        let output = std::path::absolute(config.output_path(std::process::id(), false))?;
        refuse_other_files(&output, self.force)?;
        suffix::refuse_for_recordings(&config.output)?;
        config.output = output;
        let destinations = destinations(&config)?;
        // Kept for as long as the recording lasts: it holds the lock that keeps others out.
        let output = sink::File::create(&config.output, config.safe, config.mode)?;
        let witness = Witness::of(&config.output)?;
        let rendezvous = Rendezvous::create()?;
        let page = &Arc::new(Page::new());
        let mut collector = Collector::create(rendezvous.folder())?;
        config.control = Some(rendezvous.control());
        settings.insert("KYMOGRAPH_OUTPUT", config.output.clone().into());
        settings.insert("KYMOGRAPH_CONTROL", rendezvous.control().into());

        let environment = self.environment(&program, &library, &settings)?;
        if let Some(delay) = self.delay {
            page.set_delay(delay);
        }
        capture.into_iter().for_each(|rule| page.set_capture(rule));
        if let Some(duration) = config.duration {
            page.set_duration(duration.saturating_add(self.delay.unwrap_or_default()));
        }
        let running = launch::start(&self.words()?, &environment.into_c())?;
        // Not before: the child of a process with threads could do little before `exec`.
        collector.start(&config, page, running.pid())?;
        let follow = |to| Follow::start(to, &config.output, page);
        let follow = destinations.into_iter().map(follow).collect::<Result<Vec<_>, _>>()?;
        let mut line = Line::new(self.quiet);
        let interval = line.as_ref().map(|_| status::INTERVAL);
        let ended = running.wait(interval, || {
            if let Some(line) = &mut line {
                line.draw(page);
            }
        });
        collector.command_ended(running.pid(), ended.signal().unwrap_or(0));
        while self.wait_all && collector.anybody_runs() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(line) = &mut line {
            line.clear();
        }
        let obstacle =
            elf::obstacle(&program).map(|obstacle| (program.display().to_string(), obstacle.why));
        let command = ending::Command { pid: running.pid(), obstacle, signal: ended.signal() };
        let outcome = collector.finish();
        let length = self.finish(config, (&rendezvous, page), witness, command, &outcome);
        for follow in follow {
            let outcome = follow.finish(length);
            if !self.quiet {
                say(&outcome);
            }
        }
        drop((rendezvous, output));
        Ok(ended.imitate())
    }

    /// Runs the command so that it can be asked for traces.
    fn wait(
        &self,
        config: &Config,
        mut settings: BTreeMap<&'static str, OsString>,
    ) -> Result<ExitCode, Failure> {
        let program = command::find(&self.command[0])?;
        let library = library::find(config)?;
        settings.insert("KYMOGRAPH_WAIT", "1".into());
        let rendezvous = Rendezvous::create()?;
        // Only daemons' users ask for JSON in this way.
        let asked = !config.daemon.name.is_empty();
        let mut keeper = Keeper::create(rendezvous.folder())?;
        settings.insert("KYMOGRAPH_KEEPER", rendezvous.folder().into());
        let json = asked.then(|| Json::in_folder(rendezvous.folder().join("json"))).transpose()?;
        settings.extend(json.iter().map(|json| ("KYMOGRAPH_JSON_NOTES", json.folder().into())));
        let environment = self.environment(&program, &library, &settings)?;
        let running = launch::start(&self.words()?, &environment.into_c())?;
        let json = json.map(Json::start);
        keeper.start()?;
        let ended = running.wait(None, || {});
        let quiet = self.quiet;
        keeper
            .finish()
            .iter()
            .filter(|said| !quiet || said.is_bad)
            .for_each(|said| say(&said.text));
        drop((json, rendezvous));
        Ok(ended.imitate())
    }

    fn words(&self) -> Result<Vec<CString>, Failure> {
        let words = self.command.iter().map(|word| CString::new(word.as_bytes()));
        Ok(words.collect::<Result<Vec<_>, _>>()?)
    }

    /// What the command is started with.
    fn environment(
        &self,
        program: &Path,
        library: &Path,
        settings: &BTreeMap<&'static str, OsString>,
    ) -> Result<Environment, Failure> {
        let obstacle = elf::obstacle(program);
        if let (Some(obstacle), false) = (obstacle, self.quiet) {
            say(&format!(
                "{} {}: it runs, but cannot be recorded itself (its children may be)",
                program.display(),
                obstacle.why
            ));
        }
        let mut environment = Environment::inherited();
        environment.extend(settings);
        inject(&mut environment, library, self.quiet)?;
        Ok(environment)
    }

    /// The configuration, and what of it the command has to be told.
    fn settings(&self) -> Result<(Config, BTreeMap<&'static str, OsString>), Failure> {
        let (mut config, problems) = Config::from_env();
        if let Some(problem) = problems.first() {
            return Err(problem.into());
        }
        // Of a `kymo record` around this one.
        config.control = None;
        config.wait = false;
        let mut given: Vec<(&str, &OsStr)> = Vec::new();
        for setting in &self.set {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(Failure(format!(
                    "--set {setting}: expected KEY=VALUE, such as --set CLOCK=boottime"
                )));
            };
            given.push((key, value.as_ref()));
        }
        let categories = self.category.join(",");
        let texts = [
            ("CATEGORIES", (!self.category.is_empty()).then_some(&categories)),
            ("DURATION", self.duration.as_ref()),
            ("FLIGHT", self.flight.as_ref()),
            ("FLIGHT_MEMORY", self.memory.as_ref()),
            ("DUMP_ON", self.dump_on.as_ref()),
            ("ROTATE", self.rotate.as_ref()),
            ("KEEP", self.keep.as_ref()),
            ("ALSO", self.also.as_ref()),
            ("TRACE_PROCESSOR", self.to_trace_processor.as_ref()),
            ("BUFFER", self.buffer.as_ref()),
            ("FLUSH", self.flush_interval.as_ref()),
            ("POLICY", self.policy.as_ref()),
            ("MODE", self.mode.as_ref()),
            ("PYTORCH", self.pytorch.as_ref()),
            ("PYTHON", self.python.as_ref()),
            ("GPU_COUNTERS", self.gpu_counters.as_ref()),
        ];
        given.extend(texts.iter().filter_map(|(key, text)| Some((*key, text.as_ref()?.as_ref()))));
        given.extend(self.output.as_ref().map(|path| ("OUTPUT", path.as_os_str())));
        given.extend(self.safe.then_some(("SAFE", "1".as_ref())));
        given.extend(self.pytorch_memory.then_some(("PYTORCH_MEMORY", "1".as_ref())));
        let mut settings = BTreeMap::new();
        for (key, value) in given {
            config.set(key, value)?;
            let option = OPTIONS.iter().find(|o| o.key.eq_ignore_ascii_case(key));
            settings.extend(option.map(|option| (option.env, value.to_owned())));
        }
        Ok((config, settings))
    }

    /// After the command and the engines: closes the output. Returns how long that is.
    fn finish(
        &self,
        mut config: Config,
        (rendezvous, page): (&Rendezvous, &Arc<Page>),
        witness: Witness,
        command: ending::Command,
        outcome: &Outcome,
    ) -> u64 {
        let totals = page.totals();
        outcome.refused.iter().for_each(|why| say(&format!("a process is not recorded: {why}")));
        let mut conditions =
            ending::conditions(&config, (rendezvous, page), command, &totals, outcome);
        if config.flight.is_some() || config.rotate.is_some() {
            let what = if config.flight.is_some() { "dump" } else { "part" };
            self.tell_of_numbered(what, &config, page);
            let dumped = totals.events == 0 && page.files() > 0;
            if config.flight.is_none() || !config.dump_on.exit || dumped {
                page.set_state(State::Closed);
                // It was made to find out whether it can be.
                let _ = std::fs::remove_file(&config.output);
                (conditions.numbered, conditions.in_memory) = (true, false);
                if !self.quiet {
                    ending::tell(&conditions, page);
                }
                return 0;
            }
        }
        let mut output = ending::Output::new(witness, config.output.clone());
        let length = if output.find(page.committed()) {
            config.output.clone_from(&output.path);
            let last = last_packets(&config, page, &totals);
            sink::seal(&config, page.clone(), &last).unwrap_or_else(|error| {
                say(&error.to_string());
                page.committed()
            })
        } else {
            page.set_state(State::Closed);
            config.output.metadata().map_or(0, |file| file.len())
        };
        if page.opens() > clock::system(libc::CLOCK_BOOTTIME) && !self.quiet {
            say("the command ended before --delay was over: nothing of it is in the trace");
        }
        if let Some(range) = self.capture_range.as_ref().filter(|_| page.windows() == 0) {
            say(&no_range(range));
        }
        if !self.quiet {
            output.summary(&totals, length).iter().for_each(|line| say(line));
            ending::tell(&conditions, page);
        }
        length
    }
}

impl Record {
    /// The numbered files that were written meanwhile.
    fn tell_of_numbered(&self, what: &str, config: &Config, page: &Page) {
        let kept = config.keep.map_or(0, |keep| page.files().saturating_sub(keep));
        for number in kept + 1..=page.files() {
            let path = config.numbered_path(number);
            match page.numbered(number).map(|file| file.totals()) {
                Some(totals) if !self.quiet => {
                    let length = path.metadata().map_or(0, |file| file.len());
                    say(&format!("{what} {number}: {}", status::contents(&totals, &path, length)));
                }
                Some(_) => {}
                None => say(&format!("{what} {number}: {} was not written", path.display())),
            }
        }
    }
}

/// Why nothing is in the trace of what is kept in ranges only.
fn no_range(range: &str) -> String {
    let why = match range.strip_prefix("nvtx:") {
        Some(name) if name.contains('@') => {
            "no range of that name began in that domain; `kymo info` shows names, and \
             --capture-range 'nvtx:NAME@*' takes all domains"
        }
        Some(_) => {
            "no range of that name began in NVTX's default domain; \
             --capture-range 'nvtx:NAME@*' takes all domains"
        }
        None => {
            "the command did not call cudaProfilerStart, or CUDA's calls are not recorded here \
                 (see `kymo doctor`)"
        }
    };
    format!("nothing is kept of the command: {why}")
}

/// Where the trace is to be sent while it is written.
fn destinations(config: &Config) -> Result<Vec<Destination>, Failure> {
    let also = config.also.iter().map(std::path::absolute);
    let mut to = also.map(|path| path.map(Destination::File)).collect::<Result<Vec<_>, _>>()?;
    if let Some(url) = &config.trace_processor {
        to.push(Destination::Server(Server::parse(url)?));
    }
    let whole = config.rotate.is_none() && (config.flight.is_none() || config.dump_on.exit);
    if !to.is_empty() && !whole {
        let (option, instead) = match config.rotate {
            Some(_) => ("--rotate", "several traces, each a file of its own"),
            None => ("--dump-on without exit", "dumps, each a file of its own"),
        };
        return Err(Failure(format!(
            "{option} makes {instead}: there is no one trace that --also or --to-trace-processor \
             could send; leave one of them out"
        )));
    }
    if !to.is_empty() && config.compression() == Compress::Gzip {
        return Err(Failure(format!(
            "a gzip file is not final before its end, so that it cannot be sent while it is \
             written; give {} another extension, or COMPRESS=none",
            config.output.display()
        )));
    }
    Ok(to)
}

/// A process that runs already: what can be done instead of recording it from outside.
fn attach(pid: u32) -> Result<Failure, Failure> {
    let there = ask::processes()?.iter().any(|process| process.pid == pid);
    Ok(Failure(if there {
        format!(
            "{pid} can be asked for a trace: `kymo trigger --pid {pid} --duration 1s -o t.pftrace`"
        )
    } else {
        format!("{pid} cannot be recorded: {}", trigger::why_not(pid))
    }))
}

/// `-o` with the name of a script or a result in it is a slip that would destroy it.
fn refuse_other_files(output: &Path, force: bool) -> Result<(), Failure> {
    let Ok(metadata) = output.metadata() else {
        return Ok(());
    };
    let shown = output.display();
    if metadata.is_dir() {
        return Err(Failure(format!("{shown} is a folder; name a file in it")));
    }
    if !metadata.is_file() {
        return Err(Failure(format!(
            "{shown} is not a regular file, which several processes could share; name a file"
        )));
    }
    if force || !sink::is_something_else(output) {
        return Ok(());
    }
    let why = "exists and is not a trace; choose another file, or replace it with --force";
    Err(Failure(format!("{shown} {why}")))
}

/// Adds what makes the command load the library.
fn inject(environment: &mut Environment, library: &Path, quiet: bool) -> Result<(), Failure> {
    let preload = library::preloadable(library)?;
    let mut list = environment.get("LD_PRELOAD").unwrap_or_default().to_owned();
    let separators = |byte: &u8| b" :".contains(byte);
    let mut entries = list.as_bytes().split(separators);
    if !entries.any(|entry| entry == preload.as_bytes()) {
        if !list.is_empty() {
            list.push(":");
        }
        list.push(&preload);
        environment.set("LD_PRELOAD", list);
    }
    // AddressSanitizer ends a program in which another library comes before its own, lest
    // that one replaces functions of the C library that it replaces. Ours does not.
    let mut sanitizer = environment.get("ASAN_OPTIONS").unwrap_or_default().to_owned();
    if !sanitizer.is_empty() {
        sanitizer.push(":");
    }
    sanitizer.push("verify_asan_link_order=0");
    environment.set("ASAN_OPTIONS", sanitizer);
    let vendors = VENDORS.iter().flat_map(|vendor| vendor.environment);
    for (name, setting) in COLLECTORS.iter().chain(vendors) {
        let value = match setting {
            Variable::Library => library.as_os_str(),
            Variable::Default(text) => OsStr::new(text),
        };
        match environment.get(name) {
            Some(_) if matches!(setting, Variable::Default(_)) => {}
            Some(theirs) if !theirs.is_empty() && theirs != value => {
                if !quiet {
                    let theirs = theirs.display();
                    say(&format!(
                        "{name} is {theirs} already and stays so: what it collects is not \
                         recorded; unset it to record"
                    ));
                }
            }
            _ => environment.set(name, value),
        }
    }
    Ok(())
}

/// What the trace says of itself at its end: how much was recorded, and what is missing.
fn last_packets(config: &Config, page: &Page, totals: &Totals) -> Vec<u8> {
    let mut out = Vec::new();
    let sequence = page.take_sequences(1);
    let number = |n: u64| Fact::Number(n as i64);
    let metadata = [
        ("kymograph.processes", number(totals.processes.into())),
        ("kymograph.threads", number(totals.threads.into())),
        ("kymograph.events", number(totals.events)),
        ("kymograph.lost", number(totals.lost)),
    ];
    packet::trace_attributes(&mut out, sequence, &metadata);
    // The processes stated them as of the beginning.
    packet::clock_snapshot(&mut out, sequence, &clock::snapshot());
    if totals.lost > 0 {
        packet::trace_stats(&mut out, sequence, config.buffer, totals.lost, &[]);
    }
    out
}
