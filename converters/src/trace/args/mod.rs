//! Arguments: named, typed values of slices, instants, activities.
//!
//! Most slices of a trace have one of a few **shapes**, the names and types of their
//! arguments; what differs are the values. So a set is the number of its shape and then
//! the values, packed:
//!
//! ```text
//! shapes   7: [("External id", U64), ("Ev Idx", U64), ("Input Dims", List)]
//! sets     … 07  89 04  0b  2f …           four values in 6 bytes
//!            shape      │   └ offset of [[8, 64], []] in `lists`
//!                       └ varints; signed ones in zigzag, floats as 8 bytes
//! lists    … 02  09 1a  09 00 …            count, then type and value of each item
//! ```
//! Lists and dictionaries are stored once each, however many events hold them: shapes of tensors
//! repeat all the time. A set that equals one of a few thousand recent ones is that one.

mod finder;

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{ArgsId, ListId, StrId};
pub use finder::Finder;
use finder::skips;

/// A typed value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// Nothing: JSON's `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// Signed.
    I64(i64),
    /// Unsigned. Readers of formats that do not tell use [`Value::I64`] where it fits.
    U64(u64),
    /// Floating point; whole numbers too, if they were written as such.
    F64(f64),
    /// A string.
    Str(StrId),
    /// An address.
    Pointer(u64),
    /// JSON text of a value that has no other form here, such as an integer beyond 64 bits.
    Json(StrId),
    /// Values: see [`Args::items`].
    List(ListId),
    /// Named values: see [`Args::entries_of`].
    Dict(ListId),
}

#[doc(hidden)]
/// The type of a [`Value`]. The numbers are those of the packed form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Type {
    Null,
    Bool,
    I64,
    U64,
    F64,
    Str,
    Pointer,
    Json,
    List,
    Dict,
}

const TYPES: [Type; 10] = [
    Type::Null,
    Type::Bool,
    Type::I64,
    Type::U64,
    Type::F64,
    Type::Str,
    Type::Pointer,
    Type::Json,
    Type::List,
    Type::Dict,
];

type Shape = Box<[(StrId, Type)]>;

/// All arguments of a trace: see the module.
#[derive(Default)]
pub struct Args {
    shapes: Vec<Shape>,
    shape_numbers: HashTable<u32>,
    /// Shapes that are likely, by their length, first and last name.
    likely: [u32; LIKELY],
    sets: Vec<u8>,
    /// Offset and length of recent sets, by hash.
    recent: Vec<(u32, u32)>,
    lists: Vec<u8>,
    /// Offset and length of all lists.
    list_places: HashTable<(u32, u32)>,
    /// The set or list being packed.
    scratch: Vec<u8>,
    hasher: DefaultHashBuilder,
    unstored: u64,
}

/// How many shapes are likely.
const LIKELY: usize = 32;

/// Sets that a new one is compared with.
const RECENT: usize = 1 << 12;

/// Which of them. The same in every run, so that equal files become equal traces.
#[inline]
fn place_of(packed: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = packed.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut hash = packed.len() as u64;
    for word in words.iter().chain([&last]) {
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    (hash >> 52) as usize % RECENT
}

impl Args {
    /// How deep lists and dictionaries may lie in each other. Readers replace what is
    /// deeper, so that code that walks values may recurse.
    pub const MAX_DEPTH: usize = 64;

    /// Stores a set; `None` for an empty one. Names may repeat.
    pub fn add(&mut self, entries: &[(StrId, Value)]) -> Option<ArgsId> {
        if entries.is_empty() {
            return None;
        }
        let shape = self.shape(entries);
        let mut packed = std::mem::take(&mut self.scratch);
        packed.clear();
        put_varint(&mut packed, shape.into());
        for (_, value) in entries {
            put_value(&mut packed, *value);
        }
        let id = self.store_set(&packed);
        self.scratch = packed;
        id
    }

    /// A set with the entries of both; those of `second` come after those of `first`, unless
    /// they are there already.
    pub fn join(&mut self, first: Option<ArgsId>, second: Option<ArgsId>) -> Option<ArgsId> {
        match (first, second) {
            (one, None) | (None, one) => one,
            _ => {
                let mut all: Vec<_> = self.entries(first).collect();
                let own = all.len();
                let new = self.entries(second).filter(|entry| !all[..own].contains(entry));
                let new: Vec<_> = new.collect();
                all.extend(new);
                self.add(&all)
            }
        }
    }

    /// Stores a list.
    pub fn list(&mut self, items: &[Value]) -> Value {
        let mut packed = std::mem::take(&mut self.scratch);
        packed.clear();
        put_varint(&mut packed, items.len() as u64);
        for value in items {
            packed.push(type_of(*value) as u8);
            put_value(&mut packed, *value);
        }
        let id = self.store_list(&packed);
        self.scratch = packed;
        id.map_or(Value::Null, Value::List)
    }

    /// Stores a dictionary. Names may repeat.
    pub fn dict(&mut self, entries: &[(StrId, Value)]) -> Value {
        let mut packed = std::mem::take(&mut self.scratch);
        packed.clear();
        put_varint(&mut packed, entries.len() as u64);
        for (name, value) in entries {
            packed.push(type_of(*value) as u8);
            put_varint(&mut packed, name.0.into());
            put_value(&mut packed, *value);
        }
        let id = self.store_list(&packed);
        self.scratch = packed;
        id.map_or(Value::Null, Value::Dict)
    }

    /// The names and values of a set, in the order in which they were given.
    #[inline]
    pub fn entries(&self, set: Option<ArgsId>) -> Entries<'_> {
        let read = || {
            let mut bytes = self.sets.get(set?.index()..)?;
            let shape = take_varint(&mut bytes)?;
            Some(Entries::Set(self.shapes.get(shape as usize)?.iter(), bytes))
        };
        read().unwrap_or(Entries::Dict(0, &[]))
    }

    /// Hands on the names and values of a set, as [`Args::entries`] gives them. For those who read very
    /// many: a value does not pass through memory, where what was written in parts is slow to read
    /// as a whole.
    #[inline(always)]
    pub(crate) fn each(&self, set: Option<ArgsId>, mut take: impl FnMut(StrId, Value)) {
        let Entries::Set(shape, mut bytes) = self.entries(set) else { return };
        for (name, ty) in shape {
            let Some(value) = unpack(&mut bytes, *ty) else { return };
            take(*name, value);
        }
    }

    /// The names and values of a [`Value::Dict`].
    pub fn entries_of(&self, dict: ListId) -> Entries<'_> {
        let Items { left, bytes } = self.items(dict);
        Entries::Dict(left, bytes)
    }

    /// The values of a [`Value::List`].
    pub fn items(&self, list: ListId) -> Items<'_> {
        let mut bytes = self.lists.get(list.index()..).unwrap_or_default();
        let left = take_varint(&mut bytes).unwrap_or(0);
        Items { left, bytes }
    }

    /// The first value of that name. Those who ask many sets for one name take a [`Finder`].
    pub fn find(&self, set: Option<ArgsId>, name: StrId) -> Option<Value> {
        let mut bytes = self.sets.get(set?.index()..)?;
        let shape = self.shapes.get(take_varint(&mut bytes)? as usize)?;
        // Most sets that are asked do not have it, which their shape says: nothing is unpacked.
        let at = shape.iter().position(|(own, _)| *own == name)?;
        for skip in skips(&shape[..at]) {
            bytes = skip.after(bytes)?;
        }
        take_value(&mut bytes, shape[at].1)
    }

    /// Whether a set has a value of one of these names. Nothing is unpacked for that.
    pub fn has_any(&self, set: Option<ArgsId>, names: &[StrId]) -> bool {
        let shape = || {
            let mut bytes = self.sets.get(set?.index()..)?;
            self.shapes.get(take_varint(&mut bytes)? as usize)
        };
        shape().is_some_and(|shape| shape.iter().any(|(name, _)| names.contains(name)))
    }

    /// Sets and lists that found no room: each kind may take 4 GiB.
    pub fn unstored(&self) -> u64 {
        self.unstored
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let shapes: usize = self.shapes.iter().map(|s| 16 + s.len() * 8).sum();
        let lists = self.lists.capacity() + self.list_places.capacity() * 9;
        self.sets.capacity() + self.recent.capacity() * 8 + shapes + lists
    }

    /// The number of a shape. Most are one of those that came before with the same first and last
    /// name, which is faster to find out than a hash of all of it.
    #[inline]
    fn shape(&mut self, entries: &[(StrId, Value)]) -> u32 {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return 0 };
        let place =
            (first.0.0.wrapping_mul(31) ^ last.0.0.wrapping_mul(7)) as usize + entries.len();
        let place = place % LIKELY;
        if let Some(shape) = self.shapes.get(self.likely[place] as usize)
            && shape.len() == entries.len()
            && shape
                .iter()
                .zip(entries)
                .all(|(known, (name, value))| *known == (*name, type_of(*value)))
        {
            return self.likely[place];
        }
        let number = self.find_shape(entries);
        self.likely[place] = number;
        number
    }

    fn find_shape(&mut self, entries: &[(StrId, Value)]) -> u32 {
        let key = || entries.iter().map(|(name, value)| (*name, type_of(*value)));
        let hash = self.hash_shape(key());
        let same = |&n: &u32| self.shapes[n as usize].iter().copied().eq(key());
        if let Some(&number) = self.shape_numbers.find(hash, same) {
            return number;
        }
        let number = self.shapes.len() as u32;
        self.shapes.push(key().collect());
        let hasher = self.hasher.clone();
        let shapes = &self.shapes;
        self.shape_numbers.insert_unique(hash, number, |&n| {
            hash_with(&hasher, shapes[n as usize].iter().copied())
        });
        number
    }

    fn hash_shape(&self, shape: impl Iterator<Item = (StrId, Type)>) -> u64 {
        hash_with(&self.hasher, shape)
    }

    fn store_set(&mut self, packed: &[u8]) -> Option<ArgsId> {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, 0));
        }
        let place = place_of(packed);
        let (start, len) = self.recent[place];
        let (start, end) = (start as usize, start as usize + len as usize);
        if len != 0 && self.sets.get(start..end) == Some(packed) {
            return Some(ArgsId::at(start));
        }
        let start = self.room(self.sets.len(), packed.len())?;
        self.sets.extend_from_slice(packed);
        self.recent[place] = (start, packed.len() as u32);
        Some(ArgsId::at(start as usize))
    }

    fn store_list(&mut self, packed: &[u8]) -> Option<ListId> {
        let hash = self.hasher.hash_one(packed);
        let lists = &self.lists;
        let at = |&(start, len): &(u32, u32)| &lists[start as usize..][..len as usize];
        if let Some(&(start, _)) = self.list_places.find(hash, |place| at(place) == packed) {
            return Some(ListId::at(start as usize));
        }
        let start = self.room(self.lists.len(), packed.len())?;
        self.lists.extend_from_slice(packed);
        let (lists, hasher) = (&self.lists, &self.hasher);
        let hash_of =
            |&(start, len): &(u32, u32)| hasher.hash_one(&lists[start as usize..][..len as usize]);
        self.list_places.insert_unique(hash, (start, packed.len() as u32), hash_of);
        Some(ListId::at(start as usize))
    }

    /// Where something of `len` bytes can be stored behind `used` bytes.
    fn room(&mut self, used: usize, len: usize) -> Option<u32> {
        let end = used.checked_add(len).filter(|end| *end < u32::MAX as usize);
        if end.is_none() {
            self.unstored += 1;
        }
        end.map(|_| used as u32)
    }
}

impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args")
            .field("shapes", &self.shapes.len())
            .field("set_bytes", &self.sets.len())
            .field("list_bytes", &self.lists.len())
            .finish_non_exhaustive()
    }
}

/// Names and values: see [`Args::entries`].
#[derive(Clone, Debug)]
pub enum Entries<'a> {
    #[doc(hidden)]
    Set(std::slice::Iter<'a, (StrId, Type)>, &'a [u8]),
    #[doc(hidden)]
    Dict(u64, &'a [u8]),
}

impl Iterator for Entries<'_> {
    type Item = (StrId, Value);

    #[inline]
    fn next(&mut self) -> Option<(StrId, Value)> {
        match self {
            Entries::Set(shape, bytes) => {
                let (name, ty) = shape.next()?;
                Some((*name, take_value(bytes, *ty)?))
            }
            Entries::Dict(left, bytes) => {
                *left = left.checked_sub(1)?;
                let ty = take_type(bytes)?;
                let name = StrId(take_varint(bytes)? as u32);
                Some((name, take_value(bytes, ty)?))
            }
        }
    }
}

/// Values: see [`Args::items`].
#[derive(Clone, Debug)]
pub struct Items<'a> {
    left: u64,
    bytes: &'a [u8],
}

impl Iterator for Items<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let ty = take_type(&mut self.bytes)?;
        take_value(&mut self.bytes, ty)
    }
}

fn hash_with(hasher: &DefaultHashBuilder, shape: impl Iterator<Item = (StrId, Type)>) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut state = hasher.build_hasher();
    for (name, ty) in shape {
        (u64::from(name.0) << 8 | ty as u64).hash(&mut state);
    }
    state.finish()
}

#[inline]
fn type_of(value: Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::I64(_) => Type::I64,
        Value::U64(_) => Type::U64,
        Value::F64(_) => Type::F64,
        Value::Str(_) => Type::Str,
        Value::Pointer(_) => Type::Pointer,
        Value::Json(_) => Type::Json,
        Value::List(_) => Type::List,
        Value::Dict(_) => Type::Dict,
    }
}

#[inline]
fn put_value(out: &mut Vec<u8>, value: Value) {
    match value {
        Value::Null => {}
        Value::Bool(b) => out.push(b.into()),
        Value::I64(n) => put_varint(out, (n << 1 ^ n >> 63) as u64),
        Value::U64(n) | Value::Pointer(n) => put_varint(out, n),
        Value::F64(x) => out.extend_from_slice(&x.to_bits().to_le_bytes()),
        Value::Str(id) | Value::Json(id) => put_varint(out, id.0.into()),
        Value::List(id) | Value::Dict(id) => put_varint(out, id.index() as u64),
    }
}

#[inline]
fn take_value(bytes: &mut &[u8], ty: Type) -> Option<Value> {
    unpack(bytes, ty)
}

#[inline(always)]
fn unpack(bytes: &mut &[u8], ty: Type) -> Option<Value> {
    Some(match ty {
        Type::Null => Value::Null,
        Type::Bool => Value::Bool(take_byte(bytes)? != 0),
        Type::I64 => {
            let n = take_varint(bytes)?;
            Value::I64((n >> 1) as i64 ^ -((n & 1) as i64))
        }
        Type::U64 => Value::U64(take_varint(bytes)?),
        Type::Pointer => Value::Pointer(take_varint(bytes)?),
        Type::F64 => {
            let (bits, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Value::F64(f64::from_bits(u64::from_le_bytes(*bits)))
        }
        Type::Str => Value::Str(StrId(take_varint(bytes)? as u32)),
        Type::Json => Value::Json(StrId(take_varint(bytes)? as u32)),
        Type::List => Value::List(ListId::at(take_varint(bytes)? as usize)),
        Type::Dict => Value::Dict(ListId::at(take_varint(bytes)? as usize)),
    })
}

fn take_type(bytes: &mut &[u8]) -> Option<Type> {
    TYPES.get(take_byte(bytes)? as usize).copied()
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

#[inline]
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    if let Some((&byte @ ..0x80, rest)) = bytes.split_first() {
        *bytes = rest;
        return Some(byte.into());
    }
    take_long_varint(bytes)
}

fn take_long_varint(bytes: &mut &[u8]) -> Option<u64> {
    // One of at most eight bytes is taken at once: what is behind its last byte, the first below 0x80,
    // is cleared, and then the eighth bit of each byte is closed up.
    if let Some((word, _)) = bytes.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends != 0 {
            let own = word & (ends ^ (ends - 1));
            let pairs = own & 0x007f_007f_007f_007f | (own & 0x7f00_7f00_7f00_7f00) >> 1;
            let fours = pairs & 0x3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
            *bytes = &bytes[ends.trailing_zeros() as usize / 8 + 1..];
            return Some(fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4);
        }
    }
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = take_byte(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were_given() {
        let mut args = Args::default();
        let inner = args.list(&[Value::I64(-1), Value::Null, Value::F64(7.0)]);
        let empty = args.list(&[]);
        let list = args.list(&[inner, empty]);
        let dict = args.dict(&[(StrId(5), list), (StrId(6), Value::Bool(true))]);
        let given = [
            (StrId(1), Value::Bool(false)),
            (StrId(2), Value::I64(i64::MIN)),
            (StrId(3), Value::I64(i64::MAX)),
            (StrId(4), Value::U64(u64::MAX)),
            (StrId(1), Value::F64(-0.0)),
            (StrId(2), Value::Str(StrId(70_000))),
            (StrId(3), Value::Pointer(u64::MAX)),
            (StrId(4), Value::Json(StrId(1))),
            (StrId(5), dict),
            (StrId(6), Value::Null),
        ];
        let set = args.add(&given);
        assert_eq!(args.entries(set).collect::<Vec<_>>(), given);
        let Value::Dict(dict) = dict else { panic!("{dict:?}") };
        let entries: Vec<_> = args.entries_of(dict).collect();
        assert_eq!(entries, [(StrId(5), list), (StrId(6), Value::Bool(true))]);
        let Value::List(list) = list else { panic!("{list:?}") };
        assert_eq!(args.items(list).collect::<Vec<_>>(), [inner, empty]);
        for (name, value) in &given[..4] {
            let at = given.iter().position(|(own, _)| own == name).unwrap();
            assert_eq!(args.find(set, *name), Some(given[at].1), "{value:?}");
        }
        for name in 0..8 {
            let name = StrId(name);
            assert_eq!(args.finder(name).find(&args, set), args.find(set, name));
        }
        assert!(args.has_any(set, &[StrId(9), StrId(6)]) && !args.has_any(set, &[StrId(9)]));
        assert!(!args.has_any(None, &[StrId(1)]));
        assert_eq!(args.add(&[]), None);
    }

    #[test]
    fn equal_sets_and_lists_are_stored_once() {
        let mut args = Args::default();
        let a = args.list(&[Value::I64(1)]);
        assert_eq!(a, args.list(&[Value::I64(1)]));
        assert_ne!(a, args.list(&[Value::U64(1)]));
        let set = args.add(&[(StrId(1), a)]);
        assert_eq!(set, args.add(&[(StrId(1), a)]));
        assert_ne!(set, args.add(&[(StrId(2), a)]));
    }

    #[test]
    fn handles_of_another_trace_do_no_harm() {
        let mut args = Args::default();
        args.add(&[(StrId(1), Value::F64(1.0)), (StrId(2), Value::U64(u64::MAX))]);
        for at in 0..40 {
            args.entries(Some(ArgsId::at(at))).for_each(drop);
            args.items(ListId::at(at)).for_each(drop);
            args.entries_of(ListId::at(at)).for_each(drop);
            for name in 0..3 {
                let (id, name) = (Some(ArgsId::at(at)), StrId(name));
                // As texts, since what is read there may be no number, which equals nothing.
                let found = [args.finder(name).find(&args, id), args.find(id, name)];
                assert_eq!(format!("{:?}", found[0]), format!("{:?}", found[1]));
            }
        }
    }
}
