//! What the page needs of one rank of a trace.

use kymograph_analysis::compat::tensorboard::{self, Plugin};
use kymograph_analysis::metric::operators;
use kymograph_analysis::{Metric, Model, Options, Part, run};
use kymograph_converters::trace::{Nanos, ProcessId, Summary, Trace};

use crate::block::{Level, pack};
use crate::{metrics, parallel, samples, timeline};

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
    /// Threads that may work on one rank at a time; 0 is one, too.
    pub threads: usize,
}

impl Settings {
    /// Options for a metric.
    pub(crate) fn options(&self, metric: &str) -> Options {
        let tensorboard = self.plugin.filter(|_| tensorboard::METRICS.contains(&metric));
        Options { tensorboard, most_rows: Some(metrics::ROWS), ..Options::default() }
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
    /// Where the file stands among those that were read; for the caller to say.
    pub source: usize,
    /// When its first event begins, on the trace's clock.
    pub(crate) origin: i64,
    /// That, since the first event of the whole file.
    pub(crate) in_file: i64,
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
        // The timeline first, since it takes longest.
        let groups = metrics::groups(&names);
        let mut done = parallel::each(groups.len() + 3, settings.threads, |task| match task {
            0 => {
                let rounds = timeline::rounds(&model, settings.exact);
                let level = if rounds { Level::Small } else { Level::Fast };
                Done::Text(packed(timeline::of(&model, settings.exact), level))
            }
            1 => Done::Text(packed(
                samples::of(&model).unwrap_or_default().into_bytes(),
                Level::Fast,
            )),
            2 => {
                let summary = Summary::of(trace);
                Done::About(summary.to_json(), summary.span)
            }
            group => {
                let group = groups[group - 3];
                let _common = (group.len() > 1).then(|| operators::common(&model));
                Done::Parts(group.iter().map(|metric| (*metric, of(metric))).collect())
            }
        })
        .into_iter();
        let mut text = || match done.next() {
            Some(Done::Text(text)) => text,
            _ => String::new(),
        };
        let (timeline, samples) = (text(), text());
        let (about, span) = match done.next() {
            Some(Done::About(about, span)) => (about, span),
            _ => (String::new(), None),
        };
        let mut parts: Vec<Given> = done.flat_map(Done::parts).collect();
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
        let (origin, events) = (model.origin, model.events.len());
        let start = span.map_or(origin, |(start, _)| start.0);
        let in_file = if events == 0 { 0 } else { origin.saturating_sub(start) };
        let file = file.to_owned();
        let source = 0;
        Rank { rank, file, source, parts, origin, in_file, events, timeline, samples, about }
    }
}

/// What a thread has done for a rank.
enum Done {
    Text(String),
    /// What the file says, and when its events begin and end.
    About(String, Option<(Nanos, Nanos)>),
    Parts(Vec<Given>),
}

impl Done {
    fn parts(self) -> Vec<Given> {
        match self {
            Done::Parts(given) => given,
            Done::Text(_) | Done::About(..) => Vec::new(),
        }
    }
}

/// A block; an empty one of nothing.
fn packed(bytes: Vec<u8>, level: Level) -> String {
    if bytes.is_empty() { String::new() } else { pack(&bytes, level) }
}
