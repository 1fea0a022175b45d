//! Which processes a process descends from: a daemon's users may name any of them.

use std::fs;

use super::wire::MAX_PIDS;

/// `pid`, its parent and so on, up to the first process of all, which is left out: that is
/// everybody's ancestor.
pub(super) fn of(pid: u32) -> Vec<i32> {
    up(pid as i32, |pid| parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
}

fn up(pid: i32, parent: impl Fn(i32) -> Option<i32>) -> Vec<i32> {
    let mut pids = vec![pid];
    let mut last = pid;
    while pids.len() < MAX_PIDS {
        match parent(last) {
            Some(next) if next > 1 => {
                pids.push(next);
                last = next;
            }
            // 0: it is in another pid namespace.
            _ => break,
        }
    }
    pids
}

/// The fourth field of /proc/PID/stat (proc(5)). The second, the name in parentheses, may
/// contain anything, so that the last `)` ends it.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_anything() {
        assert_eq!(parent("42 (python3) S 7 42 42 0"), Some(7));
        assert_eq!(parent("42 (a) S 1 (b) R 9 1"), Some(9));
        for odd in ["", "42", "42 (x)", "42 (x) S", "42 (x) S y"] {
            assert_eq!(parent(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_way_up_ends() {
        assert_eq!(up(5, |_| None), [5]);
        assert_eq!(up(5, |pid| Some(pid - 1)), [5, 4, 3, 2]);
        assert_eq!(up(1, |_| Some(0)), [1], "the first process of a container");
        assert_eq!(up(7, |_| Some(7)).len(), MAX_PIDS);
    }

    #[test]
    fn this_process_has_a_parent() {
        let ours = of(std::process::id());
        // SAFETY: no arguments, cannot fail.
        let parent = unsafe { libc::getppid() };
        assert_eq!(ours[0], std::process::id() as i32);
        assert_eq!(ours.get(1).copied(), (parent > 1).then_some(parent));
    }
}
