//! Strings of a trace, interned once: events point to the same ones again and again.

use kymograph_protos::{ColdRecorder, StrId};

use super::engines::Operation;

/// Strings that are remembered, by the lower bits of their address.
const SLOTS: usize = 1 << 12;
/// What only tells that an engine wrote a result: noise, as in Habana's own profiler.
const NOISE: &[u8] = b"write to mem";

/// What is known of a string.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text {
    pointer: u64,
    pub(crate) id: StrId,
    pub(crate) noise: bool,
    pub(crate) operation: Operation,
}

/// See the module. Of one trace: the next one's strings lie at the same addresses.
#[derive(Debug)]
pub(crate) struct Texts(Vec<Text>);

impl Texts {
    pub(crate) fn new() -> Texts {
        Texts(vec![Text::default(); SLOTS])
    }

    /// What is known of the string at `pointer`, whose bytes `read` gets.
    #[inline]
    pub(crate) fn get<'a>(
        &mut self,
        recorder: &dyn ColdRecorder,
        pointer: u64,
        read: impl FnOnce() -> &'a [u8],
    ) -> Text {
        let slot = &mut self.0[(pointer ^ pointer >> 12) as usize % SLOTS];
        if slot.pointer != pointer || pointer == 0 {
            let bytes = read();
            let id = if bytes.is_empty() {
                StrId::NONE
            } else {
                recorder.intern_or_wait(StrId::NONE, bytes)
            };
            let noise = bytes.windows(NOISE.len()).any(|window| window == NOISE);
            *slot = Text { pointer, id, noise, operation: Operation::of(bytes) };
        }
        *slot
    }
}
