//! Records of rocprofiler-sdk, read at offsets that their own size tells, and their times where
//! two versions have records of one size.
//!
//! ```text
//!            0     8     12         16            32        40      48      56
//! kernel     │size │kind │operation │correlation  │ thread  │ start │ end   │ dispatch info
//! copy       │size │kind │operation │correlation  │ thread  │ start │ end   │ to, from, bytes
//!            0     8     12         16                      40      48      56      64
//! others     │size │kind │operation │correlation (24)       │ thread│ start │ end   │ …
//! ```
//! A correlation id is `{internal, external}` in records of device work, and has an
//! `ancestor` besides in others since 1.0.0 (buffer_tracing.h, fwd.h). `tests/headers` compares
//! all of this with the headers of several versions.

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

/// A way in which fields may lie, and the sizes of records that have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    /// From here on, and up to [`Form::most`]: more has grown at the end.
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) times: Times,
    pub(crate) agent: usize,
    /// Of scratch memory.
    pub(crate) queue: usize,
    /// Of allocations.
    pub(crate) address: usize,
    pub(crate) amount: usize,
}

impl Form {
    const NONE: Form = Form {
        least: 0,
        most: usize::MAX,
        times: Times { correlation: 16, start: 0, end: 0 },
        agent: 0,
        queue: usize::MAX,
        address: usize::MAX,
        amount: usize::MAX,
    };

    pub(crate) fn fits(&self, size: usize) -> bool {
        (self.least..=self.most).contains(&size)
    }
}

/// `rocprofiler_buffer_tracing_scratch_memory_record_t`. 0.5.0 had the correlation id behind
/// the times; since 0.6.0 (ROCm 6.4) it is where others have it, still in 80 bytes. 1.0.0 as
/// released with ROCm 7.0 has 88 bytes, later ones 96.
pub(crate) const SCRATCH: [Form; 4] = [
    Form {
        least: 80,
        most: 80,
        times: Times { correlation: 56, start: 40, end: 48 },
        agent: 16,
        queue: 24,
        ..Form::NONE
    },
    Form {
        least: 80,
        most: 80,
        times: Times { correlation: 16, start: 56, end: 64 },
        agent: 32,
        queue: 40,
        ..Form::NONE
    },
    Form {
        least: 88,
        most: 88,
        times: Times { correlation: 16, start: 64, end: 72 },
        agent: 40,
        queue: 48,
        ..Form::NONE
    },
    Form {
        least: 96,
        times: Times { correlation: 16, start: 64, end: 72 },
        agent: 40,
        queue: 48,
        amount: 88,
        ..Form::NONE
    },
];

/// `rocprofiler_buffer_tracing_memory_allocation_record_t`: since 0.6.0 (80 bytes), and since
/// 1.0.0 with a longer correlation id.
pub(crate) const ALLOCATION: [Form; 2] = [
    Form {
        least: 80,
        most: 80,
        times: Times { correlation: 16, start: 40, end: 48 },
        agent: 56,
        address: 64,
        amount: 72,
        ..Form::NONE
    },
    Form {
        least: 88,
        times: Times { correlation: 16, start: 48, end: 56 },
        agent: 64,
        address: 72,
        amount: 80,
        ..Form::NONE
    },
];

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

/// `rocprofiler_buffer_tracing_kfd_page_migrate_record_t`: since 1.0.0.
pub(crate) mod migration {
    use super::Times;
    /// No call asked for it.
    pub(crate) const TIMES: Times = Times { correlation: usize::MAX - 8, start: 16, end: 24 };
    pub(crate) const FROM: usize = 40;
    pub(crate) const TO: usize = 48;
    pub(crate) const FROM_AGENT: usize = 56;
    pub(crate) const TO_AGENT: usize = 64;
    pub(crate) const ERROR: usize = 88;
    pub(crate) const BYTES: usize = 96;
}

/// `rocprofiler_buffer_tracing_kfd_page_fault_record_t`: since 1.0.0.
pub(crate) mod fault {
    pub(crate) const TIMES: super::Times = super::migration::TIMES;
    pub(crate) const AGENT: usize = 40;
    pub(crate) const ADDRESS: usize = 48;
    pub(crate) const BYTES: usize = 56;
}

/// `rocprofiler_buffer_tracing_hip_event_record_t`: since 2026.
pub(crate) mod event {
    /// `ROCPROFILER_HIP_EVENT_WAIT`.
    pub(crate) const WAIT: u32 = 2;
    pub(crate) const AGENT: usize = 56;
    pub(crate) const QUEUE: usize = 64;
    pub(crate) const HANDLE: usize = 72;
    pub(crate) const SOURCE: usize = 80;
    pub(crate) const BYTES: usize = 88;
}

// Sizes of 0.5.0 and 1.0.0 as the compilers of the headers have them.
const _: () = assert!(kernel::GRID + 12 + 56 == kernel::BYTES);
const _: () = assert!(copy::AMOUNT + 8 == copy::BYTES);
const _: () = assert!(ALLOCATION[1].amount + 8 == ALLOCATION[1].least);
const _: () = assert!(SCRATCH[3].amount + 8 == SCRATCH[3].least);
const _: () = assert!(graph::KERNELS + 8 == graph::BYTES);
const _: () = assert!(migration::ERROR + 8 == migration::BYTES);
const _: () = assert!(fault::ADDRESS + 8 == fault::BYTES);
const _: () = assert!(event::SOURCE + 8 == event::BYTES);
