//! Tasks that are killed at any moment leave nothing that the next one does not complete.

mod jobs;

use std::path::Path;
use std::process::{Command, Stdio};

fn task(root: &Path, traces: &Path) -> Command {
    let mut task = Command::new(env!("CARGO_BIN_EXE_kymo-scale"));
    task.args(["dataset", "add"]).arg(root).arg(traces).stderr(Stdio::null());
    task
}

/// How many ranks are there.
fn ranks(root: &Path) -> usize {
    let entries = root.join("ranks").read_dir().into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count()
}

#[test]
fn what_tasks_leave_that_are_killed_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).unwrap();
    jobs::traces(&jobs::healthy(12, 2), &traces);
    let expected = folder.path().join("expected");
    assert!(task(&expected, &traces).status().unwrap().success());
    let root = folder.path().join("set");
    // Two at a time, of which one is killed whenever another rank is there.
    for there in 0..6 {
        let mut one = task(&root, &traces).args(["--jobs", "1"]).spawn().unwrap();
        let mut other = task(&root, &traces).args(["--jobs", "2"]).spawn().unwrap();
        while ranks(&root) <= there && one.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        for task in [&mut one, &mut other] {
            task.kill().unwrap();
            task.wait().unwrap();
        }
    }
    assert!(task(&root, &traces).status().unwrap().success());
    let tables = |root: &Path| {
        let mut all = jobs::files(root);
        all.retain(|(path, _)| !path.starts_with("ranks"));
        all
    };
    assert!(tables(&root) == tables(&expected));
    assert_eq!(ranks(&root), 12);
    let mut check = Command::new(env!("CARGO_BIN_EXE_kymo-scale"));
    let output = check.args(["dataset", "check"]).arg(&root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn each_rank_can_be_a_task_of_its_own_and_a_partial_answer_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).unwrap();
    let paths = jobs::traces(&jobs::healthy(4, 2), &traces);
    let root = folder.path().join("set");
    let tasks: Vec<_> = paths[..3].iter().map(|path| task(&root, path).spawn().unwrap()).collect();
    for mut task in tasks {
        assert!(task.wait().unwrap().success());
    }
    let analyze = |options: &[&str]| {
        let mut kymo = Command::new(env!("CARGO_BIN_EXE_kymo-scale"));
        let set = root.to_str().unwrap();
        kymo.args(["analyze", "temporal_breakdown", set, "--format", "csv"]).args(options);
        kymo.output().unwrap()
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let refused = analyze(&[]);
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(2), String::new()));
    assert!(text(&refused.stderr).contains("rank 3 is missing"), "{}", text(&refused.stderr));
    let partial = analyze(&["--partial"]);
    assert_eq!(partial.status.code(), Some(0));
    assert_eq!(text(&partial.stdout).lines().count(), 4);
    assert!(text(&partial.stderr).contains("rank 3 is missing"));
    assert!(task(&root, &paths[3]).status().unwrap().success());
    let whole = analyze(&[]);
    assert_eq!(text(&whole.stdout).lines().count(), 5);
    assert_eq!(text(&whole.stderr), "");
}

#[test]
fn shares_of_a_job_array_are_all_ranks_once() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("all traces");
    std::fs::create_dir(&traces).unwrap();
    jobs::traces(&jobs::healthy(5, 2), &traces);
    std::fs::write(traces.join("labels.csv"), "rank\n").unwrap();
    // It has the words of `kymo`.
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kymo-scale"), programs.join("kymo")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/scale/add_share.sh");
    let root = folder.path().join("job.set");
    let share = |variables: [(&str, String); 2]| {
        let mut task = Command::new("sh");
        for name in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"] {
            task.env_remove(name);
        }
        task.arg(script).arg(&root).arg(&traces).env("PATH", &path).envs(variables);
        task.output().unwrap()
    };
    for index in 0..3 {
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", index.to_string()),
            ("SLURM_ARRAY_TASK_COUNT", "3".to_owned()),
        ];
        let kubernetes = [("JOB_COMPLETION_INDEX", index.to_string()), ("SHARES", "3".to_owned())];
        let output = share(if index == 1 { slurm } else { kubernetes });
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let expected = [2, 2, 1][index];
        assert!(said.contains(&format!("{expected} ranks added, 0 were there")), "{said}");
    }
    assert_eq!(ranks(&root), 5);
    let ninth = share([("JOB_COMPLETION_INDEX", "8".to_owned()), ("SHARES", "9".to_owned())]);
    assert!(ninth.status.success() && ninth.stderr.is_empty());
}
