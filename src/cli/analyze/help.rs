//! What metrics there are, and what each says.

use clap::CommandFactory;
use kymograph_analysis::{Metric, registry};
use std::io::Write;
use std::process::ExitCode;

/// All metrics, a line each.
pub(super) fn list() -> String {
    let line = |metric: &Metric| format!("{:<26}{}\n", metric.name, metric.answers);
    registry::ALL.iter().map(line).collect()
}

/// The chapters of these metrics, or all that `kymo analyze` can be told.
pub(super) fn print(metrics: &[&Metric]) -> ExitCode {
    if metrics.is_empty() {
        let mut kymo = super::super::Cli::command();
        kymo.build();
        if let Some(analyze) = kymo.find_subcommand_mut("analyze") {
            let _ = analyze.print_long_help();
        }
        return ExitCode::SUCCESS;
    }
    let chapter = |metric: &&Metric| {
        let more = "`kymo analyze --help` has all options, docs/ANALYSIS.md all metrics.\n";
        format!("{}\n{}\n{more}", columns(metric), described(metric.name))
    };
    let text: String = metrics.iter().map(chapter).collect();
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// What the documentation says of a metric, without the tables of columns.
fn described(name: &str) -> &'static str {
    const ALL: &str = include_str!("../../../docs/ANALYSIS.md");
    let chapters = ALL.split("\n## ").skip(1);
    let of = |chapter: &&str| {
        chapter.lines().next().is_some_and(|names| names.contains(&format!("`{name}`")))
    };
    let chapter = chapters.into_iter().find(of).unwrap_or_default();
    let body = chapter.split_once('\n').map_or("", |(_, body)| body);
    body.split("\n**`").next().unwrap_or_default().trim_start_matches('\n')
}

/// The columns of a metric.
pub(super) fn columns(metric: &Metric) -> String {
    let mut text = format!("{}: {}\n\n", metric.name, metric.answers);
    for column in metric.columns {
        let unit = column.unit.name();
        let unit = if unit.is_empty() { String::new() } else { format!(" [{unit}]") };
        text += &format!("  {:<34}{}\n", format!("{}{unit}", column.name), column.meaning);
    }
    text
}
