//! Parquet's hybrid of runs and packed bits, for levels and for numbers in a dictionary.

use super::thrift::varint;

/// Bits that numbers up to this one need.
pub(super) fn width_of(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}

/// Appends numbers of `width` bits: eight or more equal ones as a run, others packed by eights.
pub(super) fn write(out: &mut Vec<u8>, numbers: &[u32], width: u32) {
    let (mut packed, mut next) = (0, 0);
    while next < numbers.len() {
        let rest = &numbers[next..];
        let run = rest.iter().take_while(|number| **number == rest[0]).count();
        if run < 8 {
            // What is packed before a run is whole eights; only the last eight may be filled up.
            next = numbers.len().min(next + 8);
            continue;
        }
        pack(out, &numbers[packed..next], width);
        varint(out, (run as u64) << 1);
        out.extend_from_slice(&rest[0].to_le_bytes()[..width.div_ceil(8) as usize]);
        next += run;
        packed = next;
    }
    pack(out, &numbers[packed..], width);
}

fn pack(out: &mut Vec<u8>, numbers: &[u32], width: u32) {
    if numbers.is_empty() {
        return;
    }
    let eights = numbers.len().div_ceil(8);
    varint(out, (eights as u64) << 1 | 1);
    let end = out.len() + eights * width as usize;
    let (mut bits, mut held) = (0_u64, 0);
    for number in numbers {
        bits |= u64::from(*number) << held;
        held += width;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits as u8);
    }
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// What a reader makes of it, as the format describes it.
    fn read(mut bytes: &[u8], count: usize, width: u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let head = read_varint(&mut bytes);
            if head & 1 == 0 {
                let mut value = [0; 4];
                let size = width.div_ceil(8) as usize;
                value[..size].copy_from_slice(&bytes[..size]);
                bytes = &bytes[size..];
                numbers.extend(vec![u32::from_le_bytes(value); (head >> 1) as usize]);
                assert!(numbers.len() <= count, "only packed numbers are filled up");
            } else {
                let eights = (head >> 1) as usize;
                let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
                for n in 0..eights * 8 {
                    let at = n * width as usize;
                    numbers.push((0..width).map(|i| bit(at + i as usize) << i).sum());
                }
                bytes = &bytes[eights * width as usize..];
            }
        }
        assert!(bytes.is_empty() && numbers[count..].iter().all(|number| *number == 0));
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn widths() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256].map(width_of), [0, 1, 2, 2, 3, 8, 9]);
    }

    proptest! {
        #[test]
        fn readers_get_the_numbers_back(
            runs in prop::collection::vec((any::<u32>(), 1_usize..30), 0..40),
            width in 0_u32..=20,
        ) {
            let mask = (1_u32 << width) - 1;
            let numbers: Vec<u32> = runs
                .iter()
                .flat_map(|(value, times)| std::iter::repeat_n(value & mask, *times))
                .collect();
            let mut out = Vec::new();
            write(&mut out, &numbers, width);
            prop_assert_eq!(read(&out, numbers.len(), width), numbers);
        }
    }
}
