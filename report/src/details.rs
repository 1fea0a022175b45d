//! Arguments of single events, for a page that asks for them when an event is chosen.

use kymograph_analysis::{Model, Options, run};
use kymograph_converters::trace::{ActivityId, Args, ArgsId, Dim3, Trace, Value};
use std::fmt::Write as _;

use crate::columns::text;
use crate::timeline;

/// A trace that is asked for arguments. It holds the trace, and eight bytes for each event.
#[derive(Debug)]
pub struct Details {
    trace: Trace,
    ranks: Vec<(i64, Vec<Event>)>,
}

/// Where an event's arguments are.
#[derive(Debug)]
struct Event {
    args: Option<ArgsId>,
    /// Work of a device has some with its kernel and its launch.
    activity: Option<u32>,
}

impl Details {
    /// Takes a trace; the rank of one that does not say is `otherwise`.
    pub fn new(trace: Trace, otherwise: i64) -> Details {
        let of = |(process, rank)| {
            let model = Model::new(&trace, process, rank, Options::default().reading);
            let event = |row: u32| Event {
                args: model.events.args(&trace, row),
                activity: model.events.activity_of(row).map(|at| at as u32),
            };
            (rank, timeline::order(&model).into_iter().map(event).collect())
        };
        let ranks = run::ranks(&trace, otherwise).into_iter().map(of).collect();
        Details { trace, ranks }
    }

    /// The arguments of an event by its place on the timeline of its rank, as JSON: `[[name, value]…]`,
    /// both texts. None if there is no such event.
    pub fn of(&self, rank: i64, event: usize) -> Option<String> {
        let (_, events) = self.ranks.iter().find(|(own, _)| *own == rank)?;
        let event = events.get(event)?;
        let trace = &self.trace;
        let mut pairs = self.pairs(event.args);
        if let Some(activity) = event.activity {
            let activity = trace.activities.get(ActivityId::at(activity as usize));
            if let Some(launch) = activity.launch.and_then(|id| trace.launches.get(id)) {
                let sizes = [("grid", launch.grid), ("block", launch.block)];
                let known = sizes.into_iter().filter_map(|(name, size)| Some((name, size?)));
                pairs.extend(known.map(|(name, size)| (name.to_owned(), dimensions(size))));
            }
            if let Some(kernel) = activity.kernel.and_then(|id| trace.kernels.get(id)) {
                pairs.extend(self.pairs(kernel.args));
            }
            if activity.correlation != 0 && pairs.iter().all(|(name, _)| name != "correlation") {
                pairs.push(("correlation".to_owned(), activity.correlation.to_string()));
            }
        }
        let mut out = String::from("[");
        for (n, (name, value)) in pairs.iter().enumerate() {
            out += if n == 0 { "[" } else { ",[" };
            text(&mut out, name);
            out.push(',');
            text(&mut out, value);
            out.push(']');
        }
        Some(out + "]")
    }

    fn pairs(&self, args: Option<ArgsId>) -> Vec<(String, String)> {
        let plain = |value| match value {
            Value::Str(text) => self.trace.strings.get(text).to_owned(),
            Value::Pointer(address) => format!("{address:#x}"),
            value => self.trace.json(value),
        };
        let entries = Args::entries(&self.trace.args, args);
        entries
            .map(|(name, value)| (self.trace.strings.get(name).to_owned(), plain(value)))
            .collect()
    }
}

fn dimensions(size: Dim3) -> String {
    let mut out = String::new();
    let _ = write!(out, "[{}, {}, {}]", size.x, size.y, size.z);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymograph_converters::format;

    #[test]
    fn events_have_the_arguments_of_the_trace() {
        let json = r#"{"traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 9,
             "args": {"External id": 7, "Input Dims": [[2, 3], []], "note": "</script>"}},
            {"ph": "X", "cat": "cpu_op", "name": "first", "pid": 1, "tid": 1, "ts": 1, "dur": 2},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 9, "dur": 2,
             "args": {"device": 0, "stream": 7, "correlation": 3, "grid": [4, 1, 1]}}]}"#;
        let trace = format::read(json.as_bytes(), None).unwrap();
        let details = Details::new(trace, 0);
        assert_eq!(details.of(0, 0).unwrap(), "[]", "the first one of the timeline has none");
        let read: Vec<(String, String)> = serde_json::from_str(&details.of(0, 1).unwrap()).unwrap();
        let of = |name: &str| read.iter().find(|(own, _)| own == name).map(|(_, is)| is.as_str());
        assert_eq!(of("External id"), Some("7"));
        assert_eq!(of("Input Dims"), Some("[[2, 3], []]"));
        assert_eq!(of("note"), Some("</script>"));
        let kernel = details.of(0, 2).unwrap();
        assert!(kernel.contains("[\"grid\",\"[4, 1, 1]\"]"), "{kernel}");
        assert!(kernel.contains("[\"correlation\",\"3\"]"), "{kernel}");
        assert_eq!(details.of(0, 3), None);
        assert_eq!(details.of(1, 0), None);
    }
}
