//! Events that no table of the hub can hold.

use super::StrId;

/// An event of a JSON trace, kept as it was for a conversion back to JSON: one of a phase that
/// means nothing elsewhere, or one that says more than the hub can hold. The latter is in its
/// table too, with the same position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leftover {
    /// Where it stood in the file: see [`super::Slices::position`].
    pub position: u32,
    /// The event: JSON.
    pub text: StrId,
}
