//! Data sets and traces in object storage: what is said of them is what is said of folders, and
//! what fails or is killed leaves nothing that is taken for whole.
#![cfg(feature = "storage")]

mod jobs;
mod storage;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use storage::{Bucket, What, done, in_front, kymo, port, run};

struct Made {
    folder: tempfile::TempDir,
    traces: Vec<PathBuf>,
}

impl Made {
    fn new(ranks: usize) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("traces");
        std::fs::create_dir(&traces).unwrap();
        let traces = jobs::traces(&jobs::healthy(ranks, 2), &traces);
        Made { folder, traces }
    }

    fn all(&self) -> &str {
        self.traces[0].parent().unwrap().to_str().unwrap()
    }

    fn of(&self, rank: usize) -> &str {
        self.traces[rank].to_str().unwrap()
    }

    /// Another trace of a rank.
    fn other(&self, rank: usize) -> String {
        let text = std::fs::read_to_string(&self.traces[rank]).unwrap();
        assert!(text.contains("aten::mm"));
        let path = self.folder.path().join(format!("other{rank}.json"));
        std::fs::write(&path, text.replace("aten::mm", "aten::bmm")).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A data set of all ranks in a folder.
    fn local(&self) -> String {
        let set = self.folder.path().join("local.set").to_str().unwrap().to_owned();
        done(&["dataset", "add", &set, self.all()]);
        set
    }
}

#[cfg(feature = "query")]
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].sort_unstable();
    lines
}

#[test]
fn answers_are_those_of_a_folder_and_the_same_again_changes_nothing() {
    let made = Made::new(4);
    let local = made.local();
    let key = "job [1] %20? Größe/set";
    let set = &format!("s3://bucket/{key}");
    done(&["dataset", "add", set, made.all()]);
    assert_eq!(done(&["dataset", "check", set]), done(&["dataset", "check", &local]));
    let bucket = Bucket::new();
    bucket.assert_tidy(key);
    for metric in ["stragglers", "temporal_breakdown", "kernel_breakdown", "clock_offsets"] {
        let of = |set: &str| done(&["analyze", metric, set, "--format", "csv"]);
        let expected = of(&local);
        assert!(expected.lines().count() > 1, "{metric}");
        assert_eq!(of(set), expected, "{metric}");
    }
    #[cfg(feature = "query")]
    for table in kymograph_scale::tables::NAMES.into_iter().chain(["metrics.stragglers"]) {
        let sql = format!("SELECT * FROM {table}");
        let of = |set: &str| done(&["query", set, &sql, "--format", "csv"]);
        assert!(lines(&of(set)) == lines(&of(&local)), "{table}");
    }
    let before = bucket.below(key);
    let (status, _, said) = run(port(), &["dataset", "add", set, made.all()]);
    assert!(status == 0 && said.contains("0 ranks added, 4 were there"), "{said}");
    assert_eq!(before, bucket.below(key));
    // A further metric is there with all others, and nothing twice.
    done(&["dataset", "add", set, made.of(1), "--metrics", "call_graph"]);
    bucket.assert_tidy(key);
    assert_eq!(done(&["dataset", "check", set]).lines().count(), 1);
}

#[test]
fn traces_come_from_object_storage_and_from_servers() {
    let made = Made::new(5);
    let bucket = Bucket::new();
    for rank in 0..4 {
        let key = format!("Läufe 1/rank{rank}.json.gz");
        bucket.put(&key, jobs::packed(&made.traces[rank]));
    }
    bucket.put("Läufe 1/notes.txt", b"dear diary".to_vec());
    bucket.put("Läufe 1/below/rank9.json.gz", b"not one of them".to_vec());
    // More than one piece.
    let mut long = std::fs::read(&made.traces[4]).unwrap();
    long.resize(20 << 20, b' ');
    bucket.put("long/rank4.json", long);
    let set = made.folder.path().join("set");
    let set = set.to_str().unwrap();
    let added = |source: &str| {
        let (status, _, said) = run(port(), &["dataset", "add", set, source]);
        assert_eq!(status, 0, "{source}: {said}");
        said
    };
    assert!(added("s3://bucket/Läufe 1/rank3*.gz").contains("1 ranks added"));
    assert!(added("s3://bucket/Läufe 1/").contains("3 ranks added, 1 were there"));
    assert!(added("s3://bucket/long/rank4.json").contains("1 ranks added"));
    let local = made.local();
    let of = |set: &str| done(&["analyze", "stragglers", set, "--format", "csv"]);
    assert_eq!(of(set), of(&local));
    // Nothing is fetched that is there already: the second server has no answer to that.
    let refusing = in_front(|line| match line.starts_with("GET /bucket/L") {
        true => What::Answer("403 Forbidden", ""),
        false => What::Pass,
    });
    let (status, _, said) = run(refusing, &["dataset", "add", set, "s3://bucket/Läufe 1/"]);
    assert!(status == 0 && said.contains("0 ranks added, 4 were there"), "{said}");
    // Over HTTP. What stands behind ? goes out, and is not told.
    let packed = jobs::packed(&made.traces[0]);
    let server = in_front(move |line| match line {
        "GET /L%C3%A4ufe%201/rank0.json.gz?secret=1 HTTP/1.1" => What::File(packed.clone()),
        _ => What::Answer("404 Not Found", ""),
    });
    let other = made.folder.path().join("of http");
    let other = other.to_str().unwrap();
    let web = |name: &str| format!("http://127.0.0.1:{server}/Läufe 1/{name}?secret=1");
    let (good, none) = (web("rank0.json.gz"), web("none.json"));
    let (status, _, said) = run(port(), &["dataset", "add", other, &none, &good]);
    assert!(status == 2 && said.contains("none.json: it is not there"), "{said}");
    assert!(said.contains("1 ranks added") && !said.contains("secret"), "{said}");
}

#[test]
fn a_trace_that_is_cut_on_its_way_is_none() {
    let made = Made::new(2);
    let bucket = Bucket::new();
    for rank in 0..2 {
        bucket.put(&format!("cut/rank{rank}.json"), std::fs::read(&made.traces[rank]).unwrap());
    }
    let files = made.traces.iter().map(|path| std::fs::read(path).unwrap());
    let files: Vec<Vec<u8>> = files.collect();
    let cutting = in_front(move |line| match line {
        "GET /rank0.json HTTP/1.1" => What::File(files[0].clone()),
        "GET /rank1.json HTTP/1.1" => What::CutFile(files[1].clone()),
        _ if line.starts_with("GET /bucket/cut/rank1.json") => What::CutAnswer,
        _ => What::Pass,
    });
    let web = |rank| format!("http://127.0.0.1:{cutting}/rank{rank}.json");
    for (name, source) in
        [("s3", ["s3://bucket/cut/".to_owned(), String::new()]), ("http", [web(0), web(1)])]
    {
        let set = made.folder.path().join(name);
        let set = set.to_str().unwrap();
        let mut words = vec!["dataset", "add", set];
        words.extend(source.iter().map(String::as_str).filter(|word| !word.is_empty()));
        let (status, _, said) = run(cutting, &words);
        assert!(status == 2 && said.contains("1 ranks added"), "{said}");
        assert!(said.contains("rank1.json") && said.contains("was cut"), "{said}");
        let (status, _, said) = run(port(), &["dataset", "check", set]);
        assert!(status == 3 && said.contains("rank 1 is missing"), "{said}");
    }
    // Once is no harm.
    let once = Mutex::new(false);
    let cutting = in_front(move |line| {
        let first = line.contains("rank1.json") && line.starts_with("GET");
        match first && !std::mem::replace(&mut *once.lock().unwrap(), true) {
            true => What::CutAnswer,
            false => What::Pass,
        }
    });
    let set = made.folder.path().join("again");
    let set = set.to_str().unwrap();
    let (status, _, said) = run(cutting, &["dataset", "add", set, "s3://bucket/cut/"]);
    assert!(status == 0 && said.contains("2 ranks added"), "{said}");
}

/// A server that stops at requests, each of which the test lets go.
fn stopping(at: impl Fn(&str) -> bool + Send + Sync + 'static) -> (u16, Receiver<()>, Sender<()>) {
    let ((reached, reach), (go, goes)) = (channel(), channel());
    let goes = Mutex::new(goes);
    let port = in_front(move |line| {
        if at(line) {
            let _ = reached.send(());
            let _: Result<(), _> = goes.lock().unwrap().recv();
        }
        What::Pass
    });
    (port, reach, go)
}

#[test]
fn what_a_killed_task_leaves_is_no_rank_and_is_completed() {
    let made = Made::new(3);
    let bucket = Bucket::new();
    for (key, at) in [("killed/tables", "/steps/"), ("killed/manifest", "/ranks/rank-000001")] {
        let set = &format!("s3://bucket/{key}");
        done(&["dataset", "add", set, made.of(0), made.of(2)]);
        let (stopping, reached, _go) =
            stopping(move |line| line.starts_with("PUT") && line.contains(at));
        let mut task = kymo(stopping, &["dataset", "add", set, made.of(1)]).spawn().unwrap();
        reached.recv().unwrap();
        task.kill().unwrap();
        task.wait().unwrap();
        let (status, _, said) = run(port(), &["dataset", "check", set]);
        assert!(status == 3 && said.contains("rank 1 is half written"), "{said}");
        let (status, out, said) = run(port(), &["analyze", "stragglers", set]);
        assert_eq!((status, out.as_str()), (2, ""), "{said}");
        assert!(said.contains("rank 1 is half written"), "{said}");
        done(&["dataset", "add", set, made.all()]);
        bucket.assert_tidy(key);
        assert_eq!(run(port(), &["dataset", "check", set]).0, 0);
    }
}

#[test]
fn what_a_killed_replacement_leaves_is_told_and_goes() {
    let made = Made::new(2);
    let (key, bucket) = ("replaced", Bucket::new());
    let set = &format!("s3://bucket/{key}");
    done(&["dataset", "add", set, made.all()]);
    let other = made.other(1);
    let (stopping, reached, _go) =
        stopping(|line| line.starts_with("PUT") && line.contains("/ranks/rank-000001"));
    let words = ["dataset", "add", set, &other, "--replace"];
    let mut task = kymo(stopping, &words).spawn().unwrap();
    reached.recv().unwrap();
    // The old one is there all the time.
    let before = done(&["analyze", "kernel_breakdown", set, "--format", "csv"]);
    task.kill().unwrap();
    task.wait().unwrap();
    let (status, _, said) = run(port(), &["dataset", "check", set]);
    assert!(status == 3 && said.contains("rank 1: beside it are files"), "{said}");
    assert_eq!(done(&["analyze", "kernel_breakdown", set, "--format", "csv"]), before);
    done(&words);
    bucket.assert_tidy(key);
    assert_eq!(run(port(), &["dataset", "check", set]).0, 0);
    let (status, _, said) = run(port(), &["dataset", "add", set, made.of(1)]);
    assert!(status == 2 && said.contains("rank 1 is there from other1.json"), "{said}");
}

#[test]
fn only_what_can_no_longer_be_taken_is_removed() {
    let made = Made::new(2);
    let (key, bucket) = ("left", Bucket::new());
    let set = &format!("s3://bucket/{key}");
    let (stopping, reached, go) =
        stopping(|line| line.starts_with("PUT") && line.contains("/ranks/rank-000001"));
    let mut task = kymo(stopping, &["dataset", "add", set, made.all()]).spawn().unwrap();
    reached.recv().unwrap();
    // What this task has said, as that of another that began meanwhile, and of one that is not
    // killed and says files that are not its own.
    let said = bucket.below(&format!("{key}/.partial/rank-000001")).into_keys().next().unwrap();
    let own = said.trim_start_matches('/').trim_end_matches(".json").to_owned();
    let text = bucket.get(&format!("{key}/.partial/rank-000001{said}"));
    let text = String::from_utf8(text).unwrap();
    let steps = |id: &str| format!("{key}/steps/ranks=000000-000063/rank-000001-{id}.parquet");
    let begin = |id: &str| {
        let text = text.replace(&own, id).into_bytes();
        bucket.put(&format!("{key}/.partial/rank-000001/{id}.json"), text);
        bucket.put(&steps(id), b"PAR1".to_vec());
    };
    begin("00older");
    bucket.put(&format!("{key}/.partial/rank-000001/00liar.json"), text.clone().into_bytes());
    // Times of objects are whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    go.send(()).unwrap();
    assert!(task.wait().unwrap().success());
    std::thread::sleep(std::time::Duration::from_millis(2100));
    begin("11newer");
    let (status, _, said) = run(port(), &["dataset", "check", set]);
    assert!(status == 3 && said.contains("rank 1: beside it are files"), "{said}");
    let (status, _, said) = run(port(), &["dataset", "add", set, made.of(1)]);
    assert!(status == 0 && said.contains("0 ranks added, 1 were there"), "{said}");
    let left = bucket.below(key);
    let has = |path: &str| left.keys().any(|key| key.contains(path));
    assert!(!has("00older") && !has("00liar"), "{left:?}");
    // That one may still put its manifest.
    assert!(has(".partial/rank-000001/11newer.json") && has("rank-000001-11newer.parquet"));
    assert_eq!(done(&["analyze", "temporal_breakdown", set, "--format", "csv"]).lines().count(), 3);
}

#[test]
fn of_two_tasks_that_add_a_rank_at_once_one_is_first_and_the_other_says_so() {
    let made = Made::new(2);
    let bucket = Bucket::new();
    let other = made.other(1);
    let race = |key: &str, slow: &[&str], fast: &[&str]| {
        let set = format!("s3://bucket/{key}");
        let words = |rest: &[&str]| -> Vec<String> {
            let words = ["dataset", "add", &set].into_iter().chain(rest.iter().copied());
            words.map(str::to_owned).collect()
        };
        let (stopping, reached, go) =
            stopping(|line| line.starts_with("PUT") && line.contains("/ranks/rank-000001"));
        let mut task = kymo(stopping, &[]);
        let task = task.args(words(slow)).stderr(std::process::Stdio::piped()).spawn().unwrap();
        reached.recv().unwrap();
        let fast = kymo(port(), &[]).args(words(fast)).output().unwrap();
        assert!(fast.status.success());
        go.send(()).unwrap();
        let (status, _, said) = storage::ended(&task.wait_with_output().unwrap());
        // What was put is whole, and nothing of the other is left.
        bucket.assert_tidy(key);
        let manifest = bucket.get(&format!("{key}/ranks/rank-000001.json"));
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        (status, said, manifest["source"].as_str().unwrap().to_owned())
    };
    let both = made.all();
    done(&["dataset", "add", "s3://bucket/race/replace", both]);
    let (status, said, source) = race("race/differ", &[&other], &[both]);
    assert_eq!((status, source.as_str()), (2, "rank1.json"));
    assert!(said.contains("rank 1 was added by another task at the same time"), "{said}");
    let (status, said, source) = race("race/same", &[made.of(1)], &[both]);
    assert_eq!((status, source.as_str()), (0, "rank1.json"), "{said}");
    assert!(said.contains("0 ranks added, 1 were there"), "{said}");
    let third = made.folder.path().join("third.json");
    std::fs::write(&third, std::fs::read_to_string(&other).unwrap().replace("bmm", "mv")).unwrap();
    let third = third.to_str().unwrap();
    let (status, said, source) =
        race("race/replace", &["--replace", &other], &["--replace", third]);
    assert_eq!((status, source.as_str()), (2, "third.json"), "{said}");
}

#[test]
fn a_server_that_fails_has_a_clear_word_and_no_answer_is_part_of_one() {
    let made = Made::new(3);
    let set = "s3://bucket/failing/set";
    done(&["dataset", "add", set, made.all()]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failing = in_front(|_| {
        let text = "<Error><Code>InternalError</Code><Message>We failed.</Message></Error>";
        What::Answer("500 Internal Server Error", text)
    });
    let denying = in_front(|_| {
        let text = "<Error><Code>InvalidAccessKeyId</Code><Message>No such key.</Message></Error>";
        What::Answer("403 Forbidden", text)
    });
    // A table that is cut, and one that is not there any more.
    let cut = in_front(|line| match line.starts_with("GET") && line.contains("rank-000002-") {
        true => What::CutAnswer,
        false => What::Pass,
    });
    let lost = in_front(|line| match line.starts_with("GET") && line.contains("rank-000002-") {
        true => What::Answer("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>"),
        false => What::Pass,
    });
    let other = made.other(1);
    let analyze = ["analyze", "stragglers", set, "--format", "csv"];
    let query = ["query", set, "SELECT sum(dur) FROM kernels", "--format", "csv"];
    let (check, add) = (["dataset", "check", set], ["dataset", "add", set, &other, "--replace"]);
    for (port, word) in [
        (gone, "cannot be reached: Connection refused"),
        (failing, "answers 500 Internal Server Error (InternalError: We failed.)"),
        (denying, "access is denied (InvalidAccessKeyId: No such key.); AWS_ACCESS_KEY_ID"),
        (cut, "was cut"),
        (lost, "it is not there"),
    ] {
        let mut asked: Vec<&[&str]> = vec![&analyze];
        if cfg!(feature = "query") {
            asked.push(&query);
        }
        if ![cut, lost].contains(&port) {
            asked.extend([&check[..], &add[..]]);
        }
        for words in asked {
            let (status, out, said) = run(port, words);
            assert_eq!((status, out.as_str()), (2, ""), "{words:?}: {said}");
            assert!(said.contains(word) && said.contains("failing/set"), "{words:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    // One that answers nothing.
    let silent = in_front(|_| What::Silence);
    let mut slow = kymo(silent, &check);
    let (status, out, said) =
        storage::ended(&slow.env("AWS_TIMEOUT", "1 second").output().unwrap());
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(said.contains("is too slow"), "{said}");
    assert_eq!(run(port(), &check).0, 0, "nothing of it has changed");
}

#[test]
fn an_upload_that_fails_leaves_no_rank_and_the_others_are_added() {
    let made = Made::new(3);
    let (key, bucket) = ("uploads", Bucket::new());
    let set = &format!("s3://bucket/{key}");
    let cutting = in_front(|line| {
        let fails = line.starts_with("PUT") && line.contains("/kernels/");
        match fails && line.contains("rank-000001-") {
            true => What::CutRequest,
            false => What::Pass,
        }
    });
    let (status, _, said) = run(cutting, &["dataset", "add", set, made.all()]);
    assert!(status == 2 && said.contains("rank-000001-") && said.contains("was cut"), "{said}");
    assert!(said.contains("2 ranks added") && said.contains("1 trace could not"), "{said}");
    bucket.assert_tidy(key);
    let (status, out, said) = run(port(), &["analyze", "stragglers", set]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(said.contains("rank 1 is missing"), "{said}");
    done(&["dataset", "add", set, made.all()]);
    assert_eq!(run(port(), &["dataset", "check", set]).0, 0);
    // What somebody takes away or writes over is named, and repaired.
    let files = |at: &str| {
        let all = bucket.below(key).into_keys();
        all.filter(|path| path.contains(at)).map(|path| format!("{key}{path}")).collect::<Vec<_>>()
    };
    bucket.delete(&files("/steps/ranks=000000-000063/rank-000002-")[0]);
    bucket.put(&files("/calls/ranks=000000-000063/rank-000000-")[0], b"PAR1".to_vec());
    let (status, _, said) = run(port(), &["dataset", "check", set]);
    assert!(status == 3 && said.contains("rank 0: ") && said.contains("rank 2: "), "{said}");
    done(&["dataset", "add", set, made.all()]);
    assert_eq!(run(port(), &["dataset", "check", set]).0, 0);
    bucket.assert_tidy(key);
}

#[test]
fn what_is_no_data_set_and_what_is_missing_is_said() {
    let made = Made::new(1);
    let bucket = Bucket::new();
    bucket.put("thesis/thesis.tex", b"x".to_vec());
    let why = |words: &[&str]| {
        let (status, out, said) = run(port(), words);
        assert_eq!((status, out.as_str()), (2, ""), "{words:?}: {said}");
        said
    };
    let trace = made.of(0);
    let unconditional = in_front(|_| What::Unconditional);
    for _ in 0..2 {
        let (status, _, said) = run(unconditional, &["dataset", "add", "s3://bucket/turns", trace]);
        assert!(status == 2 && said.contains("takes no notice of `If-None-Match`"), "{said}");
        assert_eq!(bucket.below("turns").len(), 1);
    }
    assert!(why(&["dataset", "check", "s3://bucket/nothing"]).contains("is no data set"));
    assert!(why(&["dataset", "add", "s3://bucket/thesis", trace]).contains("other files"));
    assert_eq!(bucket.below("thesis").len(), 1);
    // An empty folder is none of other files.
    done(&["dataset", "add", "s3://bucket/marked/set", trace, "--rank", "0"]);
    done(&["analyze", "temporal_breakdown", "s3://bucket/marked/set/"]);
    for words in [
        ["dataset", "add", "s3://other-bucket/set", trace],
        ["dataset", "add", "s3://bucket/set", "s3://other-bucket/traces/"],
        ["analyze", "stragglers", "s3://other-bucket/set", "--partial"],
    ] {
        assert!(why(&words).contains("there is no such bucket"));
    }
    assert!(why(&["dataset", "add", "s3://bucket/x", "s3://bucket/none/"]).contains("no traces"));
    assert!(why(&["dataset", "check", "https://host/set"]).contains("no list of files"));
    assert!(why(&["dataset", "add", "x", "https://host/traces/"]).contains("no list of files"));
    assert!(why(&["dataset", "check", "hdfs://host/set"]).contains("s3://, gs:// and az://"));
    let mut nobody = kymo(port(), &["dataset", "check", "s3://bucket/set"]);
    nobody.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    // Instead of the machines of a cloud.
    nobody.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9");
    let (status, _, said) = storage::ended(&nobody.output().unwrap());
    assert!(status == 2 && said.contains("there are no credentials: AWS_ACCESS_KEY_ID"), "{said}");
    let mut plain = kymo(port(), &["dataset", "check", "s3://bucket/set"]);
    let (status, _, said) = storage::ended(&plain.env_remove("AWS_ALLOW_HTTP").output().unwrap());
    assert!(status == 2 && said.contains("AWS_ALLOW_HTTP=true"), "{said}");
    assert!(!Path::new("x").exists());
}
