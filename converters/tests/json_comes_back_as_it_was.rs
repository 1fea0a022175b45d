//! A trace in JSON, read into the hub and written again, says what it said: for each fixture,
//! with the comparison that `same_events` describes.

mod same_events;

use kymograph_converters::json::Limits;
use kymograph_converters::{chrome, kineto};
use same_events::Through;

fn again(json: &str) -> String {
    let trace = chrome::read(json.as_bytes(), &Limits::default()).unwrap();
    let mut out = Vec::new();
    kineto::write(&trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn check(name: &str, original: &str, json: &str) {
    let again = again(json);
    let whole = original.trim_start().starts_with('{');
    let through = if whole { Through::Json } else { Through::Chrome };
    let found = same_events::compare(original, &again, through);
    assert!(found.differences.is_empty(), "{name}: {:#?}\n{again}", found.differences);
    // And what was written is read as the same again, without any repair.
    let once_more = chrome::read(again.as_bytes(), &Limits::default()).unwrap();
    let complaints: Vec<_> = once_more.facts.warnings.iter().map(|w| &w.what).collect();
    let known = |what: &&String| what.starts_with("duration") || what.ends_with("for JSON only");
    assert!(complaints.iter().all(known), "{name}: {complaints:?}");
}

macro_rules! fixtures {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let json = include_str!(concat!("data/", stringify!($name), ".json"));
            check(stringify!($name), json, json);
        }
    )*};
}

fixtures! {
    kineto_cuda kineto_rocm kineto_xpu kineto_mtia kineto_privateuse1 kineto_2021 gaudi jax chrome
}

#[test]
fn what_was_broken_comes_back_repaired() {
    let broken = include_str!("data/kineto_broken.json");
    check("broken", include_str!("data/kineto_broken_fixed.json"), broken);
}

#[test]
fn viewers_get_the_same_events() {
    for json in [include_str!("data/kineto_cuda.json"), include_str!("data/chrome.json")] {
        let trace = chrome::read(json.as_bytes(), &Limits::default()).unwrap();
        let mut out = Vec::new();
        chrome::write(&trace, &mut out).unwrap();
        let found = same_events::compare(json, std::str::from_utf8(&out).unwrap(), Through::Chrome);
        assert!(found.differences.is_empty(), "{:#?}", found.differences);
    }
}

#[test]
fn an_event_a_line() {
    let json = again(include_str!("data/kineto_cuda.json"));
    for line in json.lines().filter(|line| line.starts_with("{\"ph\"")) {
        let event = line.strip_suffix(',').unwrap_or(line);
        serde_json::from_str::<serde_json::Value>(event).unwrap();
    }
    assert!(json.lines().any(|line| line.starts_with("\"distributedInfo\": {\"backend\"")));
}

#[test]
fn the_comparison_sees_a_difference() {
    let json = include_str!("data/kineto_cuda.json");
    for (from, to) in [
        ("117.748", "117.749"),
        ("\"External id\": 65537", "\"External id\": 65537.0"),
        ("1409.3763440860216", "1409.3763440860218"),
        (
            "\"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"bp\"",
            "\"cat\": \"x\", \"name\": \"fwdbwd\", \"bp\"",
        ),
        ("\"id\": 1001, \"pid\": 0", "\"id\": 1009, \"pid\": 0"),
        ("stream 20 ", "stream 20"),
        ("node-7", "node-8"),
        ("\"Python parent id\": null", "\"Python parent id\": 0"),
    ] {
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from}");
        let found = same_events::compare(json, &changed, Through::Json);
        assert!(!found.differences.is_empty(), "{from} -> {to}");
    }
}
