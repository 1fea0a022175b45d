//! What to record: Kineto's names of activities and PTI's kinds.

use super::sys::kind;
use crate::device::selection::wants;

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    /// Bit n: kind n.
    kinds: u32,
    /// The same of kinds of calls of which all are recorded, and not only what asks for work.
    whole: u32,
}

/// Kineto's names, the kinds they stand for (`ACTIVITY_TYPES`; include/ActivityType.h), and
/// whether they are recorded unless something else is asked for. Overheads are not: PTI
/// then times each of its own calls of Level Zero.
const NAMES: [(&[&str], &[u32], bool); 8] = [
    (&["gpu_memcpy"], &[kind::COPY, kind::PEER_COPY], true),
    (&["gpu_memset"], &[kind::FILL], true),
    (&["kernel", "concurrent_kernel"], &[kind::KERNEL], true),
    (&["xpu_runtime"], &[kind::RUNTIME_API], true),
    (&["xpu_driver"], &[kind::DRIVER_API], true),
    (&["xpu_sync"], &[kind::SYNCHRONIZATION], true),
    (&["collective_comm"], &[kind::COMMUNICATION], true),
    (&["overhead"], &[kind::OVERHEAD], false),
];

/// The same for calls of which all are recorded: there are very many.
const WHOLE: [(&str, u32); 2] =
    [("sycl_api", kind::RUNTIME_API), ("level_zero_api", kind::DRIVER_API)];

impl Selection {
    /// From a list of names; see [`wants`].
    pub(crate) fn parse(list: &str) -> Selection {
        let mut kinds = 0;
        for (names, these, by_default) in NAMES {
            if wants(list, names, by_default) {
                kinds |= these.iter().fold(0, |bits, kind| bits | 1 << kind);
            }
        }
        if wants(list, &["external_correlation"], false) {
            // Come only before records of calls, so these are needed with them.
            kinds |= 1 << kind::EXTERNAL_CORRELATION | 1 << kind::RUNTIME_API;
        }
        let whole = WHOLE.iter().filter(|(name, _)| wants(list, &[name], false));
        let whole = whole.fold(0, |bits, (_, kind)| bits | 1 << kind);
        Selection { kinds: kinds | whole, whole }
    }

    pub(crate) fn kinds(self) -> impl Iterator<Item = u32> {
        (0..kind::END).filter(move |kind| self.has(*kind))
    }

    pub(crate) fn has(self, kind: u32) -> bool {
        self.kinds >> kind & 1 != 0
    }

    /// Whether all calls of a kind are recorded.
    pub(crate) fn has_whole(self, kind: u32) -> bool {
        self.whole >> kind & 1 != 0
    }

    pub(crate) fn without(self, kind: u32) -> Selection {
        Selection { kinds: self.kinds & !(1 << kind), ..self }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.kinds == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kinetos() {
        let all: Vec<_> = Selection::parse("").kinds().collect();
        assert_eq!(all, [1, 3, 6, 8, 9, 10, 11, 12]);
        let some: Vec<_> = Selection::parse("cpu_op,KERNEL,overhead").kinds().collect();
        assert_eq!(some, [1, 5]);
        let external: Vec<_> = Selection::parse("external_correlation").kinds().collect();
        assert_eq!(external, [6, 7]);
        let whole = Selection::parse("kernel,level_zero_api");
        assert!(whole.has_whole(kind::DRIVER_API) && !whole.has_whole(kind::RUNTIME_API));
        assert!(whole.has(kind::DRIVER_API) && !Selection::parse("").has_whole(kind::DRIVER_API));
        assert!(Selection::parse("cuda_runtime").is_empty());
    }
}
