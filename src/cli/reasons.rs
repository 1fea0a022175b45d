//! Why there is nothing in a trace, or nothing of something that was asked for: conditions in,
//! sentences out. Only what the conditions prove is said; what they merely allow is said as that.

use super::shown::printable;
use super::status::count;
use std::collections::BTreeSet;

/// What is known at the end of a recording. Each field that is left at its default is not
/// known, or is not so.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    /// Events that were recorded, and that were lost.
    pub(super) events: u64,
    pub(super) lost: u64,
    /// Whether they are those that a flight recorder held at last.
    pub(super) in_memory: bool,
    /// Whether they are in numbered files, if any, of which each says what it has.
    pub(super) numbered: bool,
    /// Processes that took part, whether or not they recorded anything.
    pub(super) processes: u64,
    /// Processes whose library is of another release.
    pub(super) refused: u64,
    /// Why the command itself could not be recorded: its name, and the end of the sentence.
    pub(super) obstacle: Option<(String, &'static str)>,
    /// The signal that ended the command.
    pub(super) signal: Option<i32>,
    /// What the command has started and still runs: pid and name.
    pub(super) outlived: Vec<(u32, String)>,
    /// Processes of other users that could not take part, and those users.
    pub(super) others: (usize, BTreeSet<u32>),
    /// Whether categories were left out because the option does not name them.
    pub(super) category_left_out: bool,
    /// Whether operators of daemon threads were left out.
    pub(super) daemon_thread_left_out: bool,
    /// Whether a program had no memory left when it first used what is recorded.
    pub(super) memory_left_out: bool,
    /// The names that `--category` asks for, if it does, and whether something has each.
    pub(super) categories: Vec<(String, bool)>,
    /// The names of slices that `--dump-on` waits for, and whether something was called so.
    pub(super) slow: Vec<(String, bool)>,
}

/// What there is to say, line by line.
pub(super) fn reasons(conditions: &Conditions) -> Vec<String> {
    let mut lines = Vec::new();
    let none = conditions.events == 0 && conditions.lost == 0;
    if none && !(conditions.numbered && conditions.processes > 0) {
        let what = if conditions.in_memory { "is in the flight recorder" } else { "was recorded" };
        lines.push(format!("nothing {what}: {}", nothing(conditions)));
    }
    let nothing_taken = conditions.categories.iter().all(|(_, matched)| !matched);
    if !(conditions.category_left_out && nothing_taken && lines.len() == 1) {
        lines.extend(unmatched(
            "--category",
            "nothing is of a category called",
            &conditions.categories,
        ));
    }
    lines.extend(unmatched("--dump-on", "no slice is called", &conditions.slow));
    lines.extend(others(conditions));
    lines.extend(outlived(conditions));
    lines
}

/// The end of a sentence: the first reason that explains it all.
fn nothing(conditions: &Conditions) -> String {
    let nothing_taken = conditions.categories.iter().all(|(_, matched)| !matched);
    if conditions.refused > 0 && conditions.processes == 0 {
        return refused(conditions.refused);
    }
    if conditions.category_left_out && nothing_taken {
        return match names(conditions.categories.iter().map(|(name, _)| name)) {
            None => "--category leaves out all categories that there are".to_owned(),
            Some(names) => format!(
                "nothing is of a category called {names}, and --category leaves out all others; \
                 check their names, or record without it"
            ),
        };
    }
    if let (0, Some((name, why))) = (conditions.processes, &conditions.obstacle) {
        return format!("{} {why}, and nothing that it started was", printable(name));
    }
    if conditions.daemon_thread_left_out {
        return "operators of PyTorch in daemon threads are left out; --pytorch on records them"
            .to_owned();
    }
    if conditions.memory_left_out {
        return "the program had no memory left when it first used what is recorded".to_owned();
    }
    if let Some(signal) = conditions.signal {
        let when = match conditions.processes {
            0 => "before it used anything that is recorded",
            _ => "before it recorded anything",
        };
        return format!("the command was ended by {}, {when}", name_of_signal(signal));
    }
    if conditions.processes > 0 && conditions.in_memory {
        return "what was recorded, if anything, was older than what it keeps".to_owned();
    }
    if conditions.processes > 0 {
        let (took, them) = match conditions.processes {
            1 => ("1 process was ready to be recorded".to_owned(), "it"),
            n => {
                (format!("{} were ready to be recorded", count(n, "process", "processes")), "them")
            }
        };
        return format!("{took}, and no event came from {them}");
    }
    if !conditions.others.1.is_empty() {
        return "no process could take part".to_owned();
    }
    "no process used CUDA or PyTorch or called NVTX or ITT, or none could be injected; see \
     `kymo doctor`, or annotate the program (Python: `pip install nvtx`; PyTorch needs no \
     annotations)"
        .to_owned()
}

fn refused(processes: u64) -> String {
    format!(
        "{} refused: libkymograph.so is not from the same release as kymo; install both anew",
        count(processes, "process", "processes")
    )
}

/// The patterns of an option that were in vain.
fn unmatched(option: &str, what: &str, patterns: &[(String, bool)]) -> Option<String> {
    let names = names(patterns.iter().filter(|(_, matched)| !matched).map(|(name, _)| name))?;
    Some(format!("{option}: {what} {names}; check the name, which is compared as it is written"))
}

/// Names in a sentence; none if there are none.
fn names<'n>(names: impl Iterator<Item = &'n String>) -> Option<String> {
    let quoted: Vec<_> = names.map(|name| format!("\"{}\"", printable(name))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" or "))
}

fn others(conditions: &Conditions) -> Option<String> {
    let (processes, users) = &conditions.others;
    let users: Vec<_> = users.iter().take(3).map(u32::to_string).collect();
    (!users.is_empty()).then(|| {
        format!(
            "{} ran as another user ({}) and could not take part: record as that user, or give \
             up privileges after the first event",
            count(*processes as u64, "process", "processes"),
            users.join(", ")
        )
    })
}

fn outlived(conditions: &Conditions) -> Option<String> {
    const NAMED: usize = 5;
    let processes = &conditions.outlived;
    let mut named: Vec<_> = processes
        .iter()
        .take(NAMED)
        .map(|(pid, name)| format!("{pid} {}", printable(name)))
        .collect();
    let more = processes.len().saturating_sub(NAMED);
    named.extend((more > 0).then(|| format!("and {more} more")));
    let (which, runs) = match processes.len() {
        0 => return None,
        1 => ("1 process that the command started".to_owned(), "still runs"),
        n => (format!("{n} processes that the command started"), "still run"),
    };
    let named = named.join(", ");
    Some(format!(
        "{which} {runs} ({named}): the trace ends with the command; --wait-all waits for all"
    ))
}

/// A signal as people call it.
pub(super) fn name_of_signal(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(conditions: &Conditions) -> String {
        reasons(conditions).swap_remove(0)
    }

    #[test]
    fn nothing_has_the_reason_that_applies() {
        let none = Conditions::default();
        assert!(first(&none).contains("no process used CUDA or PyTorch"));
        let refused = Conditions { refused: 2, ..Conditions::default() };
        assert!(first(&refused).contains("2 processes refused"));
        let obstacle = Some(("app\x1b".to_owned(), "is statically linked"));
        let fixed = Conditions { obstacle: obstacle.clone(), ..Conditions::default() };
        let said =
            "nothing was recorded: app? is statically linked, and nothing that it started was";
        assert_eq!(reasons(&fixed), [said]);
        // A child took part: then it is not the command's being static.
        let child = Conditions { obstacle, processes: 1, ..Conditions::default() };
        assert!(first(&child).contains("1 process was ready to be recorded"));
        let killed = Conditions { signal: Some(libc::SIGKILL), ..Conditions::default() };
        assert!(first(&killed).contains("ended by SIGKILL, before it used anything"));
        let late = Conditions { processes: 3, ..killed };
        assert!(first(&late).contains("ended by SIGKILL, before it recorded anything"));
        let flight = Conditions { processes: 1, in_memory: true, ..Conditions::default() };
        assert!(first(&flight).starts_with("nothing is in the flight recorder: what was recorded"));
        let parts = Conditions { processes: 1, numbered: true, ..Conditions::default() };
        assert!(reasons(&parts).is_empty());
        let daemon =
            Conditions { processes: 1, daemon_thread_left_out: true, ..Conditions::default() };
        assert!(first(&daemon).contains("--pytorch on"));
        let full = Conditions { processes: 1, memory_left_out: true, ..Conditions::default() };
        assert!(first(&full).ends_with("no memory left when it first used what is recorded"));
        let others = Conditions { others: (2, [33, 65_534].into()), ..Conditions::default() };
        assert_eq!(first(&others), "nothing was recorded: no process could take part");
        assert!(reasons(&others)[1].starts_with("2 processes ran as another user (33, 65534)"));
    }

    #[test]
    fn a_filter_says_what_it_did_not_find() {
        let filter = |matched: [bool; 2]| {
            vec![("rendr*".to_owned(), matched[0]), ("io\n".to_owned(), matched[1])]
        };
        let processes = 1;
        let nothing = Conditions {
            processes,
            category_left_out: true,
            categories: filter([false, false]),
            ..Conditions::default()
        };
        let lines = reasons(&nothing);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("called \"rendr*\" or \"io?\""), "{lines:?}");
        // Nothing was left out: the filter is not the reason, and yet it took nothing.
        let lines = reasons(&Conditions { category_left_out: false, ..nothing.clone() });
        assert!(lines[0].contains("no event came") && lines[1].contains("rendr*"), "{lines:?}");
        let some = Conditions { events: 5, categories: filter([false, true]), ..nothing.clone() };
        let said = "--category: nothing is of a category called \"rendr*\"; check the name, which \
                    is compared as it is written";
        assert_eq!(reasons(&some), [said]);
        let all = Conditions { categories: filter([true, true]), ..some };
        assert!(reasons(&all).is_empty());
        let only_without = Conditions { categories: Vec::new(), ..nothing };
        assert!(first(&only_without).contains("leaves out all categories that there are"));
    }

    #[test]
    fn slow_slices_that_never_came_are_named() {
        let slow = vec![("step*".to_owned(), false), ("frame".to_owned(), true)];
        let conditions = Conditions { events: 1, slow, ..Conditions::default() };
        let lines = reasons(&conditions);
        assert!(lines[0].starts_with("--dump-on: no slice is called \"step*\";"), "{lines:?}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn those_that_go_on_are_named() {
        let outlived: Vec<_> = (1..=7).map(|pid| (pid, format!("p{pid}\x07"))).collect();
        let conditions =
            Conditions { events: 1, outlived: outlived[..1].to_vec(), ..Conditions::default() };
        let said = "1 process that the command started still runs (1 p1?): the trace ends with \
                    the command; --wait-all waits for all";
        assert_eq!(reasons(&conditions), [said]);
        let lines = reasons(&Conditions { outlived, ..conditions });
        assert!(lines[0].contains("5 p5?, and 2 more)"), "{lines:?}");
    }
}
