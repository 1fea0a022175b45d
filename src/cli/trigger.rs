//! `kymo trigger` and `kymo stop`: asks processes for traces, and waits for them.

use super::ask::{self, Conversation, Process};
use super::shown::printable;
use super::{Failure, print, ps, say, suffix};
use clap::Args;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How far ahead several processes agree to start, so that all have heard by then.
const AGREED: Duration = Duration::from_millis(300);

/// Has a process throw away what it was asked for.
const CANCEL: &str = "cancel";

const EXAMPLES: &str = "\
EXAMPLES
  Half a second of one process:
      kymo trigger --pid 4711 --duration 500ms -o app.pftrace
  Ten iterations of a training (it calls kymo_step(), or PyTorch does), in all its processes:
      kymo trigger --all --iterations 10 -o train.pftrace
  Ten iterations of any program that puts them into NVTX ranges step1, step2 and so on:
      kymo trigger --iterations 10 --iteration-of 'step*' -o server.pftrace
  The same window on many hosts, from a script that runs this on each of them:
      kymo trigger --all --duration 2s --at 1767225600.0 -o /shared/%p.pftrace
  What PyTorch has in the GPUs' memory, and what it allocates in two seconds:
      kymo trigger --pid 4711 --memory-snapshot memory.pickle --duration 2s
  What a flight recorder holds, which was started with `kymo record --flight 30s`:
      kymo trigger --pid 4711 --dump

Ctrl-C stops it early; what was recorded so far is kept.";

/// Which processes.
#[derive(Args)]
struct Which {
    /// These processes.
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Those that their launcher (torchrun, SLURM, MPI) gave these ranks.
    #[arg(long, value_name = "RANK", value_delimiter = ',')]
    rank: Vec<u32>,
    /// All that can be asked. Without any of these: the only one there is.
    #[arg(long)]
    all: bool,
}

/// Asks processes for traces of what they are doing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Trigger {
    #[command(flatten)]
    which: Which,
    /// Have flight recorders (`kymo record --flight`) write what they hold, instead of
    /// recording something new: into the next of the numbered files beside their output.
    #[arg(long, conflicts_with_all = ["duration", "iterations", "output", "set"])]
    dump: bool,
    /// Have Python programs write what PyTorch has in the memory of GPUs, and when that was
    /// allocated, as torch.cuda.memory._dump_snapshot does (see pytorch.org/memory_viz). With
    /// --duration, allocations are kept for that long first, as on-demand profiling does.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dump", "iterations", "output", "set", "at", "warmup"])]
    memory_snapshot: Option<PathBuf>,
    /// How long to record, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION")]
    duration: Option<String>,
    /// How many iterations to record. With --duration as well: that long, if the program
    /// does not say where iterations begin.
    #[arg(long, value_name = "NUMBER")]
    iterations: Option<u64>,
    /// What an iteration is: a range of this name, in which * stands for anything; unset: what
    /// lies between two calls of kymo_step(), or of PyTorch's step().
    #[arg(long, value_name = "NAME", requires = "iterations")]
    #[arg(conflicts_with_all = ["duration", "first_iteration", "warmup"])]
    iteration_of: Option<String>,
    /// The first iteration; unset: the next.
    #[arg(long, value_name = "NUMBER", requires = "iterations")]
    first_iteration: Option<u64>,
    /// How long sources are on before what they say is kept: a duration, or iterations.
    #[arg(long, value_name = "DURATION|NUMBER")]
    warmup: Option<String>,
    /// When to start: seconds since 1970, or +DURATION from now. Several processes start
    /// together in any case.
    #[arg(long, value_name = "TIME", conflicts_with = "iterations")]
    at: Option<String>,
    /// The trace; %p becomes the process id, and is added for several processes.
    #[arg(short, long, value_name = "FILE", default_value = "trace.pftrace")]
    output: PathBuf,
    /// Any option by its name, as for `kymo record`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Say nothing but paths and errors.
    #[arg(short, long)]
    quiet: bool,
}

/// Ends traces that were asked for, and keeps what they have so far.
#[derive(Args)]
pub(super) struct Stop {
    #[command(flatten)]
    which: Which,
    /// Throw it away instead.
    #[arg(long)]
    discard: bool,
    /// Say nothing but paths and errors.
    #[arg(short, long)]
    quiet: bool,
}

impl Which {
    /// The processes that were named, and those that cannot be asked.
    fn find(&self) -> Result<(Vec<Process>, Vec<u32>), Failure> {
        let mut processes = ask::processes()?;
        if self.pid.is_empty() && self.rank.is_empty() && !self.all {
            return match processes.len() {
                0 => Err(Failure(ps::NONE.to_owned())),
                1 => Ok((processes, Vec::new())),
                n => Err(Failure(format!(
                    "{n} processes can be asked for traces: name some with --pid or --rank (see \
                     `kymo ps`), or say --all"
                ))),
            };
        }
        let missing = |pid: &&u32| processes.iter().all(|process| process.pid != **pid);
        let missing: Vec<u32> = self.pid.iter().filter(missing).copied().collect();
        let others = processes.len();
        let mut ranked = self.ranked(&processes);
        processes.retain(|process| {
            let ranked = ranked.next().unwrap_or(false);
            self.all || self.pid.contains(&process.pid) || ranked
        });
        if processes.is_empty() && missing.is_empty() {
            return Err(Failure(match self.rank.is_empty() || others == 0 {
                true => ps::NONE.to_owned(),
                false => "no process that can be asked has such a rank; see `kymo ps`".to_owned(),
            }));
        }
        Ok((processes, missing))
    }
}

impl Which {
    /// Whether each process has one of the ranks; no process is asked if that does not matter.
    fn ranked(&self, processes: &[Process]) -> std::vec::IntoIter<bool> {
        if self.rank.is_empty() || self.all {
            return Vec::new().into_iter();
        }
        let rank = |status: Option<BTreeMap<String, String>>| status?.get("rank")?.parse().ok();
        let ranks = ask::statuses(processes).into_iter().map(rank);
        let wanted = ranks.map(|rank| rank.is_some_and(|rank| self.rank.contains(&rank)));
        wanted.collect::<Vec<_>>().into_iter()
    }
}

impl Trigger {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let (processes, missing) = self.which.find()?;
        let lines = self.lines(processes.len() + missing.len() > 1)?;
        conduct(&processes, &missing, &lines, self.quiet)
    }

    /// The request.
    fn lines(&self, several: bool) -> Result<String, Failure> {
        if self.dump {
            return Ok("dump".to_owned());
        }
        let snapshot = self.memory_snapshot.as_ref();
        if snapshot.is_none() && self.duration.is_none() && self.iterations.is_none() {
            return Err(Failure(
                "say how much to record: --duration or --iterations; or --dump, of a flight \
                 recorder; or --memory-snapshot, of PyTorch"
                    .to_owned(),
            ));
        }
        let command = if snapshot.is_some() { "memory-snapshot" } else { "trigger" };
        let mut lines = vec![command.to_owned()];
        let mut add = |key: &str, value: &str| -> Result<(), Failure> {
            if value.contains('\n') {
                return Err(Failure(format!(
                    "{key}: a line cannot be broken; leave out the newline"
                )));
            }
            lines.push(format!("{key}={value}"));
            Ok(())
        };
        if let Some(duration) = &self.duration {
            if seconds(duration).is_none() {
                return Err(Failure(format!(
                    "--duration {duration}: expected a duration such as 500us, 200ms, 1.5s or 10m"
                )));
            }
            add("TIME", duration)?;
        }
        if let Some(iterations) = self.iterations {
            add("ITERATIONS", &iterations.to_string())?;
        }
        if let Some(name) = &self.iteration_of {
            if name.trim().is_empty() {
                return Err(Failure("--iteration-of: expected a name such as 'step*'".to_owned()));
            }
            add("ITERATION_OF", name)?;
        }
        if let Some(first) = self.first_iteration {
            add("FIRST_ITERATION", &first.to_string())?;
        }
        if let Some(warmup) = &self.warmup {
            let by_steps = warmup.bytes().all(|byte| byte.is_ascii_digit());
            add(if by_steps { "WARMUP_ITERATIONS" } else { "WARMUP" }, warmup)?;
        }
        if let Some(start) = self.start(several)?.filter(|_| snapshot.is_none()) {
            add("START", &start.to_string())?;
        }
        if snapshot.is_none() {
            suffix::refuse_for_recordings(&self.output)?;
        }
        let output = std::path::absolute(snapshot.unwrap_or(&self.output))?;
        let Some(output) = output.to_str() else {
            return Err(Failure("the output's name is not UTF-8; choose another".to_owned()));
        };
        add("OUTPUT", &if several { with_pid(output) } else { output.to_owned() })?;
        for setting in &self.set {
            match setting.split_once('=') {
                Some((key, value)) => add(key, value)?,
                None => return Err(Failure(format!("--set {setting}: expected KEY=VALUE"))),
            }
        }
        Ok(lines.join("\n"))
    }

    /// Nanoseconds since 1970, if the start is not up to each process.
    fn start(&self, several: bool) -> Result<Option<u128>, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Some(at) = &self.at else {
            return Ok((several && self.iterations.is_none()).then(|| {
                let warmup = self.warmup.as_deref().and_then(seconds).unwrap_or_default();
                (now + warmup + AGREED).as_nanos()
            }));
        };
        let expected =
            || Failure(format!("--at {at}: expected seconds since 1970, or +DURATION such as +5s"));
        if let Some(later) = at.strip_prefix('+') {
            return Ok(Some((now + seconds(later).ok_or_else(expected)?).as_nanos()));
        }
        let at: f64 = at.parse().map_err(|_| expected())?;
        if !(0.0..1e11).contains(&at) {
            return Err(expected());
        }
        Ok(Some(Duration::from_secs_f64(at).as_nanos()))
    }
}

/// A duration in the syntax of the options.
fn seconds(text: &str) -> Option<Duration> {
    let mut config = kymograph::Config::default();
    config.set("DURATION", text).ok()?;
    config.duration
}

/// What a process has to say, without the line of the request: that was made here.
fn without_line(text: &str) -> &str {
    let rest = text.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    rest.filter(|(number, _)| number.parse::<u32>().is_ok()).map_or(text, |(_, rest)| rest)
}

/// Several processes cannot write to one file.
fn with_pid(path: &str) -> String {
    if path.contains("%p") {
        return path.to_owned();
    }
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let dot = path[name..].get(1..).and_then(|rest| rest.find('.')).map(|at| name + 1 + at);
    let (stem, rest) = path.split_at(dot.unwrap_or(path.len()));
    format!("{stem}_%p{rest}")
}

impl Stop {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let (processes, missing) = self.which.find()?;
        let command = if self.discard { CANCEL } else { "stop" };
        conduct(&processes, &missing, command, self.quiet)
    }
}

/// A process that has been asked.
struct Asked<'p> {
    process: &'p Process,
    conversation: Conversation,
    facts: BTreeMap<String, String>,
    progress: String,
    is_accepted: bool,
    /// How it ended: the path, or why there is none.
    end: Option<Result<String, String>>,
}

/// Asks all, waits for all, and says what came of it. Succeeds if every process did.
fn conduct(
    processes: &[Process],
    missing: &[u32],
    lines: &str,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let mut good = true;
    for pid in missing {
        good = false;
        say(&format!("{pid}: {}", why_not(*pid)));
    }
    let begin = |process| Asked {
        process,
        conversation: Process::ask(process, lines),
        facts: BTreeMap::new(),
        progress: String::new(),
        is_accepted: false,
        end: None,
    };
    let mut asked: Vec<_> = processes.iter().map(begin).collect();
    let bar = !quiet && std::io::stderr().is_terminal();
    loop {
        asked.iter_mut().filter(|one| one.end.is_none()).for_each(Asked::listen);
        if bar {
            let line = asked.iter().map(Asked::picture).collect::<Vec<_>>().join("  ");
            eprint!("\r\x1b[K{}", line.chars().take(100).collect::<String>());
        }
        let open = asked.iter().filter(|one| one.end.is_none());
        let open: Vec<_> = open.map(|one| &one.conversation).collect();
        if open.is_empty() {
            break;
        }
        ask::wait(&open);
    }
    if bar {
        eprint!("\r\x1b[K");
    }
    for one in &asked {
        good &= one.report(quiet) || (lines == CANCEL && one.is_cancelled());
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Asked<'_> {
    fn listen(&mut self) {
        for line in self.conversation.lines() {
            if line == "accepted" {
                self.is_accepted = true;
            } else if let Some(progress) = line.strip_prefix("progress ") {
                self.progress = progress.to_owned();
            } else if let Some(why) = line.strip_prefix("refused ") {
                self.end = Some(Err(without_line(why).to_owned()));
            } else if let Some(problem) = line.strip_prefix("problem ") {
                say(&format!("{}: {}", self.process.pid, without_line(problem)));
            } else if line == "done" {
                let path = self.facts.get("path").cloned().unwrap_or_default();
                self.end = Some(Ok(path));
            } else if let Some((key, value)) = line.split_once('=') {
                self.facts.insert(key.to_owned(), value.to_owned());
            }
        }
        match self.is_accepted {
            true => self.conversation.expect_news(),
            false => self.conversation.expect_an_answer(),
        }
        if let (None, Some(end)) = (&self.end, self.conversation.end()) {
            self.end = Some(Err(end.to_string()));
        }
    }

    /// Whether it has no trace because that was thrown away.
    fn is_cancelled(&self) -> bool {
        let cancelled = kymograph::session::Refusal::Cancelled.to_string();
        self.end.as_ref().is_some_and(|end| end.as_ref().is_err_and(|why| *why == cancelled))
    }

    /// `4711 [=====     ]`.
    fn picture(&self) -> String {
        let mut words = self.progress.split(' ');
        let phase = words.next().unwrap_or("");
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok());
        let (done, of) = (number().unwrap_or(0.0), number().unwrap_or(0.0));
        let state = match (&self.end, phase) {
            (Some(Ok(_)), _) => "done".to_owned(),
            (Some(Err(_)), _) => "no trace".to_owned(),
            (None, "CollectTrace") if of > 0.0 => {
                let full = (done / of * 20.0) as usize;
                format!("[{:20}]", "=".repeat(full.min(20)))
            }
            (None, "") => "asked".to_owned(),
            (None, "WaitForRequest") => "waits for its start".to_owned(),
            (None, "Warmup") => "warms up".to_owned(),
            (None, "ProcessTrace") => "writes".to_owned(),
            (None, phase) => printable(phase).to_lowercase(),
        };
        format!("{} {state}", self.process.pid)
    }

    /// Prints the path, or why there is none; returns whether there is a whole trace.
    fn report(&self, quiet: bool) -> bool {
        let pid = self.process.pid;
        let fact = |key: &str| self.facts.get(key).map_or("0", String::as_str);
        match &self.end {
            Some(Ok(path)) => {
                print(&format!("{}\n", printable(path)));
                if let Some(failure) = self.facts.get("failure") {
                    say(&format!("{pid}: the trace is not complete: {failure}"));
                    return false;
                }
                if !quiet && !self.facts.contains_key("snapshot") {
                    let lost = match fact("lost") {
                        "0" => String::new(),
                        lost => format!(", {lost} lost"),
                    };
                    let of =
                        self.facts.get("seconds").map_or(String::new(), |s| format!(" of {s} s"));
                    say(&format!("{pid}: {} events{of}{lost}", fact("events")));
                    if fact("missing").bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
                        say(&format!(
                            "{pid}: {} s less than asked for: its memory was full; start it with \
                             more, such as --memory 1G",
                            fact("missing")
                        ));
                    }
                }
                true
            }
            Some(Err(why)) => {
                say(&format!("{pid}: {why}"));
                false
            }
            None => false,
        }
    }
}

/// Why a process cannot be asked, and what to do.
pub(super) fn why_not(pid: u32) -> String {
    if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
        return "there is no such process; see `kymo ps`".to_owned();
    }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    match maps {
        Err(_) => "it belongs to another user; ask as that user, or as root".to_owned(),
        Ok(maps) if maps.contains("libkymograph") => "it has Kymograph in it, but has recorded \
             nothing yet, or was not told to listen: it can be asked after its first annotation \
             (NVTX, ITT, CUDA, PyTorch) if it was started with `kymo record --wait`"
            .to_owned(),
        Ok(_) => "Kymograph is not in it, and cannot be put into a running process; start it \
             with `kymo record --wait -- COMMAND`, or link libkymograph and call kymo_arm()"
            .to_owned(),
    }
}
