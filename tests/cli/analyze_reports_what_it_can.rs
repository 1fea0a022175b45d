//! `kymo analyze` on good traces and bad ones: a table, a page, or a line that says why not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis/tests/data").join(name)
}

fn analyze(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kymo")).arg("analyze").args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one line that is said when nothing can be done.
fn refused(words: &[&str]) -> String {
    let output = analyze(words);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(output.stdout.is_empty());
    let said = said(&output);
    assert!(said.starts_with("kymo: ") && said.ends_with('\n'), "{said}");
    said
}

#[test]
fn the_page_names_the_straggler() {
    let page = printed(&analyze(&[data("traces").to_str().unwrap()]));
    assert!(page.starts_with("2 traces, 2 ranks with device work, 3 steps (2 to 4)\n"), "{page}");
    assert!(page.contains("the other ranks wait for rank 1"), "{page}");
    assert!(page.contains("all_gather 0 of step 3"), "{page}");
}

#[test]
fn a_table_in_each_format() {
    let pattern = data("traces/ddp_cut_rank*.json.gz");
    let words = ["temporal_breakdown", pattern.to_str().unwrap(), "--format"];
    let json = printed(&analyze(&[&words[..], &["json"]].concat()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["metric"], "temporal_breakdown");
    assert_eq!(json["columns"][1]["name"], "idle_time");
    assert_eq!(json["columns"][1]["unit"], "ns");
    assert_eq!(json["rows"].as_array().unwrap().len(), 2);
    let csv = printed(&analyze(&[&words[..], &["csv"]].concat()));
    assert!(csv.starts_with("rank,idle_time,compute_time,"), "{csv}");
    let hta = printed(&analyze(&[&words[..], &["csv", "--compat", "hta"]].concat()));
    assert!(hta.starts_with("rank,idle_time(us),compute_time(us),"), "{hta}");
    let one = printed(&analyze(&[&words[..], &["csv", "--rank", "1"]].concat()));
    assert_eq!(one.lines().count(), 2);
}

#[test]
fn what_is_not_there_is_said() {
    let host_only = data("goldens/key_averages/cpu/plain.pt.trace.json.gz");
    let host_only = host_only.to_str().unwrap();
    assert!(refused(&["temporal_breakdown", host_only]).contains("has no device work"));
    assert!(printed(&analyze(&[host_only])).starts_with("1 trace, no device work"));
    let rank = data("traces/ddp_cut_rank0.json.gz");
    let rank = rank.to_str().unwrap();
    assert!(refused(&["temporal_breakdown", rank, rank]).contains("both rank 0"));
    assert!(refused(&["temporal_breakdown", rank, "--rank", "7"]).contains("no rank 7"));
    assert!(refused(&["stragglers", rank]).contains("several ranks"));
    assert!(refused(&["frequent_sequences", rank]).contains("--operator"));
    assert!(refused(&["critical_path", rank, "--instance", "9"]).contains("only 3"));
    assert!(refused(&["idle_time", rank, "--sort", "nosuch"]).contains("idle_category"));
    assert!(refused(&["diff", rank]).contains("BASE and TEST"));
    assert!(refused(&["regressions", rank, rank, rank]).contains("BASE and TEST"));
    assert!(refused(&["regressions,operators", rank, rank]).contains("ask for it alone"));
    assert!(refused(&["operators", rank, "--format", "collapsed"]).contains("stacks"));
    assert!(refused(&["stacks", rank, "--compat", "torch"]).contains("no Python functions"));
    assert!(refused(&["idle_tim", rank]).contains("--list"));
    assert!(refused(&["idle_time", "nosuch.json"]).contains("nosuch.json"));
    assert!(refused(&[]).contains("METRIC"));
}

#[test]
fn a_recording_of_two_gpus_names_who_is_late() {
    let recording = data("recordings/late_rank_2gpus.pftrace.gz");
    let page = printed(&analyze(&[recording.to_str().unwrap()]));
    assert!(page.starts_with("1 trace, 2 ranks with device work, 15 steps (1 to 15)\n"), "{page}");
    assert!(page.contains("the other ranks wait for rank 1"), "{page}");
    assert!(page.contains("all_reduce"), "{page}");
}

/// Eight steps of a program, `slower` times as long as they are at first.
fn steps(path: &str, slower: f64) {
    let (mut events, mut at) = (Vec::new(), 0.0);
    for step in 0..8 {
        let dur = (1000.0 + f64::from(step * 7 % 5)) * slower;
        events.push(format!(
            "{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#{step}\", \
             \"pid\": 1, \"tid\": 1, \"ts\": {at}, \"dur\": {dur}}}"
        ));
        at += dur;
    }
    let json = format!("{{\"traceEvents\": [{}]}}", events.join(",\n"));
    std::fs::write(path, json).unwrap();
}

#[test]
fn a_regression_is_an_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (base, same, slow) = (at("base.json"), at("same.json"), at("slow.json"));
    steps(&base, 1.0);
    steps(&same, 1.001);
    steps(&slow, 1.05);
    let of = |test: &str, most: &str| {
        let words = ["regressions", &base, test, "--fail-above", most, "--format", "csv"];
        let output = analyze(&words);
        let csv = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(csv.starts_with("kind,name,base_steps,"), "{csv}");
        (output.status.code(), csv.lines().nth(1).unwrap().to_owned())
    };
    let (status, row) = of(&slow, "3%");
    assert_eq!(status, Some(3), "{row}");
    assert!(row.starts_with("step,duration,8,8,") && row.ends_with(",regression"), "{row}");
    assert_eq!(of(&slow, "10%").0, Some(0));
    assert_eq!(of(&same, "3%").0, Some(0));
}

#[test]
fn a_flame_graph_of_a_trace() {
    let host_only = data("goldens/key_averages/cpu/plain.pt.trace.json.gz");
    let words = ["stacks", host_only.to_str().unwrap(), "--format"];
    let lines = printed(&analyze(&[&words[..], &["collapsed"]].concat()));
    let time = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert!(lines.lines().count() > 100 && lines.lines().all(|line| time(line) > 0), "{lines}");
    let json = printed(&analyze(&[&words[..], &["speedscope"]].concat()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["profiles"][0]["samples"].as_array().unwrap().len(), lines.lines().count());
}

#[test]
fn bad_files_are_refused_and_good_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert!(refused(&["idle_time", folder.path().to_str().unwrap()]).contains("no traces"));
    std::fs::write(at("empty.json"), "").unwrap();
    refused(&["idle_time", &at("empty.json")]);
    std::fs::write(at("text.json"), "not a trace").unwrap();
    refused(&[&at("text.json")]);
    std::fs::write(at("none.json"), r#"{"traceEvents": []}"#).unwrap();
    assert!(refused(&["kernel_breakdown", &at("none.json")]).contains("no device work"));
    assert!(refused(&["operators", &at("none.json")]).contains("neither operators"));
    // What is written stays as it was when there is nothing to write.
    std::fs::write(at("out.csv"), "good").unwrap();
    refused(&["kernel_breakdown", &at("none.json"), "-o", &at("out.csv")]);
    assert_eq!(std::fs::read_to_string(at("out.csv")).unwrap(), "good");
}

#[test]
fn a_cut_trace_gives_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.json");
    let mut events = String::from("{\"traceEvents\": [\n");
    for n in 0..50 {
        events += &format!(
            "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, \
             \"ts\": {}, \"dur\": 5, \"args\": {{\"stream\": 7, \"device\": 0}}}},\n",
            n * 10
        );
    }
    events += "{\"ph\": \"X\", \"cat\": \"ker";
    std::fs::write(&cut, events).unwrap();
    let output = analyze(&["kernel_breakdown", cut.to_str().unwrap(), "--format", "csv"]);
    let csv = printed(&output);
    assert!(csv.lines().nth(1).unwrap().starts_with("k,50,250000,5000,5000,0.0,5000.0,"), "{csv}");
    assert!(said(&output).contains("cut.json: "), "{}", said(&output));
}

#[test]
fn counters_and_the_critical_path_are_written_into_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let input = data("traces/ddp_cut_rank0.json.gz");
    let input = input.to_str().unwrap();
    let out = folder.path().join("out.pftrace");
    let write = |metric: &str| {
        printed(&analyze(&[metric, input, "--overlay", out.to_str().unwrap()]));
        oracle::Trace::open(&out)
    };
    let trace = write("counters");
    trace.assert_clean();
    let largest = "select cast(max(value) as int) from counter join counter_track t on t.id = track_id \
                   where t.name like 'Queue Length%'";
    let csv = printed(&analyze(&["queue_length_summary", input, "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&csv).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let most = rows.iter().filter_map(|row| row["max"].as_f64()).fold(0.0, f64::max);
    assert_eq!(trace.one_i64(largest), most as i64);

    let trace = write("critical_path");
    trace.assert_clean();
    let json = printed(&analyze(&["critical_path", input, "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let events: std::collections::HashSet<_> =
        rows.iter().filter_map(|row| row["event_idx"].as_i64()).collect();
    let critical = "select count(distinct arg_set_id) from args where key glob '*critical'";
    assert_eq!(trace.one_i64(critical), events.len() as i64);
    let refused = refused(&["kernels", input, "--overlay", out.to_str().unwrap()]);
    assert!(refused.contains("--overlay is for counters, critical_path and"), "{refused}");
}

#[test]
fn frequent_sequences_are_marked_in_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let input = data("traces/ddp_cut_rank0.json.gz");
    let out = folder.path().join("out.pftrace");
    let of = ["--operator", "autograd::", "--min-pattern-len", "1"];
    let words = [&["frequent_sequences", input.to_str().unwrap()][..], &of].concat();
    let more = |more: &[&str]| printed(&analyze(&[&words[..], more].concat()));
    let json: serde_json::Value = serde_json::from_str(&more(&["--format", "json"])).unwrap();
    let rows = json["rows"].as_array().unwrap();
    more(&["--limit", "2", "--overlay", out.to_str().unwrap()]);
    let trace = oracle::Trace::open(&out);
    trace.assert_clean();
    // Each of its operators and kernels is marked; a kernel may come twice in a sequence.
    for row in &rows[..2] {
        let (pattern, count) = (row["pattern"].as_str().unwrap(), row["count"].as_i64().unwrap());
        let (operator, kernels) = pattern.split_once('|').unwrap();
        // Device work has arguments as text.
        let marked = |name: &str| {
            trace.one_i64(&format!(
                "select count(*) from slice join args using (arg_set_id)
                 where slice.name = '{name}'
                   and (args.key = 'debug.Patterns.{pattern}' and args.int_value = {count}
                        or args.key = 'Patterns'
                           and args.string_value = '{{\"{pattern}\": {count}}}')"
            ))
        };
        assert_eq!(marked(operator), count, "{pattern}");
        assert!(kernels.split('|').all(|kernel| marked(kernel) >= count), "{pattern}");
    }
}

#[test]
fn what_would_be_if_something_were_faster() {
    let input = data("traces/ddp_cut_rank0.json.gz");
    let words = ["critical_path_summary", input.to_str().unwrap(), "--format", "json"];
    let sum = |more: &[&str]| -> f64 {
        let json = printed(&analyze(&[&words[..], more].concat()));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["rows"].as_array().unwrap().iter().filter_map(|row| row["duration"].as_f64()).sum()
    };
    let (as_it_is, faster) = (sum(&[]), sum(&["--scale", "nccl=0"]));
    assert!(faster < as_it_is, "{faster} {as_it_is}");
    let refused = refused(&[&words[..], &["--scale", "nothing of this name=2"]].concat());
    assert!(refused.contains("no event of the window"), "{refused}");
}

#[test]
fn each_metric_has_help() {
    let all = printed(&analyze(&["--list"]));
    for name in all.lines().filter_map(|line| line.split(' ').next()) {
        let help = printed(&analyze(&[name, "--help"]));
        let (columns, about) = help.split_once("\n\n").unwrap();
        assert!(columns.starts_with(&format!("{name}: ")), "{name}: {help}");
        assert!(about.lines().count() > 5, "{name}: {help}");
    }
    let general = printed(&analyze(&["--help"]));
    assert!(general.contains("docs/ANALYSIS.md") && general.contains("--compat"), "{general}");
}

#[test]
fn one_of_several_metrics_may_have_nothing_to_say() {
    let input = data("traces/ddp_cut_rank0.json.gz");
    let input = input.to_str().unwrap();
    let output = analyze(&["kernels,modules,stragglers", input, "--format", "csv"]);
    let text = printed(&output);
    assert!(text.starts_with("# kernels\n") && !text.contains("# modules"), "{text}");
    let said = said(&output);
    assert!(said.contains("modules: rank 0 has no modules"), "{said}");
    assert!(said.contains("stragglers: no collective"), "{said}");
    let refused = refused(&["modules,cupti_counters", input]);
    assert!(refused.contains("modules: rank 0 has no modules"), "{refused}");
}

#[test]
fn a_process_is_chosen_by_its_id() {
    let recording = data("recordings/late_rank_2gpus.pftrace.gz");
    let recording = recording.to_str().unwrap();
    let ranks = |more: &[&str]| -> Vec<i64> {
        let words = [&["temporal_breakdown", recording, "--format", "json"], more].concat();
        let json: serde_json::Value = serde_json::from_str(&printed(&analyze(&words))).unwrap();
        json["rows"].as_array().unwrap().iter().filter_map(|row| row["rank"].as_i64()).collect()
    };
    assert_eq!(ranks(&[]), [0, 1]);
    assert_eq!(ranks(&["--process", "629"]), [1]);
    let refused = refused(&["temporal_breakdown", recording, "--process", "1"]);
    assert!(refused.contains("no process 1"), "{refused}");
}
