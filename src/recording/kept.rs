//! What is recorded is kept until it is all written: in a file, if `RECOVER` says so (see
//! [`crate::queue::Arena::create_in_file`]), of which `kymo recover` makes a trace; or in memory
//! that the `kymo record --wait` around the program maps as well, which makes a trace of it when
//! the process is killed (see [`crate::collect::Keeper`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::clock;
use crate::config::Config;
use crate::engine::control_block::Shared;
use crate::engine::origin::Origin;
use crate::engine::window::{Side, Window, say_edge};
use crate::error::Error;
use crate::intern::INTERNER;
use crate::join;
use crate::queue::{self, Arena, NEVER};

/// The file, and the process whose it is. Not behind a lock: a child may be forked at any time.
static FILE: AtomicPtr<(PathBuf, u32)> = AtomicPtr::new(ptr::null_mut());

/// Begins to keep what is recorded, before anything is, beside `output`.
///
/// # Errors
/// There is no output beside which it could be, no room for it, or the process has recorded
/// into other memory before.
pub(super) fn begin(config: &Config, output: Option<&Path>, window: &Window) -> Result<(), Error> {
    if let (Some(keeper), Some(output), None, None) =
        (&config.keeper, output, config.recover, config.flight)
    {
        // Best effort: it can be recorded all the same.
        let _ = begin_in_memory(config, keeper, output, window);
        return Ok(());
    }
    let Some(bytes) = config.recover else { return Ok(()) };
    let path = match output {
        Some(output) if config.flight.is_none() => path(output),
        _ => {
            let why = "RECOVER keeps what goes into a file, and this recording is a flight \
                       recorder, or goes into a sink of the program's own; unset it";
            return Err(Error::Refused { path: config.output.clone(), why });
        }
    };
    if queue::is_own() {
        return Ok(());
    }
    if queue::POOL.is_in_use() {
        let why = "RECOVER must be set when a process records for the first time";
        return Err(Error::Refused { path, why });
    }
    let failed = |source: io::Error| Error::Output { path: path.clone(), source };
    // Of a run that was killed and has not been recovered.
    if path.symlink_metadata().is_ok() {
        fs::rename(&path, old(&path)).map_err(failed)?;
    }
    let metadata = join::introduction(&Origin::of_this_process(config));
    let room = (config.buffer as usize, bytes as usize);
    let arena = Arena::create_in_file(&path, room, &metadata).map_err(failed)?;
    let arena: &Arena = Box::leak(Box::new(arena));
    if !(queue::use_own(arena) && queue::enter() && INTERNER.publish()) {
        let _ = fs::remove_file(&path);
        return Err(failed(io::ErrorKind::OutOfMemory.into()));
    }
    FILE.store(Box::into_raw(Box::new((path, std::process::id()))), Ordering::Release);
    Ok(())
}

/// Begins to keep what is recorded in memory that the `kymo` whose place is `keeper` maps, too.
fn begin_in_memory(
    config: &Config,
    keeper: &Path,
    output: &Path,
    window: &Window,
) -> io::Result<()> {
    let mut file = None;
    if !queue::is_own() {
        if queue::POOL.is_in_use() {
            // An earlier recording of this process could not be kept.
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let room = config.buffer as usize;
        let (arena, shared) = Arena::create_to_keep((room, room))?;
        let arena: &Arena = Box::leak(Box::new(arena));
        if !(queue::use_own(arena) && queue::enter() && INTERNER.publish()) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        file = Some(shared);
    }
    queue::POOL.keep_again();
    // What other recordings have left in the queues does not belong to this one.
    let opens = if window.is_limited() { NEVER } else { clock::ticks() };
    say_edge(Side::Opens, opens, NEVER);
    say_edge(Side::Closes, NEVER, NEVER);
    join::ask_to_keep(keeper, &Origin::of_this_process(config), output, file)
}

/// Says in the trace if it is not kept.
pub(super) fn state(shared: &Shared) {
    // SAFETY: null, or a box that stays until the recording of the process ends.
    let kept = unsafe { FILE.load(Ordering::Acquire).as_ref() };
    let ours = kept.is_some_and(|(_, pid)| *pid == std::process::id());
    if shared.config.recover.is_some() && !ours {
        shared.state("recover", "not possible: another recording of this process came before");
    }
}

/// All of it is in the output, or none of it was recorded.
pub(super) fn end() {
    let file = FILE.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null, or a box, which is left in memory.
    let file = unsafe { file.as_ref() };
    if queue::is_own() {
        queue::POOL.end_keeping();
    }
    if let Some((path, _)) = file.filter(|(_, pid)| *pid == std::process::id()) {
        let _ = fs::remove_file(path);
    }
}

/// The file beside an output.
fn path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".recover");
    name.into()
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}
