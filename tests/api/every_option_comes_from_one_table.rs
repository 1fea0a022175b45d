//! The table's keys, defaults and syntaxes are what environment, text and help accept.

use kymograph::config::{self, Compress, Config, ForkPolicy, OPTIONS, Policy};
use std::time::Duration;

fn lines(problems: &[config::Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_default_in_the_table_is_accepted_and_is_the_default() {
    for option in OPTIONS {
        let mut config = Config::default();
        config.set(option.key, option.default).unwrap();
        assert_eq!(config, Config::default(), "{}", option.key);
        assert_eq!(option.env, format!("KYMOGRAPH_{}", option.key));
        assert!(config::markdown().contains(option.env) && config::text().contains(option.key));
    }
    let config = Config::default();
    assert_eq!(config.buffer, 64 << 20);
    assert_eq!(config.flush, Duration::from_millis(200));
    assert_eq!((config.policy, config.fork), (Policy::Drop, ForkPolicy::Record));
}

#[test]
fn text_is_lines_of_key_and_value() {
    let text = "# a comment\n\n  buffer = 1G \nPOLICY=stall:5ms\nOUTPUT=a=b.pftrace\r\nBUFFER=2G";
    let (config, problems) = Config::parse_text(text);
    assert_eq!(problems, []);
    assert_eq!(config.buffer, 2 << 30);
    assert_eq!(config.policy, Policy::Stall(Duration::from_millis(5)));
    assert_eq!(config.output.to_str(), Some("a=b.pftrace"));
}

#[test]
fn what_cannot_be_used_is_reported_and_changes_nothing() {
    let text = "BUFER=1M\nFLUSH=2s\nnonsense\nSAFE=1\nXYZZY=1";
    let (config, problems) = Config::parse_text(text);
    let lines = lines(&problems);
    assert_eq!(lines[0], "line 1: BUFER: no such option; did you mean BUFFER?");
    assert_eq!(lines[1], "line 2: FLUSH=2s: expected a duration from 1ms to 1s");
    assert_eq!(lines[2], "line 3: `nonsense` is not KEY=VALUE");
    assert!(lines[3].starts_with("line 5: XYZZY: no such option; there are OUTPUT, "));
    let mut expected = Config::default();
    expected.safe = true;
    assert_eq!(config, expected);
}

#[test]
fn the_environment_is_all_variables_with_the_prefix() {
    let vars = [
        ("KYMOGRAPH_SAFE", "yes"),
        ("KYMOGRAPH_MODE", "600"),
        ("PATH", "/bin"),
        ("KYMOGRAPH_FORKS", "x"),
    ];
    let (config, problems) = Config::from_vars(vars);
    assert!(config.safe);
    assert_eq!(config.mode, Some(0o600));
    let expected = "KYMOGRAPH_FORKS: no such option; did you mean KYMOGRAPH_FORK?";
    assert_eq!(lines(&problems), [expected]);
}

#[test]
fn an_empty_value_is_the_default() {
    let mut config = Config::default();
    config.set("MODE", "0600").unwrap();
    config.set("BUFFER", "1M").unwrap();
    config.set("MODE", "").unwrap();
    config.set("BUFFER", "").unwrap();
    assert_eq!(config, Config::default());
}

#[test]
fn the_extension_decides_the_compression_unless_told() {
    let of = |text: &str| Config::parse_text(text).0.compression();
    assert_eq!(of("OUTPUT=t.pftrace"), Compress::None);
    assert_eq!(of("OUTPUT=t.pftrace.gz"), Compress::Gzip);
    assert_eq!(of("OUTPUT=t.pftrace.zst"), Compress::Zstd);
    assert_eq!(of("OUTPUT=t.pftrace.zst\nCOMPRESS=none"), Compress::None);
}

#[test]
fn the_output_of_a_process_has_its_number_where_asked_or_needed() {
    let of = |output: &str, forked| {
        let config = Config::parse_text(&format!("OUTPUT={output}")).0;
        config.output_path(7, forked).to_str().unwrap().to_owned()
    };
    assert_eq!(of("t.pftrace", false), "t.pftrace");
    assert_eq!(of("t-%p.pftrace", false), "t-7.pftrace");
    assert_eq!(of("t-%p.pftrace", true), "t-7.pftrace");
    assert_eq!(of("a.b/t.pftrace.gz", true), "a.b/t.7.pftrace.gz");
    assert_eq!(of("a.b/.trace", true), "a.b/.trace.7");
}
