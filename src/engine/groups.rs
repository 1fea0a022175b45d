//! Rows of a process that tell about streams lie in groups, which viewers fold.

use std::collections::HashSet;

use kymograph_protos::packet::Track;
use kymograph_protos::rows::Beside;

use crate::process::identity::mix;

/// Groups that were described.
#[derive(Debug, Default)]
pub struct Groups(HashSet<u64>);

impl Groups {
    /// Describes the track of a row, and its group if need be.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        process: u64,
        (uuid, row): (u64, Beside),
        sequence: u32,
    ) {
        let parent = mix(&[process, 0x6772_6f75, row.group_rank() as u64]);
        if self.0.insert(parent) {
            let (name, rank) = (row.group(), Some(row.group_rank()));
            let name = name.as_bytes();
            let orders_children = true;
            Track { uuid: parent, parent: process, name, rank, orders_children, counter: None }
                .write(out, sequence);
        }
        let (name, rank) = (row.row(), Some(row.rank()));
        Track { uuid, parent, name: name.as_bytes(), rank, ..Track::default() }
            .write(out, sequence);
    }

    /// Forgets what was stated: the sequence restarts.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
