//! What the backends of all vendors have in common.
//!
//! | file | what |
//! |---|---|
//! | `selection` | `ACTIVITY_TYPES` |
//! | `raw`, `fields`, `args`, `keys`, `kernel`, `ranges` | from a vendor's record to ours |
//! | `clock`, `realtime`, `present` | a vendor's clock and ours |
//! | `pool`, `buffers`, `walk` | buffers that a vendor fills, and the records in them |
//! | `remark`, `error` | what a backend says about the recording, and why it cannot record |
//! | `thread`, `worker`, `reader` | threads of ours |
//! | `finding` | what `kymo doctor` reports |
//! | `names` | what vendors are called |
//! | `sample` | the first records of each kind, byte by byte |

pub(crate) mod args;
pub(crate) mod buffers;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod fields;
pub mod finding;
pub(crate) mod kernel;
pub(crate) mod keys;
pub mod names;
#[cfg(test)]
pub(crate) mod notes;
pub(crate) mod pool;
pub(crate) mod present;
pub(crate) mod ranges;
pub(crate) mod raw;
pub(crate) mod reader;
pub(crate) mod realtime;
pub(crate) mod remark;
pub(crate) mod sample;
pub(crate) mod selection;
pub(crate) mod thread;
pub(crate) mod walk;
pub(crate) mod worker;
