//! `kymo convert` of what is no trace, of traces that are cut off, and of parts with nothing in
//! them: an error that says what it is and status 2, or all that can be read and a remark.

use harness::kymo;
use kymo::kymo;
use std::io::Write;
use std::path::Path;

/// Status, and what was said.
fn convert(folder: &Path, input: &Path, options: &[&str]) -> (Option<i32>, String) {
    let output = folder.join("out.pftrace");
    let done = kymo().arg("convert").args(options).args([input, &output]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code() == Some(0), output.exists(), "{said}");
    let _ = std::fs::remove_file(output);
    (done.status.code(), said)
}

fn events(count: usize) -> String {
    let events: Vec<String> = (0..count)
        .map(|n| {
            let (name, start) = (n % 7, n * 3);
            format!(r#"{{"ph":"X","name":"n{name}","pid":1,"tid":1,"ts":{start},"dur":2}}"#)
        })
        .collect();
    events.join(",\n")
}

#[test]
fn with_what_it_seems_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let utf16: Vec<u8> =
        "\u{feff}[{\"ph\":\"X\"}]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: [(&str, &[u8], &str); 14] = [
        ("hello.json", br#"{"hello":"world"}"#, "without `traceEvents`; it has `hello`"),
        (
            "package.json",
            br#"{"name": "x", "version": "1.0.0", "dependencies": {}}"#,
            "it has `name`, `version`, `dependencies`",
        ),
        ("object.json", br#"{"traceEvents": {"a": 1}}"#, "is not a list of events"),
        ("numbers.json", b"[1, 2, 3]", "a JSON list of 3 entries, none of which is an event"),
        ("texts.json", br#"{"traceEvents": ["a"]}"#, "a JSON list of 1 entries"),
        ("empty.json", b"", "the file is empty"),
        ("braces.json", b"{}", "an empty JSON object"),
        ("wide.json", &utf16, "text in UTF-16"),
        ("archive.zip", b"PK\x03\x04rest of it", "a zip archive"),
        ("page.html", b"<!DOCTYPE html><html></html>", "a page in HTML"),
        ("notes.txt", b"just some words\n", "it seems to be text: `just some words`"),
        ("program", b"\x7fELF\x02\x01\x01", "a program"),
        // An XSpace with an XPlane of a name that no profiler gives and a line, and a host.
        (
            "a.xplane.pb",
            b"\x0a\x12\x12\x09/some:CPU\x1a\x05\x08\x01\x12\x01x\x22\x04host",
            "XPlane",
        ),
        ("table.db", b"SQLite format 3\0 and more", "an SQLite database that is cut off"),
    ];
    for (name, bytes, why) in cases {
        let input = folder.path().join(name);
        std::fs::write(&input, bytes).unwrap();
        let (code, said) = convert(folder.path(), &input, &[]);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.contains(why) && said.contains(name), "{name}: {said}");
    }
}

#[test]
fn events_in_lines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("lines.json");
    std::fs::write(&input, events(9).replace("},\n", "}\n")).unwrap();
    assert_eq!(convert(folder.path(), &input, &[]), (Some(0), String::new()));
}

#[test]
fn what_is_cut_off_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let json = format!("[{}]", events(20_000));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(json.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(json.as_bytes(), 1).unwrap();
    let garbage = [gzip.as_slice(), b"something else"].concat();
    for (name, bytes, remark) in [
        ("cut.json.gz", &gzip[..gzip.len() / 2], "packed data cut off or damaged"),
        ("cut.json.zst", &zstd[..zstd.len() / 2], "packed data cut off or damaged"),
        ("tail.json.gz", &garbage, "bytes behind the packed data, ignored"),
    ] {
        let input = folder.path().join(name);
        std::fs::write(&input, bytes).unwrap();
        let (code, said) = convert(folder.path(), &input, &[]);
        assert_eq!(code, Some(0), "{name}: {said}");
        assert!(said.contains(remark), "{name}: {said}");
        let info = kymo().args(["info", "--json"]).arg(&input).output().unwrap();
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        let slices = info["slices"].as_u64().unwrap();
        let all = name.starts_with("tail");
        assert!(if all { slices == 20_000 } else { slices > 5_000 }, "{name}: {slices}");
    }
}

#[test]
fn a_part_with_nothing_in_it_is_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("t.json");
    std::fs::write(&input, format!("[{}]", events(9))).unwrap();
    for (options, why) in [
        (["--category", "nosuch"], "none fits --category nosuch"),
        (["--rank", "5"], "none fits --rank 5; no process in this trace states its rank"),
        (["--name", "x*"], "none fits --name x*"),
        (["--thread", "77"], "none fits --thread 77"),
        (["--time-range", "1s..2s"], "none fits --time-range"),
    ] {
        let (code, said) = convert(folder.path(), &input, &options);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
    let (code, said) = convert(folder.path(), &input, &["--name", "n1", "--thread", "1"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn what_is_no_trace_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("t.json");
    std::fs::write(&input, format!("[{}]", events(9))).unwrap();
    let output = folder.path().join("package.json");
    let before = r#"{"name": "x"}"#;
    std::fs::write(&output, before).unwrap();
    let convert = |options: &[&str]| {
        let mut command = kymo();
        command.arg("convert").args(options).args([&input, &output]);
        command.output().unwrap()
    };
    let done = convert(&[]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("not replaced without --force"));
    assert_eq!(std::fs::read_to_string(&output).unwrap(), before);
    assert!(convert(&["--force"]).status.success());
    // Now it is one.
    assert!(convert(&[]).status.success());
}
