//! FlatBuffers, of which Arrow's metadata consists: as much of them as is written.
//!
//! A buffer is written from its end, so that what is referred to is there before what refers to
//! it. A place is its distance from the end.

/// Where an object begins: the distance from the end of the buffer.
#[derive(Clone, Copy)]
pub(super) struct Place(usize);

/// What a table can have in a slot.
#[derive(Clone, Copy)]
pub(super) enum Value {
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    At(Place),
}

#[derive(Default)]
pub(super) struct Builder {
    /// The last byte comes first.
    reversed: Vec<u8>,
}

impl Builder {
    fn put(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    fn here(&self) -> Place {
        Place(self.reversed.len())
    }

    /// Pads, so that after `length` more bytes an object of alignment `to` can begin.
    fn align(&mut self, to: usize, length: usize) {
        let end = self.reversed.len() + length;
        self.reversed.resize(end.next_multiple_of(to) - length, 0);
    }

    fn put_distance(&mut self, to: Place) {
        let from = self.reversed.len() + 4;
        self.put(&((from - to.0) as u32).to_le_bytes());
    }

    pub(super) fn string(&mut self, text: &str) -> Place {
        self.align(4, text.len() + 1);
        self.put(&[0]);
        self.put(text.as_bytes());
        self.put(&(text.len() as u32).to_le_bytes());
        self.here()
    }

    /// A vector of strings or tables.
    pub(super) fn vector(&mut self, places: &[Place]) -> Place {
        self.align(4, 0);
        for place in places.iter().rev() {
            self.put_distance(*place);
        }
        self.put(&(places.len() as u32).to_le_bytes());
        self.here()
    }

    /// A vector of structs, each of so many 64-bit words.
    pub(super) fn words<const N: usize>(&mut self, structs: &[[i64; N]]) -> Place {
        self.align(8, 0);
        for word in structs.as_flattened().iter().rev() {
            self.put(&word.to_le_bytes());
        }
        self.put(&(structs.len() as u32).to_le_bytes());
        self.here()
    }

    /// A table of slots and what they have; other slots have their defaults.
    pub(super) fn table(&mut self, slots: &[(usize, Value)]) -> Place {
        let end = self.here().0;
        let mut places = Vec::with_capacity(slots.len());
        for (slot, value) in slots {
            match value {
                Value::Byte(value) => self.put(&[*value]),
                Value::Short(value) => {
                    self.align(2, 0);
                    self.put(&value.to_le_bytes());
                }
                Value::Int(value) => {
                    self.align(4, 0);
                    self.put(&value.to_le_bytes());
                }
                Value::Long(value) => {
                    self.align(8, 0);
                    self.put(&value.to_le_bytes());
                }
                Value::At(place) => {
                    self.align(4, 0);
                    self.put_distance(*place);
                }
            }
            places.push((*slot, self.here().0));
        }
        self.align(4, 0);
        self.put(&[0; 4]);
        let table = self.here().0;
        // In front of it lies where its slots are.
        let count = places.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
        for slot in (0..count).rev() {
            let found = places.iter().find(|(other, _)| *other == slot);
            let offset = found.map_or(0, |(_, place)| (table - place) as u16);
            self.put(&offset.to_le_bytes());
        }
        self.put(&((table - end) as u16).to_le_bytes());
        self.put(&((2 * count + 4) as u16).to_le_bytes());
        let mut distance = ((self.here().0 - table) as u32).to_le_bytes();
        distance.reverse();
        self.reversed[table - 4..table].copy_from_slice(&distance);
        Place(table)
    }

    /// The buffer, whose root is this table; its length is a multiple of eight.
    pub(super) fn finish(mut self, root: Place) -> Vec<u8> {
        self.align(8, 4);
        self.put_distance(root);
        self.reversed.reverse();
        self.reversed
    }
}
