//! HTA's tables.

use std::fs::File;
use std::path::{Path, PathBuf};

use kymograph_analysis::compat::hta::{Rules, Version};
use kymograph_analysis::metric::diff::Side;
use kymograph_analysis::{Metric, Model, Options, Part, Reading, render, run};
use kymograph_converters::format;
use kymograph_converters::trace::Trace;

use super::csv::Csv;
use super::shape::{counter_values, drop_column, last_of_each_moment};
use super::{Tally, Tolerance};

/// The traces of a set: rank, file.
pub fn traces(set: &str, data: &Path) -> Option<Vec<(i64, PathBuf)>> {
    let one = |name: &str| Some(vec![(0, data.join(name))]);
    match set {
        "vit_sampled_2rank" => {
            let file = |rank| (rank, data.join(format!("vit_sampled_rank{rank}.json.gz")));
            Some((0..2).map(file).collect())
        }
        "synth_8rank" => {
            let file = |rank| (rank, data.join(format!("synth_8rank/rank-{rank}.json.gz")));
            Some((0..8).map(file).collect())
        }
        "ddp_cut" => {
            let file = |rank| (rank, data.join(format!("ddp_cut_rank{rank}.json.gz")));
            Some((0..2).map(file).collect())
        }
        "cp_event_sync" | "cp_simple_add" => one(&format!("hta/{set}.json.gz")),
        _ => one(&format!("{set}.json.gz")),
    }
    .filter(|files| files.iter().all(|(_, file)| file.exists()))
}

/// The rules that a label stands for.
fn reading(label: &str) -> Reading {
    let version = if label.starts_with("head") { Version::TraceInsight } else { Version::Hta };
    let rounding = !label.ends_with("-exact");
    Reading::Hta(Rules { version, rounding, last_step: false })
}

/// The tables of `hta/trace_diff`: two small traces, compared with each other.
pub fn diff(folder: &Path, data: &Path, tally: &mut Tally) {
    let traces = ["base", "test"].map(|name| {
        let file = data.join(format!("hta/trace_diff_tiny_{name}.json.gz"));
        format::read(File::open(file).unwrap(), None).unwrap()
    });
    let mut labels: Vec<_> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    labels.sort();
    for label in labels {
        let Reading::Hta(rules) = reading(&name(&label)) else { unreachable!() };
        let reading = Reading::Hta(Rules { last_step: true, ..rules });
        let set = Set {
            name: format!("trace_diff/{}", name(&label)),
            exact: false,
            reading,
            models: (0..).zip(&traces).map(|(n, t)| Model::new(t, None, n, reading)).collect(),
        };
        for (side, file) in [(Side::All, "ALL"), (Side::Host, "CPU"), (Side::Device, "GPU")] {
            for (short_names, column) in [(false, "full"), (true, "short")] {
                let mut theirs = Csv::open(&label.join(format!("tiny_{file}_{column}.csv")));
                theirs.names[0] = "name".to_owned();
                let options = Options { side, short_names, ..Options::default() };
                let ours = set.ours("diff", None, &options).unwrap();
                let context = format!("{} {file} {column}", set.name);
                tally.table("HTA diff", &context, &theirs, &ours, set.tolerance());
            }
        }
        let text = std::fs::read_to_string(label.join("tiny_ops_diff.json")).unwrap();
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ours = set.ours("diff", None, &Options::default()).unwrap();
        for (kind, names) in theirs.as_object().unwrap() {
            let own = ours.rows.iter().filter(|row| {
                let (base, test) =
                    (ours.number(row, "Control_counts"), ours.number(row, "Test_counts"));
                match kind.as_str() {
                    "added" => base == 0.0,
                    "deleted" => test == 0.0,
                    "increased" => base > 0.0 && test > base,
                    "decreased" => test > 0.0 && test < base,
                    _ => base == test,
                }
            });
            let own: Vec<&str> = own.map(|row| ours.get(row, "name")).collect();
            let own = serde_json::Value::from(own);
            let context = format!("{} ops_diff {kind}", set.name);
            tally.value(
                "HTA diff",
                &context,
                &names.to_string(),
                &own.to_string(),
                Tolerance(0.0, 0.0),
            );
        }
        tally.except(
            "HTA's parsed table of call_stack_backward_thread: the hub has no such table",
            1,
        );
    }
}

/// Compares all tables of a set.
pub fn set(folder: &Path, files: &[(i64, PathBuf)], tally: &mut Tally) {
    let traces: Vec<(i64, Trace)> = files
        .iter()
        .map(|(rank, file)| {
            let open = File::open(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            (*rank, format::read(open, None).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
        })
        .collect();
    let mut labels: Vec<_> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    labels.sort();
    for label in labels {
        let reading = reading(&name(&label));
        let models: Vec<Model<'_>> =
            traces.iter().map(|(rank, trace)| Model::new(trace, None, *rank, reading)).collect();
        let set = Set {
            name: format!("{}/{}", name(folder), name(&label)),
            exact: name(&label).ends_with("-exact"),
            reading,
            models,
        };
        let mut files: Vec<_> =
            label.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            set.file(&file, tally);
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

struct Set<'a> {
    name: String,
    exact: bool,
    reading: Reading,
    models: Vec<Model<'a>>,
}

/// `aten__convolution` stands for `aten::_convolution`.
fn operator(file: &str) -> String {
    let name = file.trim_start_matches("frequent_patterns_min");
    let name = name[2..].trim_end_matches(".csv");
    match name {
        "autograd_engine_evaluate_function" => "autograd::engine::evaluate_function".to_owned(),
        name => name.replacen('_', "::", 1),
    }
}

impl Set<'_> {
    /// HTA's floating point holds moments to half a nanosecond where they count from the start
    /// of the machine; sums of them are as far off as they have terms.
    fn tolerance(&self) -> Tolerance {
        if self.exact { Tolerance(0.0021, 3e-6) } else { Tolerance(1e-9, 1e-9) }
    }

    fn origin(&self) -> i64 {
        self.models.iter().map(|model| model.origin).min().unwrap()
    }

    /// Our table, of all ranks or of one.
    fn ours(&self, metric: &str, rank: Option<i64>, options: &Options) -> Result<Csv, String> {
        let metric = Metric::find(metric).unwrap_or_else(|| panic!("no metric {metric}"));
        let mut parts: Vec<Part> = Vec::new();
        // HTA adds the rows of ranks before it to those of a rank.
        let adds_up = metric.name == "aten_delay";
        let options = &Options { reading: self.reading, ..options.clone() };
        let wanted = |model: &&Model<'_>| {
            rank.is_none_or(|rank| rank == model.rank || adds_up && model.rank < rank)
        };
        for model in self.models.iter().filter(wanted) {
            let part = run::of_rank(metric, model, options).map_err(|error| error.to_string())?;
            parts.push(Part { origin: self.origin(), ..part });
        }
        let batch = run::over_ranks(metric, parts, options);
        let csv = Csv::parse(&render::csv(&batch.map_err(|error| error.to_string())?));
        Ok(csv)
    }

    fn file(&self, path: &Path, tally: &mut Tally) {
        let file = name(path);
        let context = format!("{} {file}", self.name);
        let rank = file
            .rsplit_once("_rank")
            .and_then(|(_, rest)| rest.split('.').next()?.parse::<i64>().ok());
        // HTA looks at one rank only.
        let rank = rank.or(file.starts_with("frequent_patterns").then_some(0));
        let stem = file.trim_end_matches(".gz").trim_end_matches(".csv").trim_end_matches(".json");
        let stem = stem.rsplit_once("_rank").map_or(stem, |(stem, _)| stem);
        let mut options = Options::default();
        let (metric, keys): (&str, &[&str]) = match stem {
            "temporal_breakdown" => ("temporal_breakdown", &[]),
            "comm_comp_overlap" => ("comm_comp_overlap", &[]),
            "kernel_type_breakdown_all" | "kernel_type_breakdown_default_top10" => {
                ("kernel_types", &["kernel_type"])
            }
            "kernel_breakdown_default_top10" => ("kernel_breakdown", &[]),
            "kernel_breakdown_all" => {
                options.num_kernels = usize::MAX;
                ("kernel_breakdown", &[])
            }
            "gpu_user_annotation_breakdown"
            | "cpu_user_annotation_breakdown"
            | "gpu_user_annotation_breakdown_top5"
            | "cpu_user_annotation_breakdown_top5" => {
                options.num_kernels = if stem.ends_with("top5") { 5 } else { 1000 };
                options.gpu_annotations = stem.starts_with("gpu");
                ("user_annotations", &[])
            }
            "idle_time_breakdown" => ("idle_time", &[]),
            "idle_interval_stats" => ("idle_intervals", &[]),
            "cuda_kernel_launch_stats" => ("launch_stats", &[]),
            "cuda_kernel_launch_stats_nomem" => {
                options.include_memory = false;
                ("launch_stats", &[])
            }
            "aten_op_kernels_and_delay" => {
                ("aten_delay", &["occurrence_count", "aten_op_name", "kernel_sequence"])
            }
            "queue_length_time_series" => ("queue_length", &[]),
            "queue_length_summary" => ("queue_length_summary", &[]),
            "time_blocked_full_queue_max1024" => ("blocked_on_queue", &[]),
            "time_blocked_full_queue_max8" => {
                options.max_queue_length = 8;
                ("blocked_on_queue", &[])
            }
            "memory_bw_time_series" => ("memory_bandwidth", &[]),
            "memory_bw_summary" => ("memory_bandwidth_summary", &[]),
            "gpu_kernels_user_annotation" => {
                ("kernel_annotations", &["ts", "s_name", "correlation"])
            }
            "call_graph" => ("call_graph", &["index"]),
            "call_graph_mapping" => ("call_stacks", &[]),
            _ if stem.starts_with("frequent_patterns_min") => {
                options.min_pattern_len =
                    stem["frequent_patterns_min".len()..][..1].parse().unwrap();
                options.operator = operator(&file);
                ("frequent_sequences", &[])
            }
            "counter_events" => ("counters", &["name", "id", "pid", "ts"]),
            "load" => return self.load(path, &context, tally),
            "stragglers" => return self.stragglers(path, &context, tally),
            _ if stem.starts_with("critical_path_") => {
                return self.critical_path(path, stem, &context, tally);
            }
            _ => return tally.except(&format!("HTA {stem}: not implemented yet"), 1),
        };
        let theirs = match metric {
            "queue_length_summary" | "memory_bandwidth_summary" => Csv::two_levels(path),
            _ => Csv::open(path),
        };
        match self.ours(metric, rank, &options) {
            Ok(ours) => {
                let label = format!("HTA {metric}");
                self.compare(&label, metric, &context, theirs, ours, keys, tally);
            }
            Err(error) => tally.value(
                &format!("HTA {metric}"),
                &context,
                "a table",
                &error,
                Tolerance(0.0, 0.0),
            ),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn compare(
        &self,
        label: &str,
        metric: &str,
        context: &str,
        mut theirs: Csv,
        mut ours: Csv,
        keys: &[&str],
        tally: &mut Tally,
    ) {
        match metric {
            // Whether combinations that take no time get a row depends on an unstable sort.
            "kernel_types" => theirs.retain(|csv, row| csv.number(row, "sum") != 0.0),
            // At one moment, the order of changes is undefined: only the last of them counts.
            "queue_length" => {
                for csv in [&mut theirs, &mut ours] {
                    last_of_each_moment(csv, &["stream"], "ts");
                }
                drop_column(&mut theirs, "index");
            }
            "memory_bandwidth" => {
                for csv in [&mut theirs, &mut ours] {
                    last_of_each_moment(csv, &["name", "pid"], "ts");
                }
            }
            // Means over changes depend on the order of changes of one moment, which is undefined.
            "queue_length_summary" | "memory_bandwidth_summary" => {
                self.only_without_ties(metric, &mut theirs, &mut ours, tally);
            }
            // HTA subtracts moments that it has aligned from some that it has not.
            "call_graph" => {
                let (span, end) = (theirs.column("kernel_span"), theirs.column("last_kernel_end"));
                let shift = self.origin() as f64 / 1e3;
                for row in &mut theirs.rows {
                    for at in [span, end].into_iter().flatten() {
                        let value: f64 = row[at].parse().unwrap();
                        if value > 0.0 {
                            row[at] = (value - shift).to_string();
                        }
                    }
                }
            }
            // At one moment, the order of changes is undefined: only the last of them counts.
            "counters" => {
                counter_values(&mut theirs);
                for csv in [&mut theirs, &mut ours] {
                    last_of_each_moment(csv, &["name", "id", "pid"], "ts");
                }
            }
            // Numbers of symbols.
            "kernel_annotations" => drop_column(&mut theirs, "user_annotation"),
            "aten_delay" => {
                let last = ours.rows.last().map(|row| ours.get(row, "rank").to_owned());
                ours.retain(|csv, row| Some(csv.get(row, "rank")) == last.as_deref());
            }
            _ => {}
        }
        if !keys.is_empty() {
            theirs.sort_by(keys);
            ours.sort_by(keys);
        }
        let tolerance = match metric {
            // They are rounded to two places after that.
            "idle_time" | "idle_intervals" if self.exact => Tolerance(0.0101, 3e-6),
            _ => self.tolerance(),
        };
        tally.table(label, context, &theirs, &ours, tolerance);
    }

    /// Whether the length of a queue changes several times at one moment.
    fn is_tied(&self, rank: Option<i64>) -> bool {
        let Ok(csv) = self.ours("queue_length", rank, &Options::default()) else { return false };
        let change =
            |row: &Vec<String>| (csv.get(row, "stream").to_owned(), csv.get(row, "ts").to_owned());
        csv.rows.windows(2).any(|pair| change(&pair[0]) == change(&pair[1]))
    }

    /// Leaves out the rows of series in which several changes happen at one moment.
    fn only_without_ties(&self, metric: &str, theirs: &mut Csv, ours: &mut Csv, tally: &mut Tally) {
        let (series, key) = match metric {
            "queue_length_summary" => ("queue_length", "stream"),
            _ => ("memory_bandwidth", "name"),
        };
        let mut tied: Vec<(String, String)> = Vec::new();
        for model in &self.models {
            let Ok(csv) = self.ours(series, Some(model.rank), &Options::default()) else {
                continue;
            };
            let change =
                |row: &Vec<String>| (csv.get(row, key).to_owned(), csv.get(row, "ts").to_owned());
            for pair in csv.rows.windows(2).filter(|pair| change(&pair[0]) == change(&pair[1])) {
                tied.push((model.rank.to_string(), change(&pair[0]).0));
            }
        }
        let without = |csv: &Csv, row: &[String]| {
            let own = (csv.get(row, "rank").to_owned(), csv.get(row, key).to_owned());
            !tied.contains(&own)
        };
        let before = theirs.rows.len();
        theirs.retain(without);
        ours.retain(without);
        let left = before - theirs.rows.len();
        if left > 0 {
            tally.except(
                "statistics of a series with several changes at one moment, whose order \
                          is undefined",
                left,
            );
        }
    }

    fn load(&self, path: &Path, context: &str, tally: &mut Tally) {
        let text = std::fs::read_to_string(path).unwrap();
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ranks: Vec<i64> = self.models.iter().map(|model| model.rank).collect();
        let ranks = serde_json::Value::from(ranks).to_string();
        let exact = Tolerance(0.0, 0.0);
        tally.value(
            "HTA load",
            &format!("{context} ranks"),
            &theirs["ranks"].to_string(),
            &ranks,
            exact,
        );
        let first = (self.origin() as f64 / 1e3).to_string();
        let t = self.tolerance();
        tally.value(
            "HTA load",
            &format!("{context} min_ts"),
            &theirs["min_ts"].to_string(),
            &first,
            t,
        );
    }

    fn critical_path(&self, path: &Path, stem: &str, context: &str, tally: &mut Tally) {
        let (instance, what) =
            stem["critical_path_".len()..].split_once('_').unwrap_or((&stem[14..], ""));
        let about = path.parent().unwrap().join(format!("critical_path_{instance}.json"));
        let about: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(about).unwrap()).unwrap();
        let number = |key: &str| about[key].as_u64().unwrap_or(0) as usize;
        let options = Options {
            annotation: about["annotation"].as_str().unwrap_or_default().to_owned(),
            instance: (number("instance_id"), number("instance_id")),
            ..Options::default()
        };
        let rank = Some(number("rank") as i64);
        let metric = match what {
            "breakdown" => "critical_path",
            "" => "critical_path_summary",
            _ => "critical_path_edges",
        };
        let label = format!("HTA critical path {}", if what.is_empty() { "summary" } else { what });
        let ours = match self.ours(metric, rank, &options) {
            Ok(ours) => ours,
            Err(_) if about["success"] != true => {
                return tally.value(&label, context, "no path", "no path", Tolerance(0.0, 0.0));
            }
            Err(error) => {
                return tally.value(&label, context, "a path", &error, Tolerance(0.0, 0.0));
            }
        };
        if what.is_empty() {
            return self.critical_summary(&label, &about, &ours, &options, context, tally);
        }
        let mut theirs = Csv::open(path);
        let mut ours = ours;
        match what {
            "breakdown" => {
                drop_column(&mut theirs, "cat");
                drop_column(&mut theirs, "index");
                for csv in [&mut theirs, &mut ours] {
                    csv.sort_by(&["event_idx", "type", "duration"]);
                }
            }
            "all_edges" => {
                // Numbers of nodes of one moment depend on an unstable sort in HTA 0.5.0.
                for csv in [&mut theirs, &mut ours] {
                    drop_column(csv, "src_node");
                    drop_column(csv, "dst_node");
                    csv.sort_by(&["src_ev", "dst_ev", "src_is_start", "dst_is_start"]);
                }
            }
            _ => {
                ours.retain(|csv, row| !csv.get(row, "critical").is_empty());
                ours.sort_by(&["critical"]);
                for name in ["pos", "src_node", "dst_node"] {
                    drop_column(&mut theirs, name);
                }
            }
        }
        tally.table(&label, context, &theirs, &ours, self.tolerance());
    }

    /// Counts and sums of the graph, and what the path is bound by.
    fn critical_summary(
        &self,
        label: &str,
        about: &serde_json::Value,
        ours: &Csv,
        options: &Options,
        context: &str,
        tally: &mut Tally,
    ) {
        let rank = about["rank"].as_i64();
        let edges = self.ours("critical_path_edges", rank, options).unwrap();
        let mut left_out = 0;
        // Moments that count from the start of the machine are half a nanosecond off in theirs.
        let t = if self.exact {
            Tolerance(0.0006 * edges.rows.len() as f64, 3e-6)
        } else {
            self.tolerance()
        };
        let mut value = |name: &str, theirs: &serde_json::Value, ours: f64| {
            let theirs = if theirs.is_null() { "none".to_owned() } else { theirs.to_string() };
            tally.value(label, &format!("{context} {name}"), &theirs, &ours.to_string(), t);
        };
        value("edges", &about["edges"], edges.rows.len() as f64);
        let critical = edges.rows.iter().filter(|row| !edges.get(row, "critical").is_empty());
        value(
            "critical nodes",
            &about["critical_path_nodes"],
            critical.clone().count() as f64 + 1.0,
        );
        let weight: f64 = critical.map(|row| edges.number(row, "weight")).sum();
        value("weight", &about["critical_path_weight"], weight);
        // Whether a kernel was launched into an empty queue depends on the order of changes of
        // one moment, which is undefined; that it has one of these edges does not.
        const DELAYS: [&str; 2] =
            ["critical_path_kernel_launch_delay", "critical_path_kernel_kernel_delay"];
        let delays = |csv: &Csv| {
            csv.rows.iter().filter(|row| DELAYS.contains(&csv.get(row, "type"))).count() as f64
        };
        let both: f64 = DELAYS.iter().filter_map(|kind| about["edge_types"][kind].as_f64()).sum();
        value("delays of both kinds", &both.into(), delays(&edges));
        let tied = self.is_tied(rank);
        for (kind, count) in about["edge_types"].as_object().into_iter().flatten() {
            if tied && DELAYS.contains(&kind.as_str()) {
                left_out += 2;
                continue;
            }
            let own = edges.rows.iter().filter(|row| edges.get(row, "type") == kind);
            value(kind, count, own.clone().count() as f64);
            let sum: f64 = own.map(|row| edges.number(row, "weight")).sum();
            value(kind, &about["edge_weight_by_type"][kind], sum);
        }
        for (bound_by, percent) in about["summary_pct"].as_object().into_iter().flatten() {
            let own = ours.rows.iter().find(|row| ours.get(row, "bound_by") == bound_by);
            value(bound_by, percent, own.map_or(f64::NAN, |row| ours.number(row, "percentage")));
        }
        if left_out > 0 {
            tally.except(
                "counts and sums of launch and kernel delays apart, where a queue's length \
                 changes several times at one moment",
                left_out,
            );
        }
    }

    fn stragglers(&self, path: &Path, context: &str, tally: &mut Tally) {
        let text = std::fs::read_to_string(path).unwrap();
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (key, value) in theirs.as_object().unwrap() {
            let (mut options, metric, column);
            options = Options::default();
            if key == "profiler_steps" {
                (metric, column) = ("profiler_steps", "step");
            } else {
                (metric, column) = ("stragglers", "rank");
                options.num_candidates = key[key.len() - 1..].parse().unwrap();
                let step =
                    key.strip_prefix("stragglers_step").and_then(|rest| rest.split('_').next());
                options.steps = step.and_then(|step| step.parse().ok()).into_iter().collect();
            }
            let ours = match self.ours(metric, None, &options) {
                Ok(ours) => {
                    let mut all: Vec<String> =
                        ours.rows.iter().map(|row| ours.get(row, column).to_owned()).collect();
                    if metric == "profiler_steps" {
                        all.sort_by_key(|step| step.parse::<i64>().unwrap());
                        all.dedup();
                    }
                    format!("[{}]", all.join(","))
                }
                Err(_) => "[]".to_owned(),
            };
            let context = format!("{context} {key}");
            tally.value(
                &format!("HTA {metric}"),
                &context,
                &value.to_string(),
                &ours,
                Tolerance(0.0, 0.0),
            );
        }
    }
}
