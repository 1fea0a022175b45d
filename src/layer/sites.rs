//! Callsites: what `tracing` knows of a place in the program, and the numbers it has here.
//!
//! Looked up with every span and event, so without a lock: a fixed table of pointers,
//! probed from the address of the callsite's metadata. A program with more places than fit
//! pays a lock for the rest.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use kymograph_protos::StrId;
use kymograph_protos::record::Kind;
use tracing_core::Metadata;

use crate::api::draft::Draft;
use crate::intern::INTERNER;

const SIZE: usize = 1 << 13;
/// Places probed before the table counts as full.
const PROBES: usize = 64;

static TABLE: [AtomicPtr<Site>; SIZE] = [const { AtomicPtr::new(ptr::null_mut()) }; SIZE];
static REST: Mutex<Option<HashMap<usize, &'static Site>>> = Mutex::new(None);

/// See the module.
#[derive(Debug)]
pub struct Site {
    pub metadata: &'static Metadata<'static>,
    /// The target.
    pub category: StrId,
    /// The name.
    name: StrId,
    /// Names of the fields, by their index.
    fields: Box<[StrId]>,
}

impl Site {
    fn new(metadata: &'static Metadata<'static>) -> Site {
        let intern = |category, text: &str| INTERNER.intern_or_wait(category, text.as_bytes());
        let category = intern(StrId::NONE, metadata.target());
        Site {
            metadata,
            category,
            name: intern(category, metadata.name()),
            fields: metadata.fields().iter().map(|f| intern(StrId::NONE, f.name())).collect(),
        }
    }

    /// An event of this place, by its name.
    pub fn draft(&self, kind: Kind) -> Draft<'static> {
        let mut draft = Draft::new(kind, self.name);
        if self.name.is_none() {
            draft.name(self.category, self.metadata.name().as_bytes());
        }
        draft
    }

    /// The name of a field.
    pub fn field(&self, index: usize) -> StrId {
        self.fields.get(index).copied().unwrap_or_default()
    }
}

/// The place that `metadata` describes, if it was seen before and is in the table.
pub fn find(metadata: &Metadata<'_>) -> Option<&'static Site> {
    let key = key(metadata);
    for probe in 0..PROBES {
        let site = TABLE[slot(key, probe)].load(Ordering::Acquire);
        // SAFETY: sites in the table are never freed.
        let site = unsafe { site.as_ref() }?;
        if self::key(site.metadata) == key {
            return Some(site);
        }
    }
    None
}

/// The place that `metadata` describes.
pub fn get(metadata: &'static Metadata<'static>) -> &'static Site {
    find(metadata).unwrap_or_else(|| add(metadata))
}

#[cold]
fn add(metadata: &'static Metadata<'static>) -> &'static Site {
    let mut rest = REST.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = rest.get_or_insert_default();
    let key = key(metadata);
    // Another thread may have been faster.
    if let Some(site) = find(metadata).or_else(|| rest.get(&key).copied()) {
        return site;
    }
    let site: &'static Site = Box::leak(Box::new(Site::new(metadata)));
    for probe in 0..PROBES {
        // Only changed under the lock.
        let place = &TABLE[slot(key, probe)];
        if place.load(Ordering::Relaxed).is_null() {
            place.store(ptr::from_ref(site).cast_mut(), Ordering::Release);
            return site;
        }
    }
    rest.insert(key, site);
    site
}

fn key(metadata: &Metadata<'_>) -> usize {
    ptr::from_ref(metadata).addr()
}

fn slot(key: usize, probe: usize) -> usize {
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (hash as usize + probe) % SIZE
}
