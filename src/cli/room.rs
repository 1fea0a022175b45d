//! Ends the command with a message before the system runs out of memory.
//!
//! The kernel would end it, or another program, without a word.

use super::say;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is looked. A core fills about 100 MB in this time.
const INTERVAL: Duration = Duration::from_millis(50);
/// Memory that is left to others: so much, or a part of all where there is little.
const LEFT: u64 = 256 << 20;
const PART: u64 = 16;

/// Looks after the memory until it is dropped.
pub(super) struct Room(Arc<AtomicBool>);

impl Room {
    /// Begins to look. `what` says what the memory is for, and `instead` what else can be done.
    pub(super) fn watch(what: String, instead: &'static str) -> Room {
        let ended = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&ended);
        // Where there is no thread to be had, there is no watch either.
        let _ = std::thread::Builder::new().spawn(move || {
            while !theirs.load(Ordering::Relaxed) {
                if let Some((left, all)) = memory()
                    && left < LEFT.min(all / PART)
                {
                    let left = super::status::size(left);
                    say(&format!(
                        "{what} takes more memory than there is ({left} are left): {instead}"
                    ));
                    std::process::exit(1);
                }
                std::thread::sleep(INTERVAL);
            }
        });
        Room(ended)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes that can still be had, and all there are: of the machine, or of a group of processes with
/// a limit if it has less.
fn memory() -> Option<(u64, u64)> {
    let machine = of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let folders = root.join(own);
    let limits =
        folders.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(of_group);
    limits.chain([machine]).min()
}

/// From `/proc/meminfo`.
fn of_machine(text: &str) -> Option<(u64, u64)> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    let swap = of("SwapFree").unwrap_or(0);
    Some((of("MemAvailable")? + swap, of("MemTotal")?))
}

/// From a control group's folder; files that can be read again do not count.
fn of_group(folder: &Path) -> Option<(u64, u64)> {
    let number = |name: &str| {
        let path: PathBuf = folder.join(name);
        fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    let most = number("memory.max")?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok());
    let used = number("memory.current")?.saturating_sub(cached.unwrap_or(0));
    Some((most.saturating_sub(used), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_that_of_the_machine_or_of_a_group_with_less() {
        let text =
            "MemTotal:        4096 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\nSwapFree: 8 kB\n";
        assert_eq!(of_machine(text), Some((1032 << 10, 4096 << 10)));
        assert_eq!(of_machine("MemTotal: 5 kB\n"), None);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_group(folder.path()), None);
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.max", "max\n");
        write("memory.current", "900\n");
        assert_eq!(of_group(folder.path()), None, "no limit");
        write("memory.max", "1000\n");
        assert_eq!(of_group(folder.path()), Some((100, 1000)));
        write("memory.stat", "anon 5\ninactive_file 300\n");
        assert_eq!(of_group(folder.path()), Some((400, 1000)));
        assert!(memory().is_some_and(|(left, all)| left > 0 && all > 0));
    }
}
