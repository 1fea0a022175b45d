//! Values of one name in many sets.

use super::{Args, Type, Value, take_value, take_varint};
use crate::trace::{ArgsId, StrId};

/// Where the values of one name are: see [`Args::finder`]. It is of no use for sets that are stored
/// later.
#[derive(Clone, Debug)]
pub struct Finder {
    /// By shape: which of `skips` lie before the value, and its type; none if it has no such name.
    places: Vec<Option<(u32, u32, Type)>>,
    skips: Vec<Skip>,
}

impl Finder {
    /// What [`Args::find`] gives for the name.
    #[inline]
    pub fn find(&self, args: &Args, set: Option<ArgsId>) -> Option<Value> {
        let mut bytes = args.sets.get(set?.index()..)?;
        let (first, end, ty) = (*self.places.get(take_varint(&mut bytes)? as usize)?)?;
        for skip in &self.skips[first as usize..end as usize] {
            bytes = skip.after(bytes)?;
        }
        take_value(&mut bytes, ty)
    }
}

/// Values to pass over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skip {
    /// So many varints.
    Varints(u32),
    /// So many bytes.
    Bytes(u32),
}

/// How to pass over the values of a shape.
pub(super) fn skips(shape: &[(StrId, Type)]) -> impl Iterator<Item = Skip> + '_ {
    let kind = |ty: Type| match ty {
        Type::Null => None,
        Type::F64 => Some(true),
        // A truth value is 0 or 1, which is a varint, too.
        _ => Some(false),
    };
    let same = move |a: &(StrId, Type), b: &(StrId, Type)| kind(a.1) == kind(b.1);
    shape.chunk_by(same).filter_map(move |run| {
        let count = run.len() as u32;
        Some(if kind(run[0].1)? { Skip::Bytes(count * 8) } else { Skip::Varints(count) })
    })
}

impl Skip {
    /// What comes behind them.
    #[inline]
    pub(super) fn after(self, bytes: &[u8]) -> Option<&[u8]> {
        match self {
            Skip::Varints(count) => after_varints(bytes, count),
            Skip::Bytes(count) => bytes.get(count as usize..),
        }
    }
}

/// What comes behind so many varints: their last bytes are below 0x80, and are counted eight at a
/// time.
#[inline]
fn after_varints(mut bytes: &[u8], mut count: u32) -> Option<&[u8]> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const ONES: u64 = 0x0101_0101_0101_0101;
    while let Some((word, rest)) = bytes.split_first_chunk::<8>() {
        let mut ends = !u64::from_le_bytes(*word) & HIGH;
        // The sum of the ones of all bytes is in the highest one.
        let own = ((ends >> 7).wrapping_mul(ONES) >> 56) as u32;
        if own < count {
            count -= own;
            bytes = rest;
            continue;
        }
        for _ in 1..count {
            ends &= ends - 1;
        }
        return bytes.get(ends.trailing_zeros() as usize / 8 + 1..);
    }
    for _ in 0..count {
        bytes = &bytes[bytes.iter().position(|byte| *byte < 0x80)? + 1..];
    }
    Some(bytes)
}

impl Args {
    /// Finds values of one name, see [`Args::find`].
    pub fn finder(&self, name: StrId) -> Finder {
        let mut finder =
            Finder { places: Vec::with_capacity(self.shapes.len()), skips: Vec::new() };
        for shape in &self.shapes {
            let place = shape.iter().position(|(own, _)| *own == name).map(|at| {
                let first = finder.skips.len() as u32;
                finder.skips.extend(skips(&shape[..at]));
                (first, finder.skips.len() as u32, shape[at].1)
            });
            finder.places.push(place);
        }
        finder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_behind_many_others_are_found() {
        let mut args = Args::default();
        let long = [0, 127, 128, 1 << 20, 1 << 40, u64::MAX, 1 << 13].map(Value::U64);
        let others = [Value::F64(1.5), Value::Null, Value::Bool(true)];
        for count in 0..40 {
            let of = |n: usize| match n % 5 {
                4 => others[n / 5 % 3],
                _ => long[n % 7],
            };
            let mut all: Vec<_> = (0..count).map(|n| (StrId(n as u32 + 2), of(n))).collect();
            all.push((StrId(1), Value::U64(4711)));
            let set = args.add(&all);
            for (name, value) in all {
                assert_eq!(args.find(set, name), Some(value), "{count}");
                assert_eq!(args.finder(name).find(&args, set), Some(value), "{count}");
            }
        }
    }
}
