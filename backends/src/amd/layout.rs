//! Records of rocprofiler-sdk, read at offsets that their own size tells.
//!
//! ```text
//!            0     8     12         16            32        40      48      56
//! kernel     │size │kind │operation │correlation  │ thread  │ start │ end   │ dispatch info
//! copy       │size │kind │operation │correlation  │ thread  │ start │ end   │ to, from, bytes
//!            0     8     12         16                      40      48      56      64
//! others     │size │kind │operation │correlation (24)       │ thread│ start │ end   │ …
//! ```
//! A correlation id is `{internal, external}` in records of device work, and has an
//! `ancestor` besides in others since 1.0.0 (buffer_tracing.h, fwd.h).

/// Fields that records of a kind have, by offset; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    pub(crate) correlation: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Device work: the same in all versions.
pub(crate) const WORK: Times = Times { correlation: 16, start: 40, end: 48 };

/// `rocprofiler_buffer_tracing_kernel_dispatch_record_t`: 184 bytes in 0.5.0 and 1.0.0,
/// 192 in 2026. Its `rocprofiler_kernel_dispatch_info_t` lies at 56.
pub(crate) mod kernel {
    const INFO: usize = 56;
    pub(crate) const AGENT: usize = INFO + 8;
    pub(crate) const QUEUE: usize = INFO + 16;
    pub(crate) const KERNEL: usize = INFO + 24;
    /// Private segment (scratch), in bytes per work-item.
    pub(crate) const PRIVATE: usize = INFO + 40;
    /// Group segment (LDS), static and dynamic, in bytes per workgroup.
    pub(crate) const GROUP: usize = INFO + 44;
    /// Work-items in a workgroup, three numbers.
    pub(crate) const WORKGROUP: usize = INFO + 48;
    /// Work-items in the grid, three numbers.
    pub(crate) const GRID: usize = INFO + 60;
    pub(crate) const BYTES: usize = 184;
}

/// `rocprofiler_buffer_tracing_memory_copy_record_t`: 80 bytes in 0.5.0, 96 since 1.0.0.
pub(crate) mod copy {
    pub(crate) const TO_AGENT: usize = 56;
    pub(crate) const FROM_AGENT: usize = 64;
    pub(crate) const AMOUNT: usize = 72;
    pub(crate) const BYTES: usize = 80;
}

/// `rocprofiler_buffer_tracing_scratch_memory_record_t`. 0.5.0 (80 bytes) had the
/// correlation id at its end; since 1.0.0 (96 bytes) it is where others have it.
pub(crate) mod scratch {
    use super::Times;
    pub(crate) const BYTES: usize = 80;
    const NEW_BYTES: usize = 96;

    /// The times, the agent, the queue, and the amount if it says that.
    pub(crate) const fn of(size: usize) -> (Times, usize, usize, usize) {
        if size >= NEW_BYTES {
            (Times { correlation: 16, start: 64, end: 72 }, 40, 48, 88)
        } else {
            (Times { correlation: 56, start: 40, end: 48 }, 16, 24, usize::MAX)
        }
    }
}

/// `rocprofiler_buffer_tracing_memory_allocation_record_t`: 88 bytes, since 1.0.0.
pub(crate) mod allocation {
    use super::Times;
    pub(crate) const TIMES: Times = Times { correlation: 16, start: 48, end: 56 };
    pub(crate) const AGENT: usize = 64;
    pub(crate) const ADDRESS: usize = 72;
    pub(crate) const AMOUNT: usize = 80;
    pub(crate) const BYTES: usize = 88;
}

/// `rocprofiler_buffer_tracing_hip_graph_record_t`: 96 bytes, since 2026.
pub(crate) mod graph {
    use super::Times;
    pub(crate) const TIMES: Times = Times { correlation: 16, start: 48, end: 56 };
    pub(crate) const AGENT: usize = 64;
    pub(crate) const QUEUE: usize = 72;
    pub(crate) const EXEC: usize = 80;
    pub(crate) const KERNELS: usize = 88;
    pub(crate) const BYTES: usize = 96;
}

// Sizes of 0.5.0 and 1.0.0 as the compilers of the headers have them.
const _: () = assert!(kernel::GRID + 12 + 56 == kernel::BYTES);
const _: () = assert!(copy::AMOUNT + 8 == copy::BYTES);
const _: () = assert!(allocation::AMOUNT + 8 == allocation::BYTES);
const _: () = assert!(graph::KERNELS + 8 == graph::BYTES);
