//! Names and identities of the recorded process and its threads.

use std::fs;
use std::path::Path;

/// Combines numbers to a track uuid: the same for the same numbers, never 0.
pub fn mix(parts: &[u64]) -> u64 {
    let mut h = 0x6b79_6d6f_6772_6170u64;
    for part in parts {
        // SplitMix64's finaliser, once per part.
        h = (h ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        h = (h ^ h >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ h >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        h ^= h >> 31;
    }
    h.max(1)
}

/// When a process started, in nanoseconds of `CLOCK_BOOTTIME`; 0 if unknown. `proc` is its
/// folder in `/proc`.
///
/// Field 22 of `/proc/PID/stat`, in clock ticks (proc(5)); the command name before it is
/// in parentheses and may contain anything.
pub fn process_start(proc: &Path) -> u64 {
    let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        after_name.split_whitespace().nth(19).and_then(|t| t.parse().ok()).unwrap_or(0);
    // SAFETY: takes and returns numbers.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    ticks * (1_000_000_000 / per_second)
}

/// The command line of a process.
pub fn command_line(proc: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(proc.join("cmdline")).unwrap_or_default();
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    bytes.split(|b| *b == 0).take(64).map(<[u8]>::to_vec).collect()
}

/// A short name for a process: its command line, without the directories of the program
/// and of a script it runs.
pub fn process_name(command: &[Vec<u8>]) -> Vec<u8> {
    const MAX_LENGTH: usize = 80;
    let base = |path: &[u8]| path.rsplit(|b| *b == b'/').next().unwrap_or(path).to_vec();
    let mut name = Vec::new();
    for (index, part) in command.iter().enumerate() {
        if index > 0 {
            name.push(b' ');
        }
        if index < 2 {
            name.extend(base(part))
        } else {
            name.extend(part)
        }
        if name.len() > MAX_LENGTH {
            name.truncate(MAX_LENGTH);
            name.extend("…".bytes());
            break;
        }
    }
    name
}

/// What the kernel calls a thread of a process, while it lives.
pub fn thread_name(proc: &Path, tid: u32) -> Option<Vec<u8>> {
    let mut name = fs::read(proc.join(format!("task/{tid}/comm"))).ok()?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some(name)
}

/// Whether the thread that calls this is the only one left. A program may end its main
/// thread with `pthread_exit` and wait for the others; it is to end with the last of them,
/// and not to be kept alive by us.
pub fn is_alone() -> bool {
    let main = std::process::id();
    let state = |stat: &str| {
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut fields = fields.split_whitespace();
        (fields.next() == Some("Z"), fields.nth(16).and_then(|n| n.parse::<u32>().ok()))
    };
    // The main thread is counted although it ended.
    let stat = fs::read_to_string(format!("/proc/self/task/{main}/stat"));
    stat.is_ok_and(|stat| state(&stat) == (true, Some(2)))
}
