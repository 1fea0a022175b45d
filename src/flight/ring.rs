//! The segments that are kept.

use std::collections::VecDeque;
use std::io;

use super::pages::Pages;

/// See the module above.
const LEVEL: i32 = -1;
/// What the compressor takes while it runs: tables, and the sequences of a block of 128 KiB.
const COMPRESSOR: usize = 1 << 20;

/// A stretch of the recording, compressed: see the module above.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Preamble and body, one after the other.
    memory: Pages,
    preamble: Part,
    body: Part,
    /// Its place in the recording, from 0.
    pub number: u64,
    /// When it began and ended, in nanoseconds of `CLOCK_BOOTTIME`. All that was recorded
    /// before it ended and is not in it is in the segments before.
    pub begun: u64,
    pub ended: u64,
    /// Events in it.
    pub events: u64,
    /// Events lost before it began.
    pub lost_before: u64,
}

/// Bytes of a segment, before and after compression.
#[derive(Clone, Copy, Debug)]
struct Part {
    plain: usize,
    packed: usize,
}

impl Segment {
    /// Compresses what was encoded.
    pub(crate) fn pack(preamble: &[u8], body: &[u8]) -> io::Result<Segment> {
        let most = zstd::zstd_safe::compress_bound;
        let mut memory = Pages::new(most(preamble.len()) + most(body.len()))?;
        let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
        let mut at = 0;
        let mut part = |plain: &[u8]| -> io::Result<Part> {
            let packed = packer.compress_to_buffer(plain, &mut memory[at..])?;
            at += packed;
            Ok(Part { plain: plain.len(), packed })
        };
        let (preamble, body) = (part(preamble)?, part(body)?);
        memory.cut(at);
        Ok(Segment {
            memory,
            preamble,
            body,
            number: 0,
            begun: 0,
            ended: 0,
            events: 0,
            lost_before: 0,
        })
    }

    /// Appends its packets, the preamble's only if it is the `first` of a trace.
    pub(crate) fn unpack(&self, first: bool, out: &mut Vec<u8>) -> io::Result<()> {
        let (preamble, rest) = self.memory.split_at(self.preamble.packed);
        if first {
            append(preamble, self.preamble.plain, out)?;
        }
        append(&rest[..self.body.packed], self.body.plain, out)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        self.memory.mapped()
    }

    /// Bytes of packets that [`Segment::unpack`] makes at most.
    fn plain(&self) -> usize {
        self.preamble.plain + self.body.plain
    }
}

fn append(packed: &[u8], plain: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let at = out.len();
    out.try_reserve_exact(plain)?;
    out.resize(at + plain, 0);
    let unpacked = zstd::bulk::decompress_to_buffer(packed, &mut out[at..]);
    match unpacked {
        Ok(length) if length == plain => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a kept segment is damaged")),
    }
}

/// What may be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// Bytes, everything together.
    pub memory: usize,
    /// Bytes of these that are taken by packets not yet compressed.
    pub in_progress: usize,
    /// What ended before this time is too old.
    pub since: u64,
}

/// See the module above.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    segments: VecDeque<Segment>,
    mapped: usize,
    next: u64,
    /// Segments and events that had to go, for whatever reason.
    pub gone: u64,
    pub gone_events: u64,
}

impl Ring {
    /// Adds the newest one.
    pub(crate) fn push(&mut self, mut segment: Segment) {
        segment.number = self.next;
        self.next += 1;
        self.mapped += segment.memory.mapped();
        self.segments.push_back(segment);
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter()
    }

    /// The segment with this number, or the oldest after it.
    pub(crate) fn from(&self, number: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|segment| segment.number < number);
        self.segments.get(at)
    }

    /// Bytes that all of it takes now, and would take if a dump were written.
    pub(crate) fn bytes(&self) -> usize {
        let unpacked = self.segments.iter().map(Segment::plain).max().unwrap_or(0);
        self.mapped + unpacked + COMPRESSOR
    }

    /// The segment that has to go next, if one has to. The newest never does because of its
    /// age.
    pub(crate) fn excess(&self, share: Share) -> Option<&Segment> {
        let oldest = self.segments.front()?;
        let old = oldest.ended < share.since && self.segments.len() > 1;
        (old || self.is_over(share)).then_some(oldest)
    }

    /// Whether it takes more memory than it may.
    pub(crate) fn is_over(&self, share: Share) -> bool {
        self.bytes() + share.in_progress > share.memory
    }

    /// Lets the oldest one go.
    pub(crate) fn pop(&mut self) {
        if let Some(oldest) = self.segments.pop_front() {
            self.mapped -= oldest.memory.mapped();
            self.gone += 1;
            self.gone_events += oldest.events;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(body: &[u8], ended: u64) -> Segment {
        let mut segment = Segment::pack(b"what still holds", body).unwrap();
        (segment.ended, segment.events) = (ended, 1);
        segment
    }

    fn share(memory: usize, since: u64) -> Share {
        Share { memory, in_progress: 0, since }
    }

    #[test]
    fn a_segment_comes_back_as_it_was() {
        for body in [&b""[..], b"x", &[7; 100_000], &(0..=255).collect::<Vec<u8>>()] {
            let (mut first, mut later) = (Vec::new(), Vec::new());
            let segment = segment(body, 0);
            segment.unpack(true, &mut first).unwrap();
            segment.unpack(false, &mut later).unwrap();
            assert_eq!(first, [b"what still holds", body].concat());
            assert_eq!(later, body);
        }
    }

    #[test]
    fn the_oldest_goes_when_it_is_too_old_and_the_newest_stays() {
        let mut ring = Ring::default();
        for ended in [10, 20, 30] {
            ring.push(segment(b"body", ended));
        }
        let plenty = 1 << 30;
        assert!(ring.excess(share(plenty, 10)).is_none());
        while ring.excess(share(plenty, 1000)).is_some() {
            ring.pop();
        }
        let left: Vec<u64> = ring.segments().map(|segment| segment.number).collect();
        assert_eq!((left, ring.gone, ring.gone_events), (vec![2], 2, 2));
        assert_eq!(ring.from(0).unwrap().number, 2);
        assert!(ring.from(3).is_none());
    }

    #[test]
    fn memory_stays_within_its_bound() {
        let mut ring = Ring::default();
        let mut noise = 1u32;
        for ended in 0..100 {
            let body: Vec<u8> = std::iter::repeat_with(|| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            })
            .take(50_000)
            .collect();
            ring.push(segment(&body, ended));
            while ring.excess(share(2 << 20, 0)).is_some() {
                ring.pop();
            }
            assert!(ring.bytes() <= 2 << 20);
        }
        assert!(ring.segments().count() > 10, "most of the memory is used");
    }
}
