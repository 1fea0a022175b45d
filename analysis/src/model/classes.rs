//! What kind of work device events are.

use super::{Class, Kind, Model, Reading};
use crate::compat::hta;

/// The class of each device event: by its kind, and by its name.
#[derive(Debug)]
pub struct Classes {
    /// By the number of the name; none of names that no device event has.
    by_name: Vec<Option<Class>>,
    exact: bool,
}

impl Classes {
    pub(super) fn of(model: &Model<'_>) -> Classes {
        let mut by_name = vec![None; model.trace.strings.len() + 1];
        for row in model.device() {
            let id = model.events.names[*row as usize];
            if let Some(class) = by_name.get_mut(id.0 as usize) {
                class.get_or_insert_with(|| match model.reading {
                    Reading::Exact => of_kernel(model.text(id)),
                    Reading::Hta(rules) => hta::class(rules.version, model.text(id)),
                });
            }
        }
        Classes { by_name, exact: model.reading == Reading::Exact }
    }

    /// The class of a device event.
    pub fn of_row(&self, model: &Model<'_>, row: u32) -> Class {
        let name = model.events.names[row as usize];
        let by_name =
            || self.by_name.get(name.0 as usize).copied().flatten().unwrap_or(Class::Other);
        if !self.exact {
            return by_name();
        }
        match model.events.kinds[row as usize] {
            Kind::Copy | Kind::Set => Class::Memory,
            Kind::Communication => Class::Communication,
            Kind::Kernel => by_name(),
            _ => Class::Other,
        }
    }
}

/// The class of a kernel by its name: whether it belongs to a library that moves data between
/// devices.
pub fn of_kernel(name: &str) -> Class {
    const LIBRARIES: [&str; 12] = [
        "ncclDevKernel",
        "ncclKernel",
        "ncclSymDevKernel",
        "ncclSymk",
        "rcclDevKernel",
        "rccl",
        "hccl",
        "oneccl",
        "nvshmem",
        "msccl",
        "deep_ep::",
        "DeepEP",
    ];
    // Kernels of inference engines that reduce over devices themselves.
    const OWN: [&str; 6] = [
        "cross_device_reduce",
        "all_reduce_kernel",
        "allreduce_kernel",
        "oneShotAllReduce",
        "twoShotAllReduce",
        "multimem_all_reduce",
    ];
    let name = name.strip_prefix("void ").unwrap_or(name);
    let in_library = LIBRARIES.iter().any(|start| name.starts_with(start));
    if in_library || name.starts_with("nccl") || OWN.iter().any(|part| name.contains(part)) {
        Class::Communication
    } else {
        Class::Computation
    }
}
