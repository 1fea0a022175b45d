//! Threads on cores.

/// The cores that this process may run on.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero set is valid, and the kernel fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// Moves this thread to these cores. Threads that it starts inherit that.
pub fn pin(cores: &[usize]) {
    // SAFETY: as above.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for core in cores {
            libc::CPU_SET(*core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Two cores; the same twice on a machine with one.
pub fn two() -> [usize; 2] {
    let all = allowed();
    [all[0], all[1 % all.len()]]
}
