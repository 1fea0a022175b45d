//! Where this process runs, and as which rank of a distributed job: metadata by which traces
//! are put together later.
//!
//! The environment is read from `/proc/self/environ`, as it was when the program started:
//! `getenv` on our thread could meet the program's own `setenv`. So ranks are found that a
//! launcher (torchrun, mpirun, srun) gave to the processes it started; not those that a
//! program gives to its forked children.

use std::fs;

/// A fact's name, and the variables that launchers state it in; the first that is there
/// counts. torchrun and DeepSpeed, Open MPI, MPICH and its kin, Slurm.
const NUMBERS: [(&str, [&str; 4]); 3] = [
    ("rank", ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"]),
    ("world_size", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"]),
    (
        "local_rank",
        ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"],
    ),
];

/// What the scheduler calls the job, in variables that Kineto copies into its traces by
/// these names.
const NAMES: [&str; 3] =
    ["PT_PROFILER_JOB_NAME", "PT_PROFILER_JOB_VERSION", "PT_PROFILER_JOB_ATTEMPT_INDEX"];

/// What is known about the machine: its name, and what no other start of it or of another
/// machine has.
pub fn machine() -> Vec<(String, String)> {
    let read = |(key, path)| {
        let text = fs::read_to_string(path).ok()?;
        Some((String::from(key), text.trim().to_owned())).filter(|(_, text)| !text.is_empty())
    };
    [
        ("kymograph.host", "/proc/sys/kernel/hostname"),
        ("kymograph.boot_id", "/proc/sys/kernel/random/boot_id"),
    ]
    .into_iter()
    .filter_map(read)
    .collect()
}

/// The machine, as [`packet::System`] has it.
///
/// [`packet::System`]: kymograph_protos::packet::System
#[derive(Debug, Default)]
pub struct System {
    pub names: [Vec<u8>; 4],
    pub host: Vec<u8>,
    pub page_size: u32,
    pub processors: u32,
}

/// What the kernel says of the machine.
pub fn system() -> System {
    // SAFETY: zeroes are names without a character.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `names` is writable.
    unsafe { libc::uname(&mut names) };
    let text = |field: &[libc::c_char]| -> Vec<u8> {
        field.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect()
    };
    // SAFETY: takes and returns numbers.
    let ask = |what| unsafe { libc::sysconf(what) }.clamp(0, u32::MAX.into()) as u32;
    System {
        names: [
            text(&names.sysname),
            text(&names.version),
            text(&names.release),
            text(&names.machine),
        ],
        host: text(&names.nodename),
        page_size: ask(libc::_SC_PAGESIZE),
        processors: ask(libc::_SC_NPROCESSORS_ONLN),
    }
}

/// The rank of this process and the like.
pub fn place() -> Vec<(String, i64)> {
    place_in(&fs::read("/proc/self/environ").unwrap_or_default())
}

/// What the job is called.
pub fn names() -> Vec<(String, String)> {
    names_in(&fs::read("/proc/self/environ").unwrap_or_default())
}

fn names_in(environment: &[u8]) -> Vec<(String, String)> {
    let value = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables
            .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned()).filter(|value| !value.is_empty())
    };
    NAMES.iter().filter_map(|name| Some((String::from(*name), value(name)?))).collect()
}

fn place_in(environment: &[u8]) -> Vec<(String, i64)> {
    let variables = || {
        environment.split(|byte| *byte == 0).filter_map(|variable| {
            let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
            Some((name, value.parse::<i64>().ok().filter(|number| *number >= 0)?))
        })
    };
    // Slurm also describes a job to a shell in it, which is no rank of anything.
    let launched = |name: &str| !name.starts_with("SLURM") || has(environment, b"SLURM_STEP_ID");
    let value = |names: &[&str]| {
        let named = |name: &&str| variables().find(|(n, _)| n == name).map(|(_, value)| value);
        names.iter().filter(|name| launched(name)).find_map(named)
    };
    NUMBERS.iter().filter_map(|(fact, names)| Some((String::from(*fact), value(names)?))).collect()
}

fn has(environment: &[u8], name: &[u8]) -> bool {
    let is_it = |variable: &[u8]| variable.split(|byte| *byte == b'=').next() == Some(name);
    environment.split(|byte| *byte == 0).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_say_which_rank_a_process_is() {
        let place = |environment| {
            let place = place_in(environment).into_iter();
            place.map(|(key, n)| format!("{key}={n}")).collect::<Vec<_>>().join(" ")
        };
        let torchrun: &[u8] = b"HOME=/root\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=16\0SLURM_PROCID=0\0";
        assert_eq!(place(torchrun), "rank=3 world_size=16 local_rank=1");
        let mpi = b"OMPI_COMM_WORLD_RANK=2\0OMPI_COMM_WORLD_SIZE=4";
        assert_eq!(place(mpi), "rank=2 world_size=4");
        assert_eq!(place(b"SLURM_PROCID=5\0SLURM_STEP_ID=0\0"), "rank=5");
        assert_eq!(place(b"SLURM_PROCID=5\0SLURM_JOB_ID=77\0"), "");
        let names = names_in(
            b"A=PT_PROFILER_JOB_NAME=1\0PT_PROFILER_JOB_NAME=a=b\0PT_PROFILER_JOB_VERSION=",
        );
        assert_eq!(names, [("PT_PROFILER_JOB_NAME".to_owned(), "a=b".to_owned())]);
        assert_eq!(place(b"RANK=first\0RANKS=1\0\xff=\0WORLD_SIZE=-1"), "");
    }
}
