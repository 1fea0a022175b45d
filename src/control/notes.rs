//! What processes want whoever records them to know: sentences that `kymo record` prints
//! when it ends, such as that CUDA is not recorded and why.
//!
//! A note is claimed, filled, then marked as whole. Whoever dies in between leaves one that
//! nobody shows. The same sentence from several processes is one note with a count.

use super::Page;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

const WORDS: usize = 63;
/// Bytes of a sentence; longer ones are cut.
const LONGEST: usize = WORDS * 8;
/// Sentences that there is room for.
pub(super) const NOTES: usize = 8;

/// A sentence.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Note {
    state: AtomicU32,
    /// How many processes said it.
    times: AtomicU32,
    /// UTF-8, filled up with zeros.
    text: [AtomicU64; WORDS],
}

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const WHOLE: u32 = 2;

const _: () = assert!(size_of::<Note>() == 512);

impl Note {
    fn set(&self, text: &str) {
        let mut end = text.len().min(LONGEST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; LONGEST];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        for (word, bytes) in self.text.iter().zip(bytes.chunks_exact(8)) {
            word.store(bytes.iter().rfold(0, |n, b| n << 8 | u64::from(*b)), Relaxed);
        }
    }

    fn text(&self) -> String {
        let words = self.text.iter().map(|word| word.load(Relaxed).to_le_bytes());
        let bytes: Vec<u8> = words.flatten().take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Page {
    /// Leaves a sentence for `kymo record`. Without room it is only counted.
    pub(crate) fn note(&self, text: &str) {
        let notes = &self.layout().notes;
        let said = |note: &&Note| {
            note.state.load(Acquire) == WHOLE && {
                let known = note.text();
                text.starts_with(&known) && (known.len() == text.len() || known.len() > LONGEST - 4)
            }
        };
        if let Some(note) = notes.iter().find(said) {
            note.times.fetch_add(1, Relaxed);
            return;
        }
        let claim =
            |note: &&Note| note.state.compare_exchange(FREE, CLAIMED, AcqRel, Relaxed).is_ok();
        match notes.iter().find(claim) {
            Some(note) => {
                note.set(text);
                note.times.store(1, Relaxed);
                note.state.store(WHOLE, Release);
            }
            None => {
                self.layout().unsaid.fetch_add(1, Relaxed);
            }
        }
    }

    /// The sentences, each with how many processes said it, and how many more there were.
    pub fn notes(&self) -> (Vec<(String, u32)>, u32) {
        let mut found: Vec<(String, u32)> = Vec::new();
        let notes = self.layout().notes.iter();
        for note in notes.filter(|note| note.state.load(Acquire) == WHOLE) {
            let (text, times) = (note.text(), note.times.load(Relaxed));
            // Two that said it at the same moment have a note each.
            match found.iter_mut().find(|(known, _)| *known == text) {
                Some((_, sum)) => *sum += times,
                None => found.push((text, times)),
            }
        }
        (found, self.layout().unsaid.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_kept_once_and_cut_where_a_character_ends() {
        let folder = tempfile::tempdir().unwrap();
        let page = Page::create(&folder.path().join("page")).unwrap();
        assert_eq!(page.notes(), (vec![], 0));
        let long = format!("{}é and so on", "x".repeat(LONGEST - 1));
        for text in ["CUDA is not recorded", "", "CUDA is not recorded", &long, &long] {
            page.note(text);
        }
        let (notes, unsaid) = page.notes();
        let cut = "x".repeat(LONGEST - 1);
        let expected = [("CUDA is not recorded".to_owned(), 2), (String::new(), 1), (cut, 2)];
        assert_eq!((notes, unsaid), (expected.to_vec(), 0));
        for n in 0..10 {
            page.note(&n.to_string());
        }
        assert_eq!((page.notes().0.len(), page.notes().1), (NOTES, 5));
    }
}
