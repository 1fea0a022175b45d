//! What single metrics can be told.

use clap::{Args, ValueEnum};
use kymograph_analysis::Options;
use kymograph_analysis::metric::{diff, stacks};

use super::parse_steps;

/// What single metrics can be told.
#[derive(Args)]
#[command(next_help_heading = "For single metrics")]
pub(super) struct Tuning {
    /// kernel_breakdown, user_annotations: names that are shown before the rest is folded.
    #[arg(long, value_name = "N")]
    num_kernels: Option<usize>,
    /// kernel_breakdown, user_annotations: also fold names beyond this quantile of running sums.
    #[arg(long, value_name = "Q")]
    duration_ratio: Option<f64>,
    /// kernel_breakdown, kernel_types, launch_stats: leave out copies and fills.
    #[arg(long)]
    no_memory: bool,
    /// user_annotations: those of the host, not as devices saw them.
    #[arg(long)]
    host: bool,
    /// user_annotations: names with this in them are never folded.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    allow: Vec<String>,
    /// idle_time: shorter gaps are the cost of launching.
    #[arg(long, value_name = "TIME", value_parser = super::super::part::parse_time)]
    kernel_delay: Option<i64>,
    /// blocked_on_queue: the length at which a queue is full.
    #[arg(long, value_name = "N")]
    max_queue_length: Option<i64>,
    /// frequent_sequences: what names of operators contain.
    #[arg(long, value_name = "TEXT")]
    operator: Option<String>,
    /// frequent_sequences: the fewest kernels of a sequence.
    #[arg(long, value_name = "N")]
    min_pattern_len: Option<i64>,
    /// critical_path: what the name of the annotation contains whose time is looked at; empty
    /// for the whole trace.
    #[arg(long, value_name = "TEXT")]
    annotation: Option<String>,
    /// critical_path: which of these annotations, counted from 0, such as 2 or 2..4.
    #[arg(long, value_name = "N|A..B", value_parser = parse_steps)]
    instance: Option<(i64, i64)>,
    /// critical_path: what if events with NAME in their names took FACTOR times as long, such as
    /// nccl=0.
    #[arg(long, value_name = "NAME=FACTOR", value_parser = parse_factor)]
    scale: Vec<(String, f64)>,
    /// critical_path: what if the edge between two nodes took TIME, such as 12-13=5us; the nodes are
    /// those of critical_path_edges.
    #[arg(long, value_name = "FROM-TO=TIME", value_parser = parse_edge)]
    edge: Vec<(u32, u32, i64)>,
    /// operators_by_stack: how many Python functions tell operators apart.
    #[arg(long, value_name = "N")]
    stack_depth: Option<usize>,
    /// stacks: which time a flame graph shows.
    #[arg(long, value_enum, value_name = "SIDE")]
    weight: Option<Side>,
    /// regressions: how much slower steps may become, such as 3%.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    fail_above: Option<f64>,
    /// roofline: what the device computes at most per second, such as 989T.
    #[arg(long, value_name = "FLOPS", value_parser = parse_scaled)]
    peak_flops: Option<f64>,
    /// roofline: how many bytes its memory moves at most per second, such as 4.8T.
    #[arg(long, value_name = "BYTES", value_parser = parse_scaled)]
    peak_bandwidth: Option<f64>,
    /// diff: shorten the names of kernels, so that those of other types and shapes are one.
    #[arg(long)]
    short_names: bool,
    /// diff: only events of the host, or of devices.
    #[arg(long, value_enum, value_name = "SIDE")]
    side: Option<Side>,
    /// operators: let Python functions count as callees, as in a torch.profiler with
    /// verbose=True.
    #[arg(long)]
    python_functions: bool,
    /// operators: rows for Python functions, too, as with include_python_functions=True.
    #[arg(long)]
    python_rows: bool,
    /// stragglers by HTA's rule: how many ranks may be named.
    #[arg(long, value_name = "N")]
    num_candidates: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Side {
    /// Those of the host.
    Host,
    /// Those of devices.
    Device,
}

impl Tuning {
    /// Puts what was given into options.
    pub(super) fn put(&self, options: &mut Options) {
        set(&mut options.num_kernels, self.num_kernels);
        set(&mut options.duration_ratio, self.duration_ratio);
        set(&mut options.consecutive_kernel_delay, self.kernel_delay);
        set(&mut options.max_queue_length, self.max_queue_length);
        set(&mut options.operator, self.operator.clone());
        set(&mut options.min_pattern_len, self.min_pattern_len);
        set(&mut options.num_candidates, self.num_candidates);
        set(&mut options.annotation, self.annotation.clone());
        let place = |number: i64| usize::try_from(number).unwrap_or(0);
        set(&mut options.instance, self.instance.map(|(a, b)| (place(a), place(b))));
        options.scales = self.scale.clone();
        options.edges = self.edge.clone();
        options.python_functions = self.python_functions;
        options.python_rows = self.python_rows;
        set(&mut options.stack_depth, self.stack_depth);
        set(&mut options.fail_above, self.fail_above);
        options.weight = self.weight();
        options.peak_flops = self.peak_flops;
        options.peak_bandwidth = self.peak_bandwidth;
        options.short_names = self.short_names;
        options.side = match self.side {
            None => diff::Side::All,
            Some(Side::Host) => diff::Side::Host,
            Some(Side::Device) => diff::Side::Device,
        };
        options.include_memory = !self.no_memory;
        options.gpu_annotations = !self.host;
        options.allowlist = self.allow.clone();
    }

    /// Which time stacks have.
    pub(super) fn weight(&self) -> stacks::Weight {
        match self.weight {
            Some(Side::Device) => stacks::Weight::Device,
            _ => stacks::Weight::Host,
        }
    }
}

fn set<T>(option: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *option = value;
    }
}

/// `nccl=0.5`.
fn parse_factor(text: &str) -> Result<(String, f64), String> {
    let (name, factor) = text.rsplit_once('=').unwrap_or_default();
    match factor.parse::<f64>() {
        Ok(factor) if (0.0..=1e6).contains(&factor) && !name.is_empty() => {
            Ok((name.to_owned(), factor))
        }
        _ => Err("a name and a factor of at least 0, such as nccl=0.5".to_owned()),
    }
}

/// `12-13=5us`.
fn parse_edge(text: &str) -> Result<(u32, u32, i64), String> {
    let edge = || {
        let (nodes, time) = text.split_once('=')?;
        let (from, to) = nodes.split_once('-')?;
        let time = super::super::part::parse_time(time).ok()?;
        Some((from.parse().ok()?, to.parse().ok()?, time))
    };
    edge().ok_or_else(|| "two nodes and a time, such as 12-13=5us".to_owned())
}

/// `3%`, or `3`.
fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage of at least 0, such as 3%".to_owned()),
    }
}

/// A number with a unit of thousands behind it: `989T`, `4.8T`, `2e12`.
fn parse_scaled(text: &str) -> Result<f64, String> {
    const UNITS: [(char, f64); 5] = [('k', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12), ('P', 1e15)];
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(*unit));
    let (number, scale) = unit.map_or((text, 1.0), |(_, scale)| (&text[..text.len() - 1], *scale));
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number * scale),
        _ => Err("a number above 0, such as 989T (k, M, G, T and P are units)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_understood() {
        assert_eq!(parse_percent("3%"), Ok(0.03));
        assert_eq!(parse_percent("2.5"), Ok(0.025));
        assert_eq!(parse_scaled("989T"), Ok(989e12));
        assert_eq!(parse_scaled("2e12"), Ok(2e12));
        for wrong in ["", "%", "-1%", "x"] {
            assert!(parse_percent(wrong).is_err() && parse_scaled(wrong).is_err(), "{wrong}");
        }
    }
}
