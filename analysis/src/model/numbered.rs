//! Values by the numbers that a trace has for events: correlation numbers, `External id`.

use hashbrown::HashMap;

/// A value for each number. Mostly such numbers are counted from 1, so that they can be places.
#[derive(Clone, Debug)]
pub(crate) enum Numbered<T> {
    Places(Vec<T>, T),
    Any(HashMap<i64, T>, T),
}

impl<T: Copy> Numbered<T> {
    /// All have the value `none`. `numbers` are those that will get another one, of `events` events.
    pub(crate) fn new(none: T, numbers: impl Iterator<Item = i64>, events: usize) -> Numbered<T> {
        let ends = |(least, most): (i64, i64), number: i64| (least.min(number), most.max(number));
        match numbers.fold((0, 0), ends) {
            (0, most) if most as u64 <= 4 * events as u64 => {
                Numbered::Places(vec![none; most as usize + 1], none)
            }
            _ => Numbered::Any(HashMap::new(), none),
        }
    }

    /// The value of a number, to be changed. It is one of those that the table was made for.
    #[inline]
    pub(crate) fn at(&mut self, number: i64) -> &mut T {
        match self {
            Numbered::Places(places, spare) => {
                places.get_mut(number as u64 as usize).unwrap_or(spare)
            }
            Numbered::Any(any, none) => any.entry(number).or_insert(*none),
        }
    }

    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, number: i64) -> T {
        match self {
            Numbered::Places(places, none) => {
                places.get(number as u64 as usize).copied().unwrap_or(*none)
            }
            Numbered::Any(any, none) => any.get(&number).copied().unwrap_or(*none),
        }
    }

    /// All numbers with their values, in any order; those that have got none may be among them.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (i64, T)> + '_> {
        match self {
            Numbered::Places(places, _) => Box::new((0..).zip(places.iter().copied())),
            Numbered::Any(any, _) => Box::new(any.iter().map(|(number, value)| (*number, *value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_near_zero_and_any_others_have_their_values() {
        for numbers in [&[1, 2, 7][..], &[0], &[], &[-1, 5], &[1 << 62, i64::MIN, i64::MAX]] {
            let mut table = Numbered::new(0, numbers.iter().copied(), 3);
            for (value, number) in (1..).zip(numbers) {
                *table.at(*number) = value;
            }
            for (value, number) in (1..).zip(numbers) {
                assert_eq!(table.get(*number), value);
            }
            assert_eq!([table.get(3), table.get(-2), table.get(1 << 40)], [0; 3]);
            let mut found: Vec<_> = table.iter().filter(|(_, value)| *value != 0).collect();
            found.sort_by_key(|(_, value)| *value);
            assert!(found.iter().map(|(number, _)| number).eq(numbers));
        }
    }
}
