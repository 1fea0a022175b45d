//! Signals by their names.

/// Numbers and names, without `SIG`.
const NAMES: [(libc::c_int, &str); 24] = [
    (libc::SIGHUP, "HUP"),
    (libc::SIGINT, "INT"),
    (libc::SIGQUIT, "QUIT"),
    (libc::SIGILL, "ILL"),
    (libc::SIGTRAP, "TRAP"),
    (libc::SIGABRT, "ABRT"),
    (libc::SIGBUS, "BUS"),
    (libc::SIGFPE, "FPE"),
    (libc::SIGKILL, "KILL"),
    (libc::SIGUSR1, "USR1"),
    (libc::SIGSEGV, "SEGV"),
    (libc::SIGUSR2, "USR2"),
    (libc::SIGPIPE, "PIPE"),
    (libc::SIGALRM, "ALRM"),
    (libc::SIGTERM, "TERM"),
    (libc::SIGSTKFLT, "STKFLT"),
    (libc::SIGURG, "URG"),
    (libc::SIGXCPU, "XCPU"),
    (libc::SIGXFSZ, "XFSZ"),
    (libc::SIGVTALRM, "VTALRM"),
    (libc::SIGPROF, "PROF"),
    (libc::SIGIO, "IO"),
    (libc::SIGPWR, "PWR"),
    (libc::SIGSYS, "SYS"),
];

/// The name of a signal, without `SIG`.
pub(crate) fn name(signal: libc::c_int) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

/// The number of a signal that may ask for a trace, by its name with or without `SIG`: those that
/// a program can use as it likes.
pub(crate) fn free(name: &str) -> Option<libc::c_int> {
    const FREE: [libc::c_int; 5] =
        [libc::SIGUSR1, libc::SIGUSR2, libc::SIGPROF, libc::SIGURG, libc::SIGIO];
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let found = NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
    found.filter(|number| FREE.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signals_that_a_program_can_use_as_it_likes_may_ask() {
        assert_eq!(free("sigusr2"), Some(libc::SIGUSR2));
        assert_eq!(free("IO"), Some(libc::SIGIO));
        assert_eq!((free("KILL"), free("SEGV"), free("")), (None, None, None));
        assert_eq!((name(libc::SIGTERM), name(0)), (Some("TERM"), None));
    }
}
