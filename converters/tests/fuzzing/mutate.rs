//! Bytes made from other bytes: some as damage does it, some with respect for the format, so
//! that what lies deep within is reached, too.

#[path = "pieces.rs"]
mod pieces;

use pieces::PIECES;
use serde_json::Value;

/// Numbers that look random and are the same for the same seed: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Numbers at which something changes.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    63,
    127,
    128,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 53) + 1,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// One to six changes to one of the seeds.
pub fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = random.of(seeds).clone();
    for _ in 0..=random.below(6) {
        let looks_like_json = matches!(bytes.first(), Some(b'{' | b'[' | b' ' | b'\n'));
        match (random.below(4), looks_like_json) {
            (0, _) => damage(&mut bytes, random),
            (1, _) => {
                let other = random.of(seeds);
                splice(&mut bytes, other, random);
            }
            (_, true) => json(&mut bytes, random),
            (_, false) => bytes = message(&bytes, random, 0),
        }
        // Changes may double.
        bytes.truncate(256 << 10);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    let end = (at + random.below(200)).min(bytes.len());
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        3 => {
            let piece = random.of(&PIECES).bytes();
            bytes.splice(at..at, piece);
        }
        4 => {
            let number = random.of(&NUMBERS).to_string();
            bytes.splice(at..at, number.into_bytes());
        }
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (random.next() & 7)),
    }
}

/// A piece of another seed takes the place of one.
fn splice(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let (at, from) = (random.below(bytes.len()), random.below(other.len()));
    let end = (at + random.below(500)).min(bytes.len());
    let to = (from + random.below(500)).min(other.len());
    bytes.splice(at..end, other[from..to].iter().copied());
}

/// A value somewhere in valid JSON becomes another one; other bytes are damaged.
fn json(bytes: &mut Vec<u8>, random: &mut Random) {
    let Ok(mut root) = serde_json::from_slice::<Value>(bytes) else {
        return damage(bytes, random);
    };
    let mut value = &mut root;
    loop {
        let len = match &*value {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        };
        if len == 0 || random.below(8) == 0 {
            break;
        }
        let index = random.below(len);
        value = match value {
            Value::Array(items) => &mut items[index],
            Value::Object(entries) => entries.values_mut().nth(index).unwrap(),
            _ => break,
        };
    }
    *value = match random.below(8) {
        0 => Value::Null,
        1 => Value::from(*random.of(&NUMBERS)),
        2 => Value::from(*random.of(&NUMBERS) as i64),
        3 => Value::from(*random.of(&PIECES)),
        4 => Value::from(random.of(&NUMBERS).to_string()),
        5 => Value::from(1.5e300 * random.below(3) as f64),
        6 => Value::Array(vec![value.take(); 1 + random.below(3)]),
        _ => Value::from("XBEbeniIRCstfMP".chars().nth(random.below(15)).unwrap().to_string()),
    };
    *bytes = root.to_string().into_bytes();
}

/// A message of protobuf with another field somewhere in it; lengths are those of what is
/// there then.
fn message(bytes: &[u8], random: &mut Random, depth: usize) -> Vec<u8> {
    let Some(mut fields) = fields(bytes).filter(|fields| !fields.is_empty() && depth < 12) else {
        let mut bytes = bytes.to_vec();
        damage(&mut bytes, random);
        return bytes;
    };
    let at = random.below(fields.len());
    match (random.below(8), &fields[at].1) {
        (0, _) => drop(fields.remove(at)),
        (1, _) => fields.insert(at, fields[at].clone()),
        (2, _) => fields[at].0 = fields[at].0 & 7 | (1 + random.next() % 150) << 3,
        (3, _) => {
            let other = random.below(fields.len());
            fields.swap(at, other);
        }
        (_, Field::Bytes(inner)) => fields[at].1 = Field::Bytes(message(inner, random, depth + 1)),
        (_, Field::Number(_)) => fields[at].1 = Field::Number(*random.of(&NUMBERS)),
        (_, Field::Fixed(bits)) => {
            let bits = bits.iter().map(|byte| byte ^ (random.next() as u8)).collect();
            fields[at].1 = Field::Fixed(bits);
        }
    }
    let mut out = Vec::new();
    for (key, field) in &fields {
        put(&mut out, *key);
        match field {
            Field::Number(number) => put(&mut out, *number),
            Field::Fixed(bits) => out.extend(bits),
            Field::Bytes(bytes) => {
                put(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
        }
    }
    out
}

#[derive(Clone)]
enum Field {
    Number(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
}

/// All of it, if it looks like a message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = take(&mut bytes)?;
        let field = match key & 7 {
            0 => Field::Number(take(&mut bytes)?),
            1 => Field::Fixed(bytes.split_off(..8)?.to_vec()),
            2 => {
                let len = usize::try_from(take(&mut bytes)?).ok()?;
                Field::Bytes(bytes.split_off(..len)?.to_vec())
            }
            5 => Field::Fixed(bytes.split_off(..4)?.to_vec()),
            _ => return None,
        };
        fields.push((key, field));
    }
    Some(fields)
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
