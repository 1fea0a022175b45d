//! Requests as text: `KEY=VALUE` lines.
//!
//! Kineto's syntax: a line is a key, one `=` and a value; `#` begins a comment, anywhere;
//! spaces and tabs around both do not count. A line that is anything else, and a value that
//! makes no sense, spoil the whole text. An unknown key does not, but is reported.
//!
//! In our own requests a value may contain `#` and further `=`, since paths do.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::keys::{KEYS, SHAPES};
use super::{Now, Origin, Refusal, Request, Start, Window};
use crate::config::{Config, PyTorch};

/// How much text is looked at. Requests have some hundred bytes.
pub const MAX_LENGTH: usize = 64 << 10;

/// How far in the past a start may lie, so that a request is still about a start in the
/// future that took long to arrive. Kineto's number.
const STALE: Duration = Duration::from_secs(10);

/// Whose rules a text follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Kineto's, with its defaults: 5 s of warm-up, a window of 500 ms.
    Kineto,
    /// Ours: no warm-up, no default for the window.
    Ours,
}

/// A request that is being read.
#[derive(Debug)]
pub(super) struct Draft {
    pub start: Option<u64>,
    pub warmup: Duration,
    pub duration: Option<Duration>,
    pub first: Option<u64>,
    pub iterations: u64,
    pub iteration_of: String,
    pub roundup: u64,
    pub warmup_iterations: u64,
    pub trace_id: String,
    pub group_trace_id: String,
    pub enabled: bool,
    pub memory: bool,
    pub activity_types: Option<String>,
    pub log_file: Option<String>,
    pub poll: Option<Duration>,
    pub custom: String,
    /// Why nothing comes of what the line asks for.
    vain: Option<&'static str>,
}

/// What a text says.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed {
    /// What is asked for.
    pub request: Request,
    /// How often a daemon is to be asked, if the text says so.
    pub poll: Option<Duration>,
    /// What was not understood and did no harm, a line each.
    pub problems: Vec<String>,
}

/// Reads a request. What it does not say is as in `base`.
///
/// # Errors
/// [`Refusal::Malformed`] says what is wrong and where; others are about what the request
/// wants.
pub fn parse(
    text: &[u8],
    dialect: Dialect,
    origin: Origin,
    base: &Config,
    now: Now,
) -> Result<Parsed, Refusal> {
    let mut config = base.clone();
    let trusted = origin != Origin::Daemon;
    let (mut draft, problems) = read(text, dialect, trusted, &mut config)?;
    draft.apply(&mut config);
    let poll = draft.poll;
    Ok(Parsed { request: draft.finish(origin, config, now)?, poll, problems })
}

/// Takes over what a text of Kineto's syntax says that is not about one trace: what to
/// record, and how often a daemon is asked. Returns what was not understood.
///
/// # Errors
/// As [`parse`]; `config` is as it was then.
pub fn apply(text: &[u8], config: &mut Config) -> Result<Vec<String>, Refusal> {
    let mut new = config.clone();
    let (mut draft, problems) = read(text, Dialect::Kineto, true, &mut new)?;
    draft.log_file = None;
    draft.apply(&mut new);
    if let Some(poll) = draft.poll {
        new.daemon.poll = poll.clamp(Duration::from_secs(1), Duration::from_secs(30));
    }
    *config = new;
    Ok(problems)
}

/// Reads all lines. Options go to `config`: all if their author is trusted.
fn read(
    text: &[u8],
    dialect: Dialect,
    trusted: bool,
    config: &mut Config,
) -> Result<(Draft, Vec<String>), Refusal> {
    let malformed = |why: String| Err(Refusal::Malformed(why));
    if text.len() > MAX_LENGTH {
        return malformed(format!("the request has {} bytes; {MAX_LENGTH} are enough", text.len()));
    }
    let Ok(text) = str::from_utf8(text) else {
        return malformed("the request is not UTF-8 text".to_owned());
    };
    let mut draft = Draft::new(dialect);
    let mut problems = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let number = number + 1;
        let (key, value) = match split(line, dialect) {
            Ok(Some(pair)) => pair,
            Ok(None) => continue,
            Err(why) => return malformed(format!("line {number}: {why}")),
        };
        let known = KEYS.iter().find(|known| match dialect {
            Dialect::Kineto => known.name == key,
            Dialect::Ours => known.name.eq_ignore_ascii_case(key),
        });
        let result = match known {
            Some(known) => (known.set)(&mut draft, value),
            None if !trusted && !is_for_anybody(key) => {
                problems.push(format!("line {number}: {key} is not taken from a daemon"));
                Ok(())
            }
            None => {
                // A wrong option is not worth losing the trace for.
                problems
                    .extend(config.set(key, value).err().map(|p| format!("line {number}: {p}")));
                Ok(())
            }
        };
        if let Err(why) = result {
            return malformed(format!("line {number}: {key}={value}: {why}"));
        }
        let done = |why: &&str| *why == SHAPES && config.pytorch == PyTorch::Shapes;
        if let Some(why) = draft.vain.take().filter(|why| !done(why)) {
            problems.push(format!("line {number}: {key}={value} has no effect: {why}"));
        }
    }
    Ok((draft, problems))
}

/// Whether any user may set this option of ours: every client of a daemon can ask it, over the
/// network. Others name libraries to load, let threads wait, or take memory.
fn is_for_anybody(key: &str) -> bool {
    ["ALL_ARGS", "CATEGORIES", "COMPRESS"].iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// The key and value of a line, if it is not empty.
fn split(line: &str, dialect: Dialect) -> Result<Option<(&str, &str)>, String> {
    // Kineto does not trim `\r`, and neither does it like it.
    let space = [' ', '\t', '\n'];
    let shown = |line: &str| line.chars().take(80).collect::<String>();
    let line = match dialect {
        Dialect::Kineto => line.split('#').next().unwrap_or("").trim_matches(space),
        Dialect::Ours if line.starts_with('#') => "",
        Dialect::Ours => line.trim(),
    };
    if line.is_empty() {
        return Ok(None);
    }
    let Some((key, value)) = line.split_once('=') else {
        return Err(format!("`{}` is not KEY=VALUE", shown(line)));
    };
    let strict = dialect == Dialect::Kineto;
    if strict && (value.contains('=') || line.ends_with('\r')) {
        return Err(format!(
            "`{}` is not KEY=VALUE: a value has no `=` or carriage return",
            shown(line)
        ));
    }
    let (key, value) = (key.trim_matches(space), value.trim_matches(space));
    if key.is_empty() {
        return Err(format!("`{}` has no key", shown(line)));
    }
    Ok(Some((key, value)))
}

impl Draft {
    fn new(dialect: Dialect) -> Draft {
        let kineto = dialect == Dialect::Kineto;
        Draft {
            start: None,
            warmup: if kineto { Duration::from_secs(5) } else { Duration::ZERO },
            duration: kineto.then_some(Duration::from_millis(500)),
            first: None,
            iterations: 0,
            iteration_of: String::new(),
            roundup: 0,
            warmup_iterations: 0,
            trace_id: String::new(),
            group_trace_id: String::new(),
            enabled: true,
            memory: false,
            activity_types: None,
            log_file: None,
            poll: None,
            custom: String::new(),
            vain: None,
        }
    }

    /// The line asks for something (or expressly does not) that is not done.
    pub(super) fn vain(&mut self, wanted: bool, why: &'static str) -> Result<(), String> {
        self.vain = wanted.then_some(why);
        Ok(())
    }

    fn apply(&mut self, config: &mut Config) {
        if let Some(types) = self.activity_types.take() {
            config.activity_types = types;
        }
        if let Some(file) = self.log_file.take() {
            config.output = with_pid(&file);
        }
    }

    fn finish(self, origin: Origin, config: Config, now: Now) -> Result<Request, Refusal> {
        if !self.enabled {
            return Err(Refusal::Disabled);
        }
        if self.memory {
            return Err(Refusal::Malformed(
                "a daemon cannot ask for snapshots of PyTorch's memory (PROFILE_MEMORY); `kymo trigger \
                 --memory-snapshot` can"
                    .to_owned(),
            ));
        }
        let stale = self.start.map(|start| Duration::from_nanos(now.wall.saturating_sub(start)));
        if let Some(by) = stale.filter(|by| *by > STALE) {
            return Err(Refusal::Past(by));
        }
        let window = match (self.first, self.duration) {
            _ if !self.iteration_of.is_empty() => Window::Ranges { count: self.iterations },
            (Some(start), duration) if self.iterations > 0 => Window::Iterations {
                start,
                roundup: self.roundup,
                warmup: self.warmup_iterations,
                count: self.iterations,
                otherwise: duration.map(|duration| (duration, self.warmup)),
            },
            (_, Some(duration)) => Window::Time {
                start: self.start.map_or(Start::Now, Start::At),
                warmup: self.warmup,
                duration,
            },
            (_, None) => return Err(Refusal::Empty),
        };
        Ok(Request {
            origin,
            window,
            iteration_of: self.iteration_of,
            config,
            trace_id: self.trace_id,
            group_trace_id: self.group_trace_id,
            custom: self.custom,
            remarks: Vec::new(),
        })
    }
}

/// A trace's name with the place of the process's id in it, as Kineto puts it and `dyno`
/// prints it: before `.pt.trace.json` or the first `.json`; else before the extension.
fn with_pid(path: &str) -> PathBuf {
    if path.contains("%p") {
        return path.into();
    }
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let dot = [".pt.trace.json", ".json"].iter().find_map(|end| path.find(end));
    let dot = dot.filter(|at| *at >= name);
    let dot = dot.or_else(|| path[name..].get(1..)?.find('.').map(|at| name + 1 + at));
    let (stem, rest) = path.split_at(dot.unwrap_or(path.len()));
    format!("{stem}_%p{rest}").into()
}

/// Whether a trace that was requested from outside may be written to `path`: an absolute path
/// without `..`, in one of `folders` once symbolic links on the way to it are resolved; all
/// folders if there are none.
///
/// # Errors
/// Why not, and what to do.
pub fn check_output(path: &Path, folders: &[PathBuf]) -> Result<(), Refusal> {
    let shown = path.display();
    let no = |why: String| Err(Refusal::Output(format!("will not write to {shown}: {why}")));
    if !path.is_absolute() {
        return no("it is not an absolute path; give one".to_owned());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return no("it contains `..`; give the path itself".to_owned());
    }
    let (Some(folder), Some(_)) = (path.parent(), path.file_name()) else {
        return no("it names no file".to_owned());
    };
    let real = match folder.canonicalize() {
        Ok(real) => real,
        Err(error) => {
            let why = crate::error::reason(&error);
            return no(format!("its folder: {why}; create it first"));
        }
    };
    let within = |folder: &PathBuf| folder.canonicalize().is_ok_and(|f| real.starts_with(f));
    if !folders.is_empty() && !folders.iter().any(within) {
        let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return no(format!("traces may be written to {}; choose a path there", names.join(", ")));
    }
    if crate::sink::is_something_else(path) {
        return no("it exists and is not a trace; remove it, or choose another file".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Now = Now { boot: 0, wall: 1_700_000_000_000_000_000 };

    fn kineto(text: &str) -> Result<Parsed, Refusal> {
        parse(text.as_bytes(), Dialect::Kineto, Origin::Daemon, &Config::default(), NOW)
    }

    fn ours(text: &str) -> Result<Parsed, Refusal> {
        parse(text.as_bytes(), Dialect::Ours, Origin::Control, &Config::default(), NOW)
    }

    fn refused(text: &str) -> String {
        kineto(text).unwrap_err().to_string()
    }

    /// Kineto: ConfigTest, whitespace, comments and format rules.
    #[test]
    fn format_rules() {
        for text in ["", "\n", " \t \n", "# nothing", "  # a=b=c", "CUSTOM_CONFIG=", " A = B # c"] {
            kineto(text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
        }
        for text in ["foo", "=foo=", "=foo", "a=b=c", "ACTIVITIES_DURATION_SECS=1\r\n"] {
            assert!(matches!(kineto(text), Err(Refusal::Malformed(_))), "{text:?}");
        }
        assert_eq!(refused("\n foo bar"), "line 2: `foo bar` is not KEY=VALUE");
    }

    /// Kineto: ConfigTest, the default, and types in any case with a comma at the end.
    #[test]
    fn activity_types() {
        let types = |text| kineto(text).map(|parsed| parsed.request.config.activity_types);
        assert_eq!(types("").unwrap(), "");
        assert_eq!(types("ACTIVITY_TYPES= Kernel,GPU_MEMCPY ,").unwrap(), "kernel,gpu_memcpy");
        assert_eq!(
            refused("ACTIVITY_TYPES=kernel,warp"),
            "line 1: ACTIVITY_TYPES=kernel,warp: there is no activity type warp"
        );
    }

    /// Kineto: ConfigTest, START_TIME: now and 0 are fine, 15 s ago is not.
    #[test]
    fn start_time() {
        let start = |ms: u64| kineto(&format!("PROFILE_START_TIME={ms}")).map(|p| p.request.window);
        let now = NOW.wall / 1_000_000;
        let of = |start| Window::Time {
            start,
            warmup: Duration::from_secs(5),
            duration: Duration::from_millis(500),
        };
        assert_eq!(start(now), Ok(of(Start::At(NOW.wall))));
        assert_eq!(start(0), Ok(of(Start::Now)));
        assert!(start(now - 9_000).is_ok(), "whether it is too late is decided later");
        assert_eq!(start(now - 15_000), Err(Refusal::Past(Duration::from_secs(15))));
    }

    #[test]
    fn what_dyno_sends_is_understood() {
        let by_time = "\n    ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_TIME=0\n\
                       ACTIVITIES_DURATION_MSECS=700\nPROFILE_REPORT_INPUT_SHAPES=false\n\
                       PROFILE_PROFILE_MEMORY=false\nPROFILE_WITH_STACK=false\n\
                       PROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false\n    \
                       REQUEST_TRACE_ID=1234567890123456789\n";
        let parsed = kineto(by_time).unwrap();
        assert_eq!(parsed.problems, Vec::<String>::new());
        let request = parsed.request;
        assert_eq!(request.trace_id, "1234567890123456789");
        assert_eq!(request.config.output_path(42, false), Path::new("/tmp/t_42.json"));
        let duration = Duration::from_millis(700);
        let warmup = Duration::from_secs(5);
        assert_eq!(request.window, Window::Time { start: Start::Now, warmup, duration });

        let by_iterations = "ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_ITERATION=0\n\
                             PROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS=3";
        assert_eq!(
            kineto(by_iterations).unwrap().request.window,
            Window::Iterations {
                start: 0,
                roundup: 1,
                warmup: 0,
                count: 3,
                otherwise: Some((Duration::from_millis(500), warmup)),
            }
        );
    }

    #[test]
    fn what_nothing_comes_of_is_said() {
        let text = "PROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_PROFILE_MEMORY=true\n\
                    PROFILE_WITH_STACK=yes\nPROFILE_WITH_FLOPS=no";
        let problems = |base: &Config| {
            let parsed = parse(text.as_bytes(), Dialect::Kineto, Origin::Daemon, base, NOW);
            parsed.unwrap().problems.iter().map(|p| p[..20].to_owned()).collect::<Vec<_>>()
        };
        let mut config = Config::default();
        assert_eq!(problems(&config).len(), 3);
        config.set("PYTORCH", "shapes").unwrap();
        assert_eq!(problems(&config), ["line 2: PROFILE_PROF", "line 3: PROFILE_WITH"]);
    }

    #[test]
    fn a_roundup_alone_makes_a_request_by_iterations() {
        let window = kineto("PROFILE_START_ITERATION_ROUNDUP=10\nACTIVITIES_ITERATIONS=3");
        let window = window.unwrap().request.window;
        assert!(matches!(window, Window::Iterations { start: 0, roundup: 10, count: 3, .. }));
        let window = kineto("PROFILE_START_ITERATION_ROUNDUP=10").unwrap().request.window;
        assert!(matches!(window, Window::Time { .. }));
    }

    #[test]
    fn a_file_of_kinetos_is_taken_over_or_not_at_all() {
        let mut config = Config::default();
        let text = b"ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=9\nACTIVITY_TYPES=kernel\nX=1";
        assert_eq!(apply(text, &mut config).unwrap().len(), 1);
        assert_eq!(config.daemon.poll, Duration::from_secs(9));
        assert_eq!(config.activity_types, "kernel");
        assert_eq!(config.output, Config::default().output);
        let before = config.clone();
        assert!(apply(b"ACTIVITY_TYPES=cpu_op\nnonsense", &mut config).is_err());
        assert_eq!(config, before);
    }

    /// Kineto: AsyncActivityProfilerHandlerTest.AcceptConfigIgnoresDisabled.
    #[test]
    fn accept_config_ignores_disabled() {
        assert_eq!(kineto("ACTIVITIES_ENABLED=no").unwrap_err(), Refusal::Disabled);
        assert!(kineto("ACTIVITIES_ENABLED=YES").is_ok());
    }

    #[test]
    fn unknown_keys_are_reported_and_do_no_harm() {
        let parsed = ours("FOO=bar\nTIME=2s\nBUFER=1M").unwrap();
        let [first, second] = parsed.problems.as_slice() else {
            panic!("{:?}", parsed.problems);
        };
        assert!(first.starts_with("line 1: FOO: no such option"), "{first}");
        assert!(second.contains("did you mean BUFFER?"), "{second}");
        let parsed = kineto("FOO=bar\nACTIVITIES_DURATION_SECS=2").unwrap();
        assert_eq!(parsed.problems, ["line 1: FOO is not taken from a daemon"]);
    }

    /// Whoever reaches a daemon over the network must not choose what is loaded, where to,
    /// how much, or how long the program waits.
    #[test]
    fn a_daemon_cannot_set_what_could_do_harm() {
        let base = Config::default();
        for option in crate::config::OPTIONS {
            for value in ["/tmp/evil", "1000000M", "stall:10m", "1", "silent"] {
                // Read as Kineto's: a key of both means theirs.
                if KEYS.iter().any(|key| key.name == option.key) || is_for_anybody(option.key) {
                    continue;
                }
                let parsed = kineto(&format!("{}={value}", option.key)).unwrap();
                assert_eq!(parsed.request.config, base, "{}={value}", option.key);
                assert_eq!(parsed.problems.len(), 1);
            }
        }
        let parsed = kineto("CATEGORIES=model\ncompress=zstd").unwrap();
        assert_eq!(parsed.problems, Vec::<String>::new());
        assert_ne!(parsed.request.config, base);
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for text in [
            "ACTIVITIES_DURATION_SECS=-1",
            "ACTIVITIES_DURATION_SECS=1.5",
            "ACTIVITIES_ITERATIONS=99999999999999999999",
            "ACTIVITIES_ENABLED=maybe",
            "PROFILE_MEMORY=true",
        ] {
            assert!(matches!(kineto(text), Err(Refusal::Malformed(_))), "{text}");
        }
        assert_eq!(ours("").unwrap_err(), Refusal::Empty);
    }

    #[test]
    fn our_values_may_contain_anything() {
        let parsed = ours("time=1s\nOUTPUT=/tmp/a=b#c.pftrace\nBUFFER=1M").unwrap();
        assert_eq!(parsed.request.config.output, Path::new("/tmp/a=b#c.pftrace"));
        assert_eq!(parsed.request.config.buffer, 1 << 20);
    }

    #[test]
    fn the_pid_goes_where_dyno_says() {
        for (path, with) in [
            ("/tmp/t.json", "/tmp/t_%p.json"),
            ("/tmp/t.pt.trace.json", "/tmp/t_%p.pt.trace.json"),
            ("/tmp/t.json.gz", "/tmp/t_%p.json.gz"),
            ("/tmp/t.pftrace.gz", "/tmp/t_%p.pftrace.gz"),
            ("/tmp/v1.2/t", "/tmp/v1.2/t_%p"),
            ("/tmp/a.json/t", "/tmp/a.json/t_%p"),
            ("/tmp/.t", "/tmp/.t_%p"),
            ("/tmp/t-%p.pftrace", "/tmp/t-%p.pftrace"),
            ("", "_%p"),
        ] {
            assert_eq!(with_pid(path), Path::new(with), "{path}");
        }
    }

    /// Kineto: ConfigTest, on-demand accepts /tmp/x, ignores /etc/cron.d/payload and
    /// /tmp/../etc; here they are refused, and links do not help.
    #[test]
    fn outputs_stay_where_they_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let allowed = [folder.path().to_owned()];
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        assert_eq!(check_output(&folder.path().join("x"), &allowed), Ok(()));
        for path in ["/etc/cron.d/payload", "x", "../x", "/", ""] {
            assert!(check_output(Path::new(path), &allowed).is_err(), "{path}");
        }
        for name in ["../x", "a/../x", "link/x", "missing/x"] {
            assert!(check_output(&folder.path().join(name), &allowed).is_err(), "{name}");
        }
        assert_eq!(check_output(Path::new("/etc/x"), &[]), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 512 }))]

        #[test]
        fn nonsense_is_survived(text: Vec<u8>) {
            for dialect in [Dialect::Kineto, Dialect::Ours] {
                let _ = parse(&text, dialect, Origin::Daemon, &Config::default(), NOW);
            }
        }

        #[test]
        fn nonsense_that_looks_right_is_survived(
            lines in prop::collection::vec((0..KEYS.len(), "[-0-9a-zA-Z,=#%. \r\u{e9}]{0,24}"), 0..12),
        ) {
            let lines = lines.iter().map(|(key, value)| format!("{}={value}\n", KEYS[*key].name));
            let text: String = lines.collect();
            for dialect in [Dialect::Kineto, Dialect::Ours] {
                let parsed = parse(text.as_bytes(), dialect, Origin::Daemon, &Config::default(), NOW);
                if let Ok(parsed) = parsed {
                    let _ = check_output(&parsed.request.config.output, &[]);
                }
            }
        }
    }
}
