//! Ends the command with a message before the system runs out of memory.
//!
//! The kernel would end it, or another program, without a word.

use super::say;
use std::fs;
use std::path::Path;
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
pub(super) fn memory() -> Option<(u64, u64)> {
    let machine = of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = VERSIONS.iter().flat_map(|version| of_groups(version, &groups));
    limits.chain([machine]).min()
}

/// Control groups' files, in both versions.
struct Version {
    root: &'static str,
    /// What stands before the path of the own group in `/proc/self/cgroup`.
    controllers: &'static str,
    most: &'static str,
    used: &'static str,
    /// What of it can be read from files again, in `memory.stat`: used lately, and not.
    cached: [&'static str; 2],
}

const VERSIONS: [Version; 2] = [
    Version {
        root: "/sys/fs/cgroup",
        controllers: "",
        most: "memory.max",
        used: "memory.current",
        cached: ["active_file", "inactive_file"],
    },
    Version {
        root: "/sys/fs/cgroup/memory",
        controllers: "memory",
        most: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        cached: ["total_active_file", "total_inactive_file"],
    },
];

/// Of the own group and those around it. In a container, the path may be one outside of it, and its
/// group is the root.
fn of_groups(version: &Version, groups: &str) -> Vec<(u64, u64)> {
    let own = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(":/")?;
        (controllers == version.controllers).then_some(path)
    });
    let root = Path::new(version.root);
    let folder = root.join(own.unwrap_or_default());
    let all = folder.ancestors().take_while(|folder| folder.starts_with(root));
    all.filter_map(|folder| of_group(version, folder)).collect()
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

/// From a group's folder; nothing if it has no limit.
fn of_group(version: &Version, folder: &Path) -> Option<(u64, u64)> {
    let number =
        |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let most = number(version.most)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if version.cached.contains(&name) { value.parse::<u64>().ok() } else { None }
    });
    let used = number(version.used)?.saturating_sub(cached.sum());
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
        for version in &VERSIONS {
            let folder = tempfile::tempdir().unwrap();
            let left = || of_group(version, folder.path());
            let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
            assert_eq!(left(), None);
            write(version.most, "max\n");
            write(version.used, "900\n");
            assert_eq!(left(), None, "no limit");
            write(version.most, "1000\n");
            assert_eq!(left(), Some((100, 1000)));
            write(
                "memory.stat",
                &format!("anon 5\n{} 100\n{} 200\n", version.cached[0], version.cached[1]),
            );
            assert_eq!(left(), Some((400, 1000)));
        }
        assert!(memory().is_some_and(|(left, all)| left > 0 && all > 0));
    }
}
