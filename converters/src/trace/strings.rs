//! The string table.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use kymograph_protos::StrId;
use kymograph_protos::packet::{Strings, Text};

/// Distinct strings, dense from 1. All bytes lie one behind the other in one string, so a
/// string costs its length, 8 bytes for its end and about 5 for finding it.
///
/// [`StrId::NONE`] is "no string", which is not the empty string; reading it gives `""`.
#[derive(Default)]
pub struct StringTable {
    bytes: String,
    ends: Vec<usize>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl StringTable {
    /// The number of `text`, a new one if it is new.
    pub fn intern(&mut self, text: &str) -> StrId {
        let hash = self.hasher.hash_one(text);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(&id) = self.ids.find(hash, |&id| string(bytes, ends, id) == text) {
            return StrId(id);
        }
        // 2³²−1 distinct strings are more than a machine's memory.
        let id = u32::try_from(self.ends.len() + 1).unwrap_or(u32::MAX);
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.ids.insert_unique(hash, id, |&id| hasher.hash_one(string(bytes, ends, id)));
        StrId(id)
    }

    /// The number of `text`, if it is in the table.
    pub fn find(&self, text: &str) -> Option<StrId> {
        let hash = self.hasher.hash_one(text);
        let found = self.ids.find(hash, |&id| string(&self.bytes, &self.ends, id) == text);
        found.map(|&id| StrId(id))
    }

    /// The string; `""` for [`StrId::NONE`] and numbers of other tables.
    #[inline]
    pub fn get(&self, id: StrId) -> &str {
        string(&self.bytes, &self.ends, id.0)
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings.
    pub fn iter(&self) -> impl Iterator<Item = (StrId, &str)> {
        (1..).map(StrId).take(self.len()).map(|id| (id, self.get(id)))
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + self.ids.capacity() * 5
    }
}

#[inline]
fn string<'a>(bytes: &'a str, ends: &[usize], id: u32) -> &'a str {
    let Some(&end) = (id as usize).checked_sub(1).and_then(|index| ends.get(index)) else {
        return "";
    };
    let start = if id == 1 { 0 } else { ends[id as usize - 2] };
    &bytes[start..end]
}

impl Strings for StringTable {
    fn text(&self, id: StrId) -> Text<'_> {
        Text { bytes: self.get(id).as_bytes(), ..Text::default() }
    }
}

impl std::fmt::Debug for StringTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(id, text)| (id.0, text))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_number() {
        let mut table = StringTable::default();
        let ids: Vec<u32> = ["a", "", "b", "a", ""].map(|text| table.intern(text).0).into();
        assert_eq!(ids, [1, 2, 3, 1, 2]);
        assert_eq!(table.get(StrId(3)), "b");
        assert_eq!(table.get(StrId::NONE), "");
        assert_eq!(table.get(StrId(99)), "");
        assert_eq!(table.find("b"), Some(StrId(3)));
        assert_eq!(table.find("c"), None);
    }
}
