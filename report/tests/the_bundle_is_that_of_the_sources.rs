//! `web/dist` is what `web/bundle.mjs` makes of `web/src`. Needs Node and npm, and says so where they
//! are not.

use std::path::Path;
use std::process::Command;

fn run(folder: &Path, command: &[&str]) -> Result<(), String> {
    let done = Command::new(command[0]).args(&command[1..]).current_dir(folder).output();
    let done = done.map_err(|error| format!("{}: {error}", command[0]))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", command.join(" "), String::from_utf8_lossy(&done.stderr)))
}

#[test]
fn the_bundle_is_that_of_the_sources() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    if run(&web, &["node", "--version"]).is_err() || run(&web, &["npm", "--version"]).is_err() {
        println!("skipped: there is no Node here to make the bundle with");
        return;
    }
    let to = tempfile::tempdir().unwrap();
    // In a copy, since others may be using the folder.
    let copy = to.path().join("web");
    std::fs::create_dir_all(copy.join("src")).unwrap();
    for name in ["bundle.mjs", "package.json", "package-lock.json"] {
        std::fs::copy(web.join(name), copy.join(name)).unwrap();
    }
    for entry in std::fs::read_dir(web.join("src")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join("src").join(entry.file_name())).unwrap();
    }
    let install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
    run(&copy, &install).unwrap();
    run(&copy, &["node", "bundle.mjs"]).unwrap();
    for name in ["page.js", "page.css", "policy.txt"] {
        let [made, checked_in] =
            [&copy, &web].map(|at| std::fs::read_to_string(at.join("dist").join(name)).unwrap());
        assert!(made == checked_in, "{name} is another: run `node report/web/bundle.mjs`");
    }
}

/// A page without data, so that what it costs is seen.
#[test]
fn a_page_without_data_is_small() {
    let mut page = Vec::new();
    kymograph_report::Report::default().write(&mut page).unwrap();
    assert!(page.len() < 350 << 10, "{} bytes", page.len());
}
