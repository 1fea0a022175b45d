//! What processes want the user who records them to know: sentences that `kymo record` prints
//! when it ends, such as that CUDA is not recorded and why.
//!
//! The same sentence from several processes is one note with a count.

use super::Page;
use std::sync::{MutexGuard, PoisonError};

/// Bytes of a sentence; longer ones are cut.
const MAX_LENGTH: usize = 504;
/// Sentences that are kept.
const MAX: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Each with how many processes said it.
    said: Vec<(String, u32)>,
    /// How many more there were.
    unsaid: u32,
}

impl Page {
    fn locked_notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a sentence for `kymo record`. Without room it is only counted.
    pub(crate) fn note(&self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_LENGTH)];
        let mut notes = self.locked_notes();
        if let Some((_, times)) = notes.said.iter_mut().find(|(known, _)| known == text) {
            *times += 1;
        } else if notes.said.len() < MAX {
            notes.said.push((text.to_owned(), 1));
        } else {
            notes.unsaid += 1;
        }
    }

    /// The sentences, each with how many processes said it, and how many more there were.
    pub fn notes(&self) -> (Vec<(String, u32)>, u32) {
        let notes = self.locked_notes();
        (notes.said.clone(), notes.unsaid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_kept_once_and_cut_where_a_character_ends() {
        let page = Page::new();
        assert_eq!(page.notes(), (vec![], 0));
        let long = format!("{}é and so on", "x".repeat(MAX_LENGTH - 1));
        for text in ["CUDA is not recorded", "", "CUDA is not recorded", &long, &long] {
            page.note(text);
        }
        let (notes, unsaid) = page.notes();
        let cut = "x".repeat(MAX_LENGTH - 1);
        let expected = [("CUDA is not recorded".to_owned(), 2), (String::new(), 1), (cut, 2)];
        assert_eq!((notes, unsaid), (expected.to_vec(), 0));
        for n in 0..10 {
            page.note(&n.to_string());
        }
        assert_eq!((page.notes().0.len(), page.notes().1), (MAX, 5));
    }
}
