//! What the command has started and still runs when the command has ended.

use kymograph::control::Page;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Processes that were told of this recording by their environment, or take part in it: pid
/// and name. Those of other users cannot be seen, unless root looks.
pub(super) fn outlived(page: &Page, recorded: &[(u32, String)]) -> Vec<(u32, String)> {
    let mut told = b"KYMOGRAPH_CONTROL=".to_vec();
    told.extend_from_slice(page.path().as_os_str().as_bytes());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let was_told = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == told)
    };
    let mut pids: Vec<_> =
        pids.filter(was_told).chain(recorded.iter().map(|(pid, _)| *pid)).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid != std::process::id());
    pids.into_iter().filter_map(|pid| Some((pid, name(pid)?))).collect()
}

/// What the system calls a process that runs.
fn name(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `4711 (name) S …`; the name may contain anything.
    let (from, to) =
        (stat.iter().position(|b| *b == b'(')?, stat.iter().rposition(|b| *b == b')')?);
    let ended = matches!(stat.get(to + 2), Some(b'Z' | b'X'));
    let name = String::from_utf8_lossy(stat.get(from + 1..to)?).into_owned();
    (!ended).then_some(name)
}
