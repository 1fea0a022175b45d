//! Keys that came before, with all that stands around them.
//!
//! Programs that write traces write each key a million times, and always with the same comma,
//! white space and colon around it. So what stands between two values is not taken apart each
//! time; it is compared as a whole with what followed the last key before:
//!
//! ```text
//! {"ph": "X", "cat": "cpu_op",\n    "ts": 1.5
//!            └────────┘       └───────────┘       two gaps, which are known from the first event
//! ```
//! A key in such a gap has a number, which readers use instead of its text.

use hashbrown::HashMap;

use super::lists::Lists;

/// How long a gap may be.
const LONGEST: usize = 48;
const WORDS: usize = LONGEST / 16;
type Words = [u128; WORDS];

/// How many gaps are kept. Files with more are read without the others.
const MAX_GAPS: usize = 1024;

/// How many gaps are remembered that followed one: as many as there are kinds of events.
const FOLLOWERS: usize = 8;

/// What stands between two values of an object, or before the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// What stands there, and which bits of that count.
    text: Words,
    mask: Words,
    pub(super) len: u8,
    /// Where the key begins in it, after its quote.
    pub(super) key: u8,
    pub(super) key_len: u8,
    /// Whether it begins with a comma: not before the first value.
    comma: bool,
    /// Gaps that followed it, the latest first; 0 is none.
    next: [u16; FOLLOWERS],
    /// The number of the key; 0 is none.
    pub(super) number: u16,
}

impl Gap {
    const NONE: Gap = Gap {
        text: [0; WORDS],
        mask: [0; WORDS],
        len: 0,
        key: 0,
        key_len: 0,
        comma: false,
        next: [0; FOLLOWERS],
        number: 0,
    };

    /// Most gaps are short, and most that are not this one differ at once.
    #[inline]
    fn is(&self, ahead: &[u8; LONGEST]) -> bool {
        let same = |at: usize| (word(ahead, at) ^ self.text[at]) & self.mask[at] == 0;
        same(0) && (self.len <= 16 || same(1) && (self.len <= 32 || same(2)))
    }
}

#[inline]
fn word(text: &[u8; LONGEST], at: usize) -> u128 {
    u128::from_le_bytes(text.as_chunks::<16>().0[at])
}

/// See the module.
#[derive(Debug)]
pub(super) struct Keys {
    /// The first is none: what follows that begins an element.
    gaps: Vec<Gap>,
    /// By their text.
    places: HashMap<Box<[u8]>, u16>,
    numbers: HashMap<Box<[u8]>, u16>,
    last: u16,
    pub(super) lists: Lists,
}

impl Default for Keys {
    fn default() -> Keys {
        let (places, numbers) = (HashMap::new(), HashMap::new());
        let gaps = vec![Gap::NONE];
        Keys { gaps, places, numbers, last: 0, lists: Lists::default() }
    }
}

impl Keys {
    /// An element begins.
    #[inline]
    pub(super) fn restart(&mut self) {
        self.last = 0;
    }

    /// The gap that stands at `at`, if it followed the last one before. `first` when no value
    /// comes before it.
    #[inline(always)]
    pub(super) fn find(&mut self, bytes: &[u8], at: usize, first: bool) -> Option<&Gap> {
        let ahead = bytes.get(at..)?.first_chunk::<LONGEST>()?;
        for next in &self.gaps.get(usize::from(self.last))?.next {
            let gap = self.gaps.get(usize::from(*next))?;
            if gap.is(ahead) {
                if *next == 0 || gap.comma == first {
                    return None;
                }
                self.last = *next;
                return Some(gap);
            }
        }
        None
    }

    /// Remembers a gap, whose key is without escapes; gives the number of the key.
    #[cold]
    pub(super) fn learn(&mut self, gap: &[u8], key: std::ops::Range<usize>) -> u16 {
        if gap.len() > LONGEST {
            self.last = 0;
            return 0;
        }
        let place = match self.places.get(gap) {
            Some(&place) => place,
            None if self.gaps.len() >= MAX_GAPS => {
                self.last = 0;
                return 0;
            }
            None => self.add(gap, key),
        };
        let next = &mut self.gaps[usize::from(self.last)].next;
        let known = next.iter().position(|known| *known == place).unwrap_or(next.len() - 1);
        next[..=known].rotate_right(1);
        next[0] = place;
        self.last = place;
        self.gaps[usize::from(place)].number
    }

    fn add(&mut self, gap: &[u8], key: std::ops::Range<usize>) -> u16 {
        let (mut text, mut mask) = ([0; LONGEST], [0; LONGEST]);
        text[..gap.len()].copy_from_slice(gap);
        mask[..gap.len()].fill(0xff);
        let words = |bytes| std::array::from_fn(|at| word(&bytes, at));
        let new = self.numbers.len() as u16 + 1;
        let number = *self.numbers.entry(gap[key.clone()].into()).or_insert(new);
        // All three are at most `LONGEST`.
        let (len, at, key_len) = (gap.len() as u8, key.start as u8, key.len() as u8);
        let comma = gap.trim_ascii_start().first() == Some(&b',');
        let place = self.gaps.len() as u16;
        let (text, mask) = (words(text), words(mask));
        let next = [0; FOLLOWERS];
        self.gaps.push(Gap { text, mask, len, key: at, key_len, comma, next, number });
        self.places.insert(gap.into(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_found_where_it_followed_before() {
        let text = [&b", \"ts\": 12"[..], &[b'x'; LONGEST]].concat();
        let mut keys = Keys::default();
        assert!(keys.find(&text, 0, false).is_none());
        let number = keys.learn(&text[..8], 3..5);
        keys.restart();
        let gap = keys.find(&text, 0, false).unwrap();
        assert_eq!((gap.len, gap.key, gap.key_len, gap.number), (8, 3, 2, number));
        assert!(keys.find(&text, 0, false).is_none(), "it did not follow itself");
        keys.restart();
        assert!(keys.find(&text[..20], 0, false).is_none(), "the input may go on otherwise");
        let other = keys.learn(b",\"ts\":", 2..4);
        assert_eq!(other, number, "one key in two gaps");
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut keys = Keys::default();
        for n in 0..2000 {
            let gap = format!(",\"{n:05}\":");
            assert_eq!(keys.learn(gap.as_bytes(), 2..7) != 0, n < MAX_GAPS - 1, "{n}");
        }
        assert_eq!(keys.learn(&[b' '; LONGEST + 1], 0..1), 0);
    }
}
