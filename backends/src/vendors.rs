//! The one table of vendors: who records their devices, what `kymo doctor` asks, which variables
//! programs need, and what people call them.

use crate::device::finding::Finding;
use crate::device::names::{self, Names};
use crate::source::{Settings, Source};
use crate::{amd, gaudi, intel, nvidia};

/// A vendor of devices.
#[derive(Clone, Copy)]
pub struct Vendor {
    /// What people call it.
    pub names: Names,
    /// What records its devices.
    pub source: &'static dyn Source,
    /// Looks what is needed for that, and says each finding at once: the next may be the last,
    /// since libraries may end the process.
    pub probe: fn(&Settings, &mut dyn FnMut(Finding)),
    /// Variables that a program needs from its start on, to be recorded.
    pub environment: &'static [(&'static str, Variable)],
}

impl std::fmt::Debug for Vendor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vendor").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What a variable is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// The path of the library.
    Library,
    /// A text, unless the user has chosen another.
    Default(&'static str),
}

/// All of them. ROCm needs no variable, since it looks for a symbol of the library; Intel's PTI
/// sets its own.
pub static VENDORS: [Vendor; 4] = [
    Vendor {
        names: names::NVIDIA,
        source: &nvidia::NVIDIA,
        probe: nvidia::probe,
        environment: &[("CUDA_INJECTION64_PATH", Variable::Library)],
    },
    Vendor { names: names::AMD, source: &amd::AMD, probe: amd::probe, environment: &[] },
    Vendor { names: names::INTEL, source: &intel::INTEL, probe: intel::probe, environment: &[] },
    Vendor {
        names: names::GAUDI,
        source: &gaudi::GAUDI,
        probe: gaudi::probe,
        environment: &[("HABANA_PROFILE", Variable::Default("profile_api_light"))],
    },
];
