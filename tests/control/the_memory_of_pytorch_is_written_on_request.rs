//! `kymo trigger --memory-snapshot`: a running program writes what PyTorch has in the memory of
//! GPUs. The PyTorch is one of our own.

use harness::control;
use std::path::Path;
use std::process::Command;

use control::{Place, Program};

fn start(place: &Place, arguments: &[&str]) -> Program {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut command = place.kymo(&["record", "--wait", "--"]);
    command.arg(oracle::venv_python()).arg(data.join("control/memory.py")).args(arguments);
    command.env("PYTHONPATH", data.join("pytorch")).env("PYTHONDONTWRITEBYTECODE", "1");
    Program::start(command)
}

/// Asks for a snapshot: what the pickle says.
fn snapshot(place: &Place, name: &str, more: &[&str]) -> String {
    let file = place.path(name);
    let asks = ["trigger", "--memory-snapshot", file.to_str().unwrap()];
    let said = place.run(&[&asks, more].concat());
    assert!(said.good && said.paths() == [file.clone()], "{said:?}");
    let prints = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')))";
    let output = Command::new(oracle::venv_python()).args(["-c", prints]).arg(&file).output();
    String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn as_it_is_and_with_allocations_that_are_kept_meanwhile() {
    let place = Place::new();
    let program = start(&place, &[]);
    let what = "{'segments': [{'device': 0, 'total_size': 4096}], 'kept': ";
    assert_eq!(snapshot(&place, "one.pickle", &[]), format!("{what}[]}}"));
    assert_eq!(
        snapshot(&place, "kept.pickle", &["--duration", "10ms"]),
        format!("{what}['all']}}")
    );
    // They are not kept any longer than that.
    assert_eq!(snapshot(&place, "two.pickle", &[]), format!("{what}['all', None]}}"));
    assert!(program.end());
}

#[test]
fn what_cannot_be_written_is_refused_with_the_reason() {
    let place = Place::new();
    let ask = |file: &str| place.run(&["trigger", "--memory-snapshot", file]);
    let program = start(&place, &["unused"]);
    let file = place.path("memory.pickle");
    let said = ask(file.to_str().unwrap());
    assert!(!said.good && said.err.contains("PyTorch has not used a GPU"), "{said:?}");
    assert!(program.end());
    let program = start(&place, &[]);
    let said = ask("/nowhere/memory.pickle");
    assert!(!said.good && said.err.contains("/nowhere"), "{said:?}");
    // A file that is there is left alone.
    std::fs::write(&file, "mine").unwrap();
    let said = ask(file.to_str().unwrap());
    assert!(!said.good && said.err.contains("it exists"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    std::fs::remove_file(&file).unwrap();
    // A folder in its place: the file is not half there either.
    std::fs::create_dir(&file).unwrap();
    let said = ask(file.to_str().unwrap());
    assert!(!said.good && said.err.contains("IsADirectoryError"), "{said:?}");
    assert!(!place.path("memory.pickle.part").exists());
    assert!(program.end());
}
