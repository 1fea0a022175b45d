//! What vendors are called where people read it.

/// The names of one vendor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Names {
    /// In messages and tables: `CUDA is not recorded: …`.
    pub shown: &'static str,
    /// On the command line, and what keys of the trace's metadata begin with: `cuda.PID.kernels`.
    pub key: &'static str,
}

pub(crate) const NVIDIA: Names = Names { shown: "CUDA", key: "cuda" };
/// Of NVIDIA, what is sampled.
pub(crate) const NVML: Names = Names { shown: "Utilisation of GPUs", key: "nvml" };
pub(crate) const AMD: Names = Names { shown: "HIP", key: "hip" };
pub(crate) const INTEL: Names = Names { shown: "Intel GPU", key: "xpu" };
pub(crate) const GAUDI: Names = Names { shown: "Gaudi", key: "hpu" };

impl Names {
    /// The key of something that holds for this process: `cuda.PID.NAME`.
    pub(crate) fn of_process(self, name: impl std::fmt::Display) -> String {
        format!("{}.{}.{name}", self.key, std::process::id())
    }
}
