//! Kinds of work, by names alone.

use crate::model::kind::Class;
use crate::reading::Version;

/// The class that HTA gives a kernel of this name.
pub fn class(version: Version, name: &str) -> Class {
    let (communication, memory, other) = match version {
        Version::Hta => of_hta(name),
        Version::TraceInsight => of_traceinsight(name),
    };
    if communication {
        Class::Communication
    } else if memory {
        Class::Memory
    } else if other {
        Class::Other
    } else {
        Class::Computation
    }
}

fn begins(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

fn of_hta(name: &str) -> (bool, bool, bool) {
    let communication = name.starts_with("nccl") && name[4..].contains("Kernel");
    let memory = begins(name, &["Memcpy", "Memset", "dma"]);
    let other = name.contains("Memcpy") || name.starts_with("Memset") || name.contains("Sync");
    (communication, memory, other)
}

fn of_traceinsight(name: &str) -> (bool, bool, bool) {
    let communication = begins(name, &["nccl", "hip", "hccl"]) || name.contains("ncclKernel");
    let memory = begins(name, &["Memcpy", "hipMemcpy", "Memset", "hipMemset", "dma"]);
    let other = ["Memcpy", "Memset", "dma", "Sync"].iter().any(|part| name.contains(part))
        || name.strip_prefix("cuda").is_some_and(|rest| rest.contains("LaunchKernel"))
        || begins(
            name,
            &[
                "Stream Wait Event",
                "runFunction",
                "job_exe",
                "packet",
                "pe_exe",
                "cpum_exe_subgraph",
                "collective_subgraph_execution",
            ],
        );
    (communication, memory, other)
}
