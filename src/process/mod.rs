//! What the kernel and the environment know of a process, its machine and its job.

pub(crate) mod identity;
pub(crate) mod job;
pub(crate) mod signals;
