//! What the command has started and still runs when the command has ended.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Processes that were told of this recording by their environment, or take part in it: pid
/// and name. Those of other users cannot be seen, unless root looks. `command` was the first;
/// `recorded` are known to have recorded something.
pub(super) fn outlived(
    control: &Path,
    command: u32,
    recorded: &[(u32, String)],
) -> Vec<(u32, String)> {
    let mut told = b"KYMOGRAPH_CONTROL=".to_vec();
    told.extend_from_slice(control.as_os_str().as_bytes());
    let last = last_pid().unwrap_or(u32::MAX);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let was_told = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == told)
    };
    // There may be thousands of others on the machine.
    let pids = pids.filter(|pid| is_between(command, *pid, last)).filter(was_told);
    let mut pids: Vec<_> = pids.chain(recorded.iter().map(|(pid, _)| *pid)).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid != std::process::id());
    pids.into_iter().filter_map(|pid| Some((pid, name(pid)?))).collect()
}

/// The newest process (proc_loadavg(5)).
fn last_pid() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().nth(4)?.parse().ok()
}

/// Whether a process was started after `first` and not after `last`: the numbers begin again
/// when there are no higher ones.
fn is_between(first: u32, pid: u32, last: u32) -> bool {
    if first <= last { (first..=last).contains(&pid) } else { pid >= first || pid <= last }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_again() {
        assert!(is_between(10, 10, 20) && is_between(10, 20, 20));
        assert!(!is_between(10, 9, 20) && !is_between(10, 21, 20));
        assert!(is_between(90, 95, 5) && is_between(90, 3, 5) && !is_between(90, 50, 5));
        assert!(last_pid().is_some());
    }
}
