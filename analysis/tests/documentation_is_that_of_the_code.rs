//! docs/ANALYSIS.md describes every metric: the words are those at the head of its file, the
//! columns those it has. `KYMOGRAPH_WRITE_DOCS=1` writes them anew.

use std::fs;
use std::path::Path;

use kymograph_analysis::{Metric, registry};

const BEGIN: &str = "<!-- Made of analysis/src/metric by a test. -->\n";

#[test]
fn every_metric_is_described() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = own.join("../docs/ANALYSIS.md");
    let text = fs::read_to_string(&path).unwrap();
    let (by_hand, made) = text.split_once(BEGIN).expect("the line that begins what is made");
    let expected = metrics(&own.join("src/metric"));
    if std::env::var_os("KYMOGRAPH_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{by_hand}{BEGIN}{expected}")).unwrap();
    } else {
        assert!(made == expected, "docs/ANALYSIS.md is not up to date: see {}", file!());
    }
}

/// All metrics, file by file in the order of the registry.
fn metrics(folder: &Path) -> String {
    let sources: Vec<String> = {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter_mut().filter(|path| path.is_dir()) {
            path.push("mod.rs");
        }
        paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    let mut out = String::new();
    let mut written: Vec<&str> = Vec::new();
    for metric in registry::ALL {
        if written.contains(&metric.name) {
            continue;
        }
        let mark = |metric: &Metric| format!("name: \"{}\",", metric.name);
        let source = sources.iter().find(|source| source.contains(&mark(metric)));
        let source = source.unwrap_or_else(|| panic!("no file has the metric {}", metric.name));
        let of_file = registry::ALL.iter().filter(|metric| source.contains(&mark(metric)));
        let of_file: Vec<&Metric> = of_file.collect();
        let names: Vec<String> = of_file.iter().map(|m| format!("`{}`", m.name)).collect();
        out += &format!("\n## {}\n\n", names.join(", "));
        for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
            out += &format!("{}\n", plain(line.strip_prefix(' ').unwrap_or(line)));
        }
        for metric in of_file {
            written.push(metric.name);
            out += &format!("\n**`{}`**: {}.\n\n", metric.name, metric.answers);
            out += "| column | unit | what it says | in HTA |\n|---|---|---|---|\n";
            for column in metric.columns {
                let (name, unit, meaning) = (column.name, column.unit.name(), column.meaning);
                let hta = match column.hta {
                    same if same == name => "the same",
                    other => other,
                };
                out += &format!("| `{name}` | {unit} | {meaning} | {hta} |\n");
            }
        }
    }
    out
}

/// Links to code mean nothing outside of it.
fn plain(line: &str) -> String {
    let mut line = line.replace("[`super::", "`").replace("[`crate::", "`");
    line = line.replace("`]", "`");
    line.replace("[`", "`")
}
