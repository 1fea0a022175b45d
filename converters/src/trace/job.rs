//! Where a trace comes from: the rank and the host of its processes.
//!
//! | fact | who states it |
//! |---|---|
//! | `distributedInfo`: an object with `rank`, `world_size` | Kineto, of its one process |
//! | `host_name` | Kineto |
//! | `kymograph.PID.rank`, `kymograph.PID.world_size` | our recording, of each process |
//! | `kymograph.host`, `kymograph.boot_id` | our recording |
//! | `kymograph.PID.host` | [`crate::merge`], of each process |
//! | `system_machine_name` | Perfetto's service |

use super::{ProcessId, Trace, Value};
use crate::json::{Document, Item, Limits, Number, number};

/// The rank, the host and the start of the system, as far as a trace says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Job {
    /// The number of the process among those of a distributed job; none if there are several.
    pub rank: Option<i64>,
    /// How many there are.
    pub world_size: Option<i64>,
    /// The name of the machine; empty if unknown.
    pub host: String,
    /// What no other start of any machine has; empty if unknown.
    pub boot: String,
}

impl Job {
    /// What a trace says of the whole of it.
    pub fn of(trace: &Trace) -> Job {
        let info = trace.fact_text("distributedInfo").unwrap_or_default();
        let mut ranks: Vec<i64> =
            trace.processes.iter().filter_map(|(id, _)| own_rank(trace, id)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let one = |all: &[i64]| if let [one] = all { Some(*one) } else { None };
        let sizes =
            || trace.processes.iter().find_map(|(_, p)| of_process(trace, p.pid, "world_size"));
        Job {
            rank: if ranks.is_empty() { member(&info, "rank") } else { one(&ranks) },
            world_size: member(&info, "world_size").or_else(sizes),
            host: host(trace).unwrap_or_default(),
            boot: trace.fact_text("kymograph.boot_id").unwrap_or_default(),
        }
    }
}

impl Trace {
    /// The rank of a process: its own, or that of the whole trace.
    pub fn rank(&self, process: ProcessId) -> Option<i64> {
        let of_all = || member(&self.fact_text("distributedInfo")?, "rank");
        own_rank(self, process).or_else(of_all)
    }

    /// The machine that a process ran on; empty if unknown.
    pub fn host(&self, process: ProcessId) -> String {
        let pid = self.processes[process].pid;
        let own = self.fact_text(&format!("kymograph.{pid}.host"));
        own.or_else(|| host(self)).unwrap_or_default()
    }

    /// A fact as text: strings as they are, anything else as JSON.
    pub(crate) fn fact_text(&self, key: &str) -> Option<String> {
        let value = self.facts.get(self.strings.find(key)?)?;
        Some(self.plain(value).trim_matches('"').to_owned())
    }

    /// A value as text: strings as they are, anything else as JSON.
    pub(crate) fn plain(&self, value: Value) -> String {
        match value {
            Value::Str(text) => self.strings.get(text).to_owned(),
            value => self.json(value),
        }
    }
}

fn own_rank(trace: &Trace, process: ProcessId) -> Option<i64> {
    of_process(trace, trace.processes[process].pid, "rank")
}

fn of_process(trace: &Trace, pid: i64, what: &str) -> Option<i64> {
    trace.fact_text(&format!("kymograph.{pid}.{what}"))?.parse().ok()
}

fn host(trace: &Trace) -> Option<String> {
    ["kymograph.host", "host_name", "system_machine_name"]
        .iter()
        .find_map(|key| trace.fact_text(key))
}

/// A whole number in an object, which is given as text.
fn member(object: &str, key: &str) -> Option<i64> {
    let list = format!("[{object}]");
    let mut list = Document::new(list.as_bytes(), Limits::default());
    let Ok(Some(Item::Event(object))) = list.next_item() else { return None };
    match number(object.root().get(key)?)? {
        Number::Int(n) => Some(n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(facts: &[(&str, &str)]) -> Trace {
        let mut trace = Trace::default();
        for (key, value) in facts {
            let value = Value::Str(trace.strings.intern(value));
            let key = trace.strings.intern(key);
            trace.facts.metadata.push((key, value));
        }
        trace
    }

    #[test]
    fn kinetos_job() {
        let info = r#"{"backend": "nccl", "rank": 3, "world_size": 8}"#;
        let trace = with(&[("distributedInfo", info), ("host_name", "\"node7\"")]);
        let job = Job::of(&trace);
        assert_eq!((job.rank, job.world_size, job.host.as_str()), (Some(3), Some(8), "node7"));
        assert_eq!(Job::of(&with(&[("distributedInfo", "{oops")])), Job::default());
    }

    #[test]
    fn our_processes_have_ranks_of_their_own() {
        let mut trace = with(&[("kymograph.10.rank", "0"), ("kymograph.11.rank", "1")]);
        let ids = [10, 11, 12].map(|pid| trace.process(pid, ""));
        assert_eq!(ids.map(|id| trace.rank(id)), [Some(0), Some(1), None]);
        assert_eq!(Job::of(&trace).rank, None);
    }
}
