//! What the program calls its streams (`roctxNameHipStream`).
//!
//! It names a handle; records know a stream by what its calls said of it ([`super::streams::key`]).
//! The first call on a named stream tells that both are the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Names at most, and bytes of one.
const MAX_NAMES: usize = 1 << 12;
const MAX_NAME_BYTES: usize = 256;

/// Whether there are any: usually there are none.
static ANY: AtomicBool = AtomicBool::new(false);
/// By handle, and by what streams are known by.
static NAMES: Mutex<Option<[HashMap<u64, String>; 2]>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut [HashMap<u64, String>; 2]) -> R) -> R {
    f(NAMES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// A stream gets a name.
pub(crate) fn name(handle: u64, name: &[u8]) {
    let name = String::from_utf8_lossy(&name[..name.len().min(MAX_NAME_BYTES)]).into_owned();
    with(|[by_handle, _]| {
        if !name.is_empty() && (by_handle.len() < MAX_NAMES || by_handle.contains_key(&handle)) {
            by_handle.insert(handle, name);
            ANY.store(true, Ordering::Release);
        }
    });
}

/// A call on the stream with this handle is known by `key`.
#[inline]
pub(crate) fn seen(handle: u64, key: u64) {
    if ANY.load(Ordering::Acquire) {
        with(|[by_handle, by_key]| {
            if let Some(name) = by_handle.get(&handle)
                && by_key.len() < MAX_NAMES
                && by_key.get(&key) != Some(name)
            {
                by_key.insert(key, name.clone());
            }
        });
    }
}

/// The name of a stream, if it has one.
pub(crate) fn of(key: u64) -> Option<String> {
    ANY.load(Ordering::Acquire).then(|| with(|[_, by_key]| by_key.get(&key).cloned())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_stream_by_a_call() {
        assert_eq!(of(0x4000_0005), None);
        name(0x7f0d_0001, b"loader");
        assert_eq!(of(0x4000_0005), None, "nobody has used it yet");
        seen(0x7f0d_0001, 0x4000_0005);
        seen(0x7f0d_0002, 0x4000_0006);
        assert_eq!((of(0x4000_0005).as_deref(), of(0x4000_0006)), (Some("loader"), None));
        // It is given another one, or the handle is another stream's.
        name(0x7f0d_0001, b"copies");
        seen(0x7f0d_0001, 0x4000_0007);
        assert_eq!(of(0x4000_0005).as_deref(), Some("loader"));
        assert_eq!(of(0x4000_0007).as_deref(), Some("copies"));
    }
}
