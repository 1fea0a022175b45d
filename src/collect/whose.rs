//! Which process a member of an arena is: it has said its pid as it sees it itself, which in a
//! pid namespace of its own is another than the one that `kymo` sees.

use std::fs;
use std::path::Path;

use super::death::exists;
use crate::process::identity;

/// By how much the kernel rounds the start of a process down, in nanoseconds.
const ROUNDED: u64 = 10_000_000;
/// How often the list of a process's children is read: the kernel leaves some out while others
/// end.
const LOOKS: usize = 5;

/// The process that calls itself `pid`, which `parent` has forked between these two times (in
/// nanoseconds of `CLOCK_BOOTTIME`), as `kymo` sees it. `None`: it is gone.
pub(super) fn find(pid: u32, parent: u32, forked: (u64, u64)) -> Option<u32> {
    let started = start(pid);
    let fits = (forked.0.saturating_sub(ROUNDED)..=forked.1).contains(&started);
    // Of another user's process the kernel may tell no more than that there is one.
    if fits && is_last(pid, pid) || started == 0 && exists(pid) {
        return Some(pid);
    }
    let mut looks = (0..LOOKS).map(|_| children(parent)).peekable();
    if looks.peek().is_some_and(Option::is_some) {
        let found = |child: &u32| is_last(*child, pid);
        return looks.flatten().flatten().find(found);
    }
    // An orphan has another parent now. The process with this very number is too old.
    all().into_iter().find(|process| *process != pid && is_last(*process, pid))
}

/// When a process started; 0 if there is none.
fn start(pid: u32) -> u64 {
    identity::process_start(Path::new(&format!("/proc/{pid}")))
}

/// Whether a process sees itself as `pid`.
fn is_last(process: u32, pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let last = numbers.and_then(|numbers| numbers.split_whitespace().next_back());
    last.is_some_and(|last| last == pid.to_string())
}

/// The children of a process; `None` if it is gone, or the kernel does not tell. One may be
/// missing while another, or the thread that made it, ends.
fn children(parent: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task")).ok()? {
        let Ok(task) = task.map(|task| task.path()) else { continue };
        let listed = match fs::read_to_string(task.join("children")) {
            Ok(listed) => listed,
            Err(_) if task.exists() => return None,
            // The thread has ended.
            Err(_) => continue,
        };
        children.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(children)
}

/// All processes.
fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_child_is_found_by_its_pid_and_by_its_start() {
        let before = clock::system(libc::CLOCK_BOOTTIME);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let after = clock::system(libc::CLOCK_BOOTTIME);
        let (me, pid) = (std::process::id(), child.id());
        assert_eq!(find(pid, me, (before, after)), Some(pid));
        // Not a process that was there long before: the first one is older than all others.
        assert_eq!(find(1, me, (before, after)), None);
        // Its times may be those of another time namespace.
        assert_eq!(find(pid, me, (0, 1)), Some(pid));
        // Also while threads come and go.
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::thread::spawn(|| ()).join().unwrap();
                }
            });
            let found = (0..200).filter(|_| find(pid, me, (0, 1)) == Some(pid)).count();
            over.store(true, Ordering::Relaxed);
            assert_eq!(found, 200);
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(find(pid, me, (before, after)), None);
    }
}
