//! What engines a device has, by the metadata at the beginning of its trace.
//!
//! The metadata of index 0 names a type of engines, with stars in front that say where they
//! are (`***Host`, `*TPC `, `**MME `); that of other indices names an engine.

use std::collections::HashMap;

use kymograph_protos::device::Stage;

use super::layout::{Event, Trace};

/// Types and engines of a trace at most: a number that lies must not cost memory.
const MOST: usize = 1 << 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Engines {
    types: HashMap<u32, Vec<u8>>,
    engines: HashMap<(u32, u32), Vec<u8>>,
}

/// What an engine is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Synapse on the host.
    Host,
    Compute,
    Copy,
    Network,
    Other,
}

impl Engines {
    pub(crate) fn of(trace: &Trace<'_>) -> Engines {
        let mut engines = Engines::default();
        for event in trace.events().filter(|event| event.kind() == b'M') {
            engines.add(&event);
        }
        engines
    }

    fn add(&mut self, event: &Event<'_>) {
        let (ty, index) = event.engine();
        let name = event.named();
        if self.types.len() + self.engines.len() >= MOST || name.is_empty() {
            return;
        }
        if index == 0 {
            self.types.insert(ty, name.to_vec());
        } else {
            self.engines.insert((ty, index), name.to_vec());
        }
    }

    /// What engines of a type are there for.
    pub(crate) fn role(&self, ty: u32) -> Role {
        let name = self.types.get(&ty).map(|name| plain(name)).unwrap_or_default();
        let has = |part: &str| name.contains(part);
        match () {
            () if has("Host") => Role::Host,
            () if has("TPC") || has("MME") => Role::Compute,
            () if has("DMA") => Role::Copy,
            () if has("NIC") => Role::Network,
            () => Role::Other,
        }
    }

    /// What people call an engine.
    pub(crate) fn name(&self, (ty, index): (u32, u32)) -> String {
        if let Some(name) = self.engines.get(&(ty, index)) {
            return plain(name);
        }
        match self.types.get(&ty) {
            Some(name) => format!("{} {index:02}", plain(name)),
            None => format!("Engine {ty}.{index:02}"),
        }
    }
}

/// A name without its stars.
fn plain(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim_matches(['*', ' ']).to_owned()
}

/// What an activity of a device is.
pub(crate) fn stage(role: Role, operation: &[u8]) -> Stage {
    match role {
        _ if operation == b"DmaTranspose" => Stage::Kernel,
        Role::Compute => Stage::Kernel,
        _ if operation.starts_with(b"memset") => Stage::MemorySet,
        Role::Copy => Stage::MemoryTransfer,
        _ if operation.starts_with(b"memcpy") => Stage::MemoryTransfer,
        Role::Network => Stage::Communication,
        Role::Host | Role::Other => Stage::Other,
    }
}
