//! What events are.

/// What an event is, by its category.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Kind {
    /// An operator of a framework.
    Operator,
    /// A range that the program's author named.
    Annotation,
    /// A step, as our own recordings mark them: on a track of its own.
    Step,
    /// A call of a device's runtime library.
    Runtime,
    /// A call of a device's driver.
    Driver,
    /// A Python function.
    Python,
    /// A kernel on a device.
    Kernel,
    /// A copy by a device.
    Copy,
    /// A fill by a device.
    Set,
    /// A collective or point-to-point operation that is no kernel of its own.
    Communication,
    /// An annotation as a device saw it.
    DeviceAnnotation,
    /// A wait of a device or for one.
    Sync,
    /// Work of the profiler itself.
    Overhead,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind of a category of the host.
    pub fn of_category(category: &str) -> Kind {
        match category {
            "cpu_op" | "Operator" => Kind::Operator,
            "user_annotation" | "nvtx" => Kind::Annotation,
            "ProfilerStep" => Kind::Step,
            "cuda_driver" | "xpu_driver" | "privateuse1_driver" => Kind::Driver,
            "Runtime" => Kind::Runtime,
            "python_function" | "Python" => Kind::Python,
            "kernel" | "Kernel" | "mtia_ccp_events" => Kind::Kernel,
            "gpu_memcpy" | "Memcpy" => Kind::Copy,
            "gpu_memset" | "Memset" => Kind::Set,
            "gpu_user_annotation" => Kind::DeviceAnnotation,
            "cuda_sync" | "cuda_event" => Kind::Sync,
            "overhead" => Kind::Overhead,
            _ if category.ends_with("_runtime") => Kind::Runtime,
            _ => Kind::Other,
        }
    }

    /// Whether a device did it.
    pub fn is_work(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Copy | Kind::Set | Kind::Communication)
    }
}

/// A kind of work of devices. The names are HTA's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Class {
    /// Kernels that compute.
    Computation,
    /// Collectives and point-to-point operations.
    Communication,
    /// Copies and fills of memory.
    Memory,
    /// Waits and whatever else is no work.
    Other,
}

impl Class {
    /// What tables say.
    pub fn name(self) -> &'static str {
        match self {
            Class::Computation => "COMPUTATION",
            Class::Communication => "COMMUNICATION",
            Class::Memory => "MEMORY",
            Class::Other => "OTHER",
        }
    }
}
