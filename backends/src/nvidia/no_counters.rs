//! Stands for `counters` in programs that are built without NVML.

use std::time::Duration;

use kymograph_protos::ColdRecorder;

use crate::device::names;
use crate::device::remark;

/// Samples nothing.
pub(crate) struct Sampler {
    pub(crate) rounds: u64,
    pub(crate) took: Duration,
}

impl Sampler {
    pub(crate) fn new(recorder: &'static dyn ColdRecorder, _every: Duration) -> Sampler {
        let why = "this program was built without NVML; enable the feature `nvml`";
        remark::not_recorded(recorder, names::NVML, why);
        Sampler { rounds: 0, took: Duration::ZERO }
    }

    pub(crate) fn hurry(&mut self) {}

    pub(crate) fn sample(
        &mut self,
        _used: impl Iterator<Item = u32>,
        _uuid: impl Fn(u32) -> Option<String>,
    ) {
    }
}
