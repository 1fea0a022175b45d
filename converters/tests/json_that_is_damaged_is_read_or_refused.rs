//! Whatever happens to a trace in JSON on its way, reading it ends, without a panic, and what
//! was read can be written as valid JSON that is read again with as many events.

#[path = "fuzzing/pieces.rs"]
mod pieces;

use kymograph_converters::json::Limits;
use kymograph_converters::{chrome, kineto};
use pieces::PIECES;
use proptest::prelude::*;
use std::io::Read;

const SEEDS: [&str; 4] = [
    include_str!("data/kineto_cuda.json"),
    include_str!("data/kineto_xpu.json"),
    include_str!("data/chrome.json"),
    include_str!("data/kineto_broken.json"),
];

#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    Repeat(prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let piece = prop_oneof![
        prop::sample::select(&PIECES[..]).prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop_oneof![
        at().prop_map(Damage::Cut),
        (at(), 1..200usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        (at(), piece).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (at(), 1..2000usize).prop_map(|(at, len)| Damage::Repeat(at, len)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    match damage {
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Remove(at, len) => {
            let at = at.index(bytes.len());
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Damage::Insert(at, piece) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, piece.iter().copied());
        }
        Damage::Repeat(at, len) => {
            let at = at.index(bytes.len());
            let piece = bytes[at..(at + len).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

/// Gives a few bytes at a time, so that elements straddle reads.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let len = self.0.len().min(self.1).min(to.len());
        to[..len].copy_from_slice(&self.0[..len]);
        self.0 = &self.0[len..];
        Ok(len)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn after_any_damage(
        seed in 0..SEEDS.len(),
        damages in prop::collection::vec(damage(), 1..6),
        step in 1..5000usize,
    ) {
        let mut bytes = SEEDS[seed].as_bytes().to_vec();
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        let read = chrome::read(&bytes[..], &Limits::default());
        let dribbled = chrome::read(Dribble(&bytes, step), &Limits::default());
        prop_assert_eq!(read.is_ok(), dribbled.is_ok());
        let (Ok(trace), Ok(dribbled)) = (read, dribbled) else { return Ok(()) };
        prop_assert_eq!(&trace.facts.kinds, &dribbled.facts.kinds);
        prop_assert_eq!(&trace.facts.warnings, &dribbled.facts.warnings);
        let mut out = Vec::new();
        kineto::write(&trace, &mut out).unwrap();
        let text = std::str::from_utf8(&out).unwrap();
        let valid = serde_json::from_str::<serde::de::IgnoredAny>(text);
        prop_assert!(valid.is_ok(), "{:?}\n{}", valid.err(), text);
        let Ok(again) = chrome::read(&out[..], &Limits::default()) else {
            // Its only event lost its phase, say. What is left is no trace.
            let events = trace.slices.len() + trace.activities.len() + trace.instants.len();
            prop_assert_eq!(events, 0);
            return Ok(());
        };
        prop_assert_eq!(trace.slices.len(), again.slices.len());
        prop_assert_eq!(trace.activities.len(), again.activities.len());
        prop_assert_eq!(trace.instants.len(), again.instants.len());
    }
}
