//! What the page needs of one rank of a trace.

use kymograph_analysis::compat::tensorboard::{self, Plugin};
use kymograph_analysis::{Metric, Model, Options, Part, run};
use kymograph_converters::trace::{ProcessId, Summary, Trace};

use crate::block::pack;
use crate::{metrics, samples, timeline};

/// What a metric gave for a rank, or why it gave nothing.
pub(crate) type Given = (&'static Metric, Result<Part, String>);

/// What a page is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Whether runs are compared with each other.
    pub compared: bool,
    /// Whether no time is rounded, however many events there are.
    pub exact: bool,
    /// The state of the TensorBoard plugin by whose rules its views are; none for the exact reading.
    pub plugin: Option<Plugin>,
}

impl Settings {
    /// Options for a metric.
    pub(crate) fn options(&self, metric: &str) -> Options {
        let tensorboard = self.plugin.filter(|_| tensorboard::METRICS.contains(&metric));
        Options { tensorboard, ..Options::default() }
    }
}

/// One rank of a trace, without the trace.
#[derive(Debug)]
pub struct Rank {
    /// The rank.
    pub rank: i64,
    /// The file that it is from.
    pub file: String,
    /// What metrics gave.
    pub(crate) parts: Vec<Given>,
    /// When its first event begins, on the trace's clock.
    pub(crate) origin: i64,
    pub(crate) events: usize,
    /// Packed; empty without events.
    pub(crate) timeline: String,
    /// Packed; empty without counters.
    pub(crate) samples: String,
    /// What `kymo info --json` says of the file.
    pub(crate) about: String,
}

impl Rank {
    /// Reads a trace, or the part of one process of it.
    pub fn read(
        trace: &Trace,
        process: Option<ProcessId>,
        rank: i64,
        file: &str,
        settings: &Settings,
    ) -> Rank {
        let model = Model::new(trace, process, rank, Options::default().reading);
        let mut names = metrics::find(&metrics::OF_RUN);
        if settings.compared {
            names.extend(metrics::find(&metrics::OF_TWO));
        }
        let of = |metric: &'static Metric| {
            let options = settings.options(metric.name);
            run::of_rank(metric, &model, &options).map_err(|error| error.to_string())
        };
        let given = |metric: &'static Metric| (metric, of(metric));
        let mut parts: Vec<Given> = names.into_iter().map(given).collect();
        let table = |name: &str| {
            let (_, part) = parts.iter().find(|(metric, _)| metric.name == name)?;
            Some(&part.as_ref().ok()?.batch)
        };
        let batch = metrics::recommendations(table).map_err(|error| error.to_string());
        if let Some(metric) = Metric::find(metrics::RECOMMENDATIONS) {
            let part = match settings.plugin {
                Some(_) => of(metric),
                None => batch.map(|batch| Part { rank, origin: model.origin, batch }),
            };
            parts.push((metric, part));
        }
        let events = timeline::of(&model, settings.exact);
        Rank {
            rank,
            file: file.to_owned(),
            parts,
            origin: model.origin,
            events: model.events.len(),
            timeline: if events.is_empty() { String::new() } else { pack(&events) },
            samples: samples::of(&model).map_or(String::new(), |json| pack(json.as_bytes())),
            about: Summary::of(trace).to_json(),
        }
    }
}
