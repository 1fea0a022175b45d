//! The names of a recorded process, as far as they have been read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kymograph_protos::StrId;
use kymograph_protos::packet::{Strings, Text};

use crate::intern::Interner;
use crate::queue::{NameLog, Named, Pool};

/// Threads whose names are remembered.
const MAX_THREADS: usize = 1 << 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) pool: Arc<Pool>,
    pub(crate) interner: Arc<Interner>,
    log: Mutex<NameLog>,
    /// Names that the process has given to threads, by their ids.
    threads: Mutex<HashMap<u32, Vec<u8>>>,
}

impl Names {
    /// Those of the member that `pool` is a view of, which took over `inherited` from the
    /// process that it was forked from.
    pub(crate) fn new(pool: Arc<Pool>, parent: Option<&Names>, inherited: u32) -> Names {
        let interner = Interner::new();
        for id in (1..=inherited).map(StrId) {
            let Text { bytes: text, category, arg } = match parent {
                Some(parent) => parent.interner.text(id),
                // The parent is long gone. What these names were is not known any more.
                None => Text { bytes: b"?", ..Text::default() },
            };
            interner.define(Named { id, category, arg, text });
        }
        Names {
            pool,
            interner: Arc::new(interner),
            log: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    /// Reads what names have come. Every name that a record says which was read before this
    /// call is known after it.
    pub(crate) fn refresh(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let define = |name: Named<'_>| {
            self.interner.define(name);
        };
        log.read(&self.pool, define, |tid, name| {
            let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
            // Threads come and go; a process with so many loses names rather than memory.
            if threads.len() < MAX_THREADS || threads.contains_key(&tid) {
                threads.insert(tid, name.to_vec());
            }
        });
    }

    /// What the process has called a thread, as far as that was read.
    pub(crate) fn thread(&self, tid: u32) -> Option<Vec<u8>> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.get(&tid).cloned()
    }
}
