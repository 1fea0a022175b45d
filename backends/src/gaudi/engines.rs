//! What engines a device has, by the metadata at the beginning of its trace.
//!
//! The metadata of index 0 names a type of engines, with stars in front that say where they
//! are (`***Host`, `*TPC `, `**MME `); that of other indices names an engine, and so does what
//! else there is of index 0.

use std::collections::HashMap;

use kymograph_protos::device::Stage;

use super::layout::{Event, Trace};

/// Types and engines of a trace at most: a number that lies must not cost memory.
const MAX_ENGINES: usize = 1 << 16;

/// Numbers of types below this are small.
const SMALL: u32 = 256;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Engines {
    types: HashMap<u32, Vec<u8>>,
    engines: HashMap<(u32, u32), Vec<u8>>,
    /// Roles of the types with small numbers, which all are.
    roles: Vec<Role>,
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
        engines.roles = (0..SMALL).map(|ty| engines.find_role(ty)).collect();
        engines
    }

    fn add(&mut self, event: &Event<'_>) {
        let (ty, index) = event.engine();
        let name = event.named();
        if self.types.len() + self.engines.len() >= MAX_ENGINES || name.is_empty() {
            return;
        }
        let is_type = index == 0 && (name.starts_with(b"*") || !self.types.contains_key(&ty));
        if !is_type {
            self.engines.insert((ty, index), name.to_vec());
        } else if let Some(before) = self.types.insert(ty, name.to_vec()) {
            // It came first, and was that of the engine.
            self.engines.entry((ty, index)).or_insert(before);
        }
    }

    /// What engines of a type are there for.
    #[inline]
    pub(crate) fn role(&self, ty: u32) -> Role {
        self.roles.get(ty as usize).copied().unwrap_or_else(|| self.find_role(ty))
    }

    fn find_role(&self, ty: u32) -> Role {
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

/// What an activity is called that its engine does not tell the kind of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Operation {
    Copy,
    Set,
    Transpose,
    #[default]
    Other,
}

impl Operation {
    pub(crate) fn of(name: &[u8]) -> Operation {
        match name {
            b"DmaTranspose" => Operation::Transpose,
            _ if name.starts_with(b"memset") => Operation::Set,
            _ if name.starts_with(b"memcpy") => Operation::Copy,
            _ => Operation::Other,
        }
    }
}

/// What an activity of a device is.
pub(crate) fn stage(role: Role, operation: Operation) -> Stage {
    match (role, operation) {
        (Role::Compute, _) | (_, Operation::Transpose) => Stage::Kernel,
        (_, Operation::Set) => Stage::MemorySet,
        (Role::Copy, _) | (_, Operation::Copy) => Stage::MemoryTransfer,
        (Role::Network, _) => Stage::Communication,
        (Role::Host | Role::Other, _) => Stage::Other,
    }
}
