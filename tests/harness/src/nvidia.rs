//! Scripts of CUDA work, recorded on machines without a GPU.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kymograph_protos::perfetto;
use oracle::Trace;
use prost::Message as _;

pub use crate::fakes::Machine;
use crate::kymo::{self, Guarded};
use perfetto::trace_packet::Data;

/// Slices with the number of the thread that they are of. Those that cross others are on a
/// track under the thread's.
const OF_THREADS: &str = "(
    SELECT s.*, t.tid FROM slice s
    LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread t USING (utid))";

/// The work of devices: without the program's ranges beside it.
pub const WORK: &str = "(
    SELECT s.* FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
    WHERE t.name NOT LIKE '%annotations')";

/// What became of a recording.
pub struct Recorded {
    pub output: Output,
    pub trace: Trace,
    /// The vendor of the devices, as traces call it.
    pub vendor: &'static str,
    /// What the trace says of itself.
    pub metadata: BTreeMap<String, String>,
    // The trace is read from there.
    folder: tempfile::TempDir,
}

/// Records the fake program with this script; `arguments` are the program's, and after
/// `--` those of `kymo record`.
pub fn record(machine: &Machine, script: &str, arguments: &[&str]) -> Recorded {
    let prepare = |command: &mut Command| machine.prepare(command);
    record_on("cuda", prepare, &machine.program(), &machine.script(script), arguments)
}

/// As [`record`], on a machine of any vendor, which `prepare` lets the command run on. `vendor` is
/// what traces call it.
pub fn record_on(
    vendor: &'static str,
    prepare: impl Fn(&mut Command),
    program: &Path,
    script: &Path,
    arguments: &[&str],
) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let split = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (arguments, own) = arguments.split_at(split);
    let mut command = kymo::kymo();
    prepare(&mut command);
    command.args(["record", "--quiet", "--output"]).arg(&path);
    command.args(own.iter().skip(1)).arg("--").arg(program).arg(script).args(arguments);
    Recorded::read(vendor, command.output().unwrap(), folder)
}

/// Records the fake program until the file has this many bytes; then it is killed.
pub fn record_until_killed(machine: &Machine, script: &str, bytes: u64) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut command = kymo_record(machine, &path);
    command.arg("--quiet").arg("--").arg(machine.program()).arg(machine.script(script));
    let kymo = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    until(|| std::fs::metadata(&path).map_or(0, |file| file.len()) >= bytes);
    let children = format!("/proc/{0}/task/{0}/children", kymo.id());
    let program = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    // SAFETY: a child of our child, which nobody has waited for yet.
    assert_eq!(unsafe { libc::kill(program, libc::SIGKILL) }, 0);
    Recorded::read("cuda", kymo.wait_with_output(), folder)
}

/// Records the fake program until the file has this many bytes; then its `kymo` is killed. Whether
/// our thread that reads CUPTI's buffers ends, and the program goes on.
pub fn is_left_when_kymo_is_killed(machine: &Machine, script: &str, bytes: u64) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut command = kymo_record(machine, &path);
    command.arg("--quiet").arg("--").arg(machine.program()).arg(machine.script(script));
    let mut kymo = Guarded::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    until(|| std::fs::metadata(&path).map_or(0, |file| file.len()) >= bytes);
    let children = format!("/proc/{0}/task/{0}/children", kymo.id());
    let program: u32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{program}/task")).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.filter_map(|task| name(task.unwrap()).ok()).collect::<Vec<_>>()
    };
    let ours = || threads().iter().any(|name| name.starts_with("kymograph"));
    assert!(ours(), "{:?}", threads());
    kymo.kill().unwrap();
    kymo.wait().unwrap();
    until(|| !ours());
    !threads().is_empty()
}

/// Records the fake program, which goes on until the file has so many rounds of samples of
/// a device. `own` are arguments of `kymo record`.
pub fn record_until_sampled(
    machine: &Machine,
    script: &str,
    own: &[&str],
    rounds: usize,
) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut command = kymo_record(machine, &path);
    command.arg("--quiet").args(own).arg("--").arg(machine.program());
    command.arg("--hold").arg(machine.script(script));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let kymo = Guarded::start(&mut command);
    until(|| sampled(&std::fs::read(&path).unwrap_or_default()) >= rounds);
    // Its standard input is closed there, which ends the program.
    Recorded::read("cuda", kymo.wait_with_output(), folder)
}

/// How many rounds of samples there are: values of one have the same time. None are
/// known while the file ends in the middle of a packet.
fn sampled(bytes: &[u8]) -> usize {
    let packets = perfetto::Trace::decode(bytes).unwrap_or_default().packet;
    let values = packets.iter().filter(|p| matches!(p.data, Some(Data::GpuCounterEvent(_))));
    values.map(|packet| packet.timestamp).collect::<BTreeSet<_>>().len()
}

fn until(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "nothing is written");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `kymo record` on this machine, into this file.
pub fn kymo_record(machine: &Machine, path: &Path) -> Command {
    let mut command = kymo::kymo();
    machine.prepare(&mut command);
    command.args(["record", "--output"]).arg(path);
    command
}

fn metadata(bytes: &[u8]) -> BTreeMap<String, String> {
    let trace = perfetto::Trace::decode(bytes).unwrap();
    let mut metadata = BTreeMap::new();
    for packet in trace.packet {
        let Some(Data::TraceAttributes(attributes)) = packet.data else {
            continue;
        };
        for attribute in attributes.attribute {
            metadata.insert(attribute.key.unwrap_or_default(), value(attribute.value));
        }
    }
    metadata
}

fn value(value: Option<perfetto::trace_attributes::attribute::Value>) -> String {
    use perfetto::trace_attributes::attribute::Value;
    match value {
        Some(Value::LongValue(number)) => number.to_string(),
        Some(Value::StringValue(text)) => text,
        None => String::new(),
    }
}

impl Recorded {
    fn read(vendor: &'static str, output: Output, folder: tempfile::TempDir) -> Recorded {
        let path = folder.path().join("t.pftrace");
        let metadata = metadata(&std::fs::read(&path).unwrap());
        Recorded { output, trace: Trace::open(&path), vendor, metadata, folder }
    }

    /// Where the trace lies.
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("t.pftrace")
    }

    /// The trace as Kineto's JSON.
    pub fn json(&self) -> serde_json::Value {
        let (from, to) = (self.path(), self.folder.path().join("t.json"));
        let output = kymo::kymo().arg("convert").args([&from, &to]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap()
    }

    /// A fact of the one process that used CUDA: `cuda.PID.KEY`.
    pub fn cuda(&self, key: &str) -> Option<&str> {
        self.fact("cuda", key)
    }

    /// The same of another vendor: `VENDOR.PID.KEY`.
    pub fn fact(&self, vendor: &str, key: &str) -> Option<&str> {
        let of = |name: &str| {
            let (pid, rest) = name.strip_prefix(vendor)?.strip_prefix('.')?.split_once('.')?;
            (pid.parse::<u32>().is_ok() && rest == key).then_some(())
        };
        self.metadata.iter().find(|(name, _)| of(name).is_some()).map(|(_, value)| value.as_str())
    }

    /// Such a fact as a number; 0 if it is not there.
    pub fn number(&self, vendor: &str, key: &str) -> i64 {
        self.fact(vendor, key).map_or(0, |value| value.parse().unwrap())
    }

    /// The program ended as it does untraced, and nobody said a word.
    #[track_caller]
    pub fn ended(&self, status: i32) {
        let errors = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(errors, "");
        assert_eq!(self.output.status.code(), Some(status));
    }

    /// A number that the sampling of counters states: `nvml.PID.KEY`.
    pub fn nvml(&self, key: &str) -> i64 {
        let of = |name: &&String| name.starts_with("nvml.") && name.ends_with(key);
        let found = self.metadata.keys().find(of).unwrap_or_else(|| panic!("{:#?}", self.metadata));
        self.metadata[found].parse().unwrap()
    }

    /// The trace as `kymo convert` writes it in Kineto's JSON: a line for each event that has
    /// all of these texts in it.
    pub fn json_lines(&self, texts: &[&str]) -> Vec<String> {
        let [trace, json] = ["t.pftrace", "t.json"].map(|name| self.folder.path().join(name));
        let output = kymo::kymo().arg("convert").args([&trace, &json]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read_to_string(json).unwrap();
        let lines = text.lines().filter(|line| texts.iter().all(|text| line.contains(text)));
        lines.map(str::to_owned).collect()
    }

    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// What devices did: name, how often, how long in all.
    pub fn device_work(&self) -> String {
        self.trace.table(&format!(
            "SELECT name, count(*) AS n, sum(dur) AS dur FROM {WORK} GROUP BY 1 ORDER BY 1"
        ))
    }

    pub fn kernels(&self) -> i64 {
        let kernels = format!("SELECT count(*) FROM {WORK} WHERE name NOT LIKE 'Mem%'");
        self.trace.one_i64(&kernels)
    }

    /// How many kernels come from calls of each thread.
    pub fn kernels_of_threads(&self) -> String {
        self.trace.table(&format!(
            "SELECT count(*) AS n FROM flow JOIN gpu_slice g ON g.id = slice_in
             JOIN {OF_THREADS} c ON c.id = slice_out
             WHERE g.name NOT LIKE 'Mem%' GROUP BY c.tid ORDER BY c.tid",
        ))
    }

    /// Calls by the innermost slice around them on their thread: its name, how many they
    /// are, and on how many threads. By time: either may be beside the thread's track.
    pub fn calls_by_range(&self) -> String {
        self.trace.table(&format!(
            "SELECT (SELECT p.name FROM {OF_THREADS} p
                     WHERE p.tid = s.tid AND p.id != s.id
                     AND p.ts <= s.ts AND p.ts + p.dur >= s.ts + s.dur
                     ORDER BY p.ts DESC LIMIT 1) AS range,
                    count(*) AS n, count(DISTINCT s.tid) AS threads
             FROM {OF_THREADS} s WHERE s.category = 'cuda_runtime' GROUP BY 1 ORDER BY 1",
        ))
    }

    /// Calls of the program: name, how often.
    pub fn calls(&self) -> String {
        self.trace.table(
            "SELECT name, count(*) AS n FROM slice
             WHERE category IN ('cuda_runtime', 'cuda_driver', 'xpu_runtime', 'xpu_driver')
             GROUP BY 1 ORDER BY 1",
        )
    }

    /// Every piece of device work has one arrow, which comes from a call that was made
    /// before it began.
    #[track_caller]
    pub fn every_launch_has_its_arrow(&self) {
        let arrows = "SELECT count(*) FROM flow JOIN gpu_slice g ON g.id = slice_in
                      JOIN slice c ON c.id = slice_out
                      WHERE c.category IN
                          ('cuda_runtime', 'cuda_driver', 'xpu_runtime', 'xpu_driver')
                      AND c.ts <= g.ts";
        let targets = "SELECT count(DISTINCT slice_in) FROM flow
                       JOIN gpu_slice g ON g.id = slice_in";
        let work = self.trace.one_i64(&format!("SELECT count(*) FROM {WORK}"));
        assert_eq!(self.trace.one_i64(arrows), work, "arrows from calls");
        let all = "SELECT count(*) FROM flow JOIN gpu_slice g ON g.id = slice_in";
        assert_eq!(self.trace.one_i64(all), work, "arrows");
        assert_eq!(self.trace.one_i64(targets), work, "work with an arrow");
    }
}
