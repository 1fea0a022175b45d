//! docs/CONTROL.md: its commands, one after the other.

use harness::control;
use std::path::Path;
use std::time::Instant;

use control::{Place, Program, TIMEOUT, open};

/// The commands in the page's shell blocks.
fn commands() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/CONTROL.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// Asks for a trace with operators, again if the machine was busy: by time, the program need
/// not have run while it was recorded, nor when it was to start.
fn operators_come(place: &Place, ask: &str, words: &[&str]) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let said = place.run(&words[1..]);
        let late = said.err.contains("its start was") || said.err.contains("it could not start");
        if !(late && ask.contains("--at")) {
            assert!(said.good, "{ask}: {said:?}");
            let trace = open(&said.paths()[0]);
            let operators = "SELECT COUNT(*) FROM slice WHERE name = 'aten::add'";
            if trace.one_i64(operators) > 0 {
                return;
            }
        }
        assert!(ask.contains("--duration") && Instant::now() < deadline, "{ask}: {said:?}");
    }
}

#[test]
fn each_does_what_the_page_says() {
    let place = Place::new();
    let commands = commands();
    let [start, asks @ ..] = commands.as_slice() else {
        panic!("no commands");
    };
    assert_eq!(start, "kymo record --wait -- python3 train.py");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut command = place.kymo(&["record", "--wait", "--"]);
    command.arg(oracle::venv_python()).arg(data.join("control/train.py"));
    command.env("PYTHONPATH", data.join("pytorch")).env("PYTHONDONTWRITEBYTECODE", "1");
    let program = Program::start(command);
    assert!(asks.len() >= 5, "{asks:?}");
    let mut traces = 0;
    for ask in asks {
        // As a shell reads them: patterns are in quotes.
        let words: Vec<&str> = ask.split(' ').map(|word| word.trim_matches('\'')).collect();
        assert_eq!(words[0], "kymo", "{ask}");
        match words[1] {
            "trigger" => {
                traces += 1;
                operators_come(&place, ask, &words);
            }
            _ => {
                let said = place.run(&words[1..]);
                assert!(said.good, "{ask}: {said:?}");
                assert!(said.out.contains(&program.pid.to_string()), "{ask}: {said:?}");
            }
        }
    }
    assert_eq!(traces, 4);
    assert!(program.end());
}
