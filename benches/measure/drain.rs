//! Draining a thread's queue on the thread itself: the raw half of what the engine does,
//! paid for by the core that is measured. Only while the engine is held (see `gate`).

use kymograph::queue::{self, Drained, POOL, Reader};
use kymograph_protos::record::Slot;

pub struct Drain {
    reader: Reader,
    slots: Vec<Slot>,
}

impl Drain {
    /// Of this thread, which has recorded something.
    pub fn here() -> Drain {
        let me = kymograph_backends::environment::gettid() as u32;
        let mut lanes = (0..POOL.lanes_used()).filter_map(|lane| Reader::open(&POOL, lane));
        let reader = lanes.find(|reader| reader.tid() == me).expect("this thread records");
        Drain { reader, slots: Vec::new() }
    }

    /// Copies everything recorded to a buffer. Returns how many slots that were.
    #[inline(never)]
    pub fn all(&mut self) -> usize {
        self.slots.clear();
        self.reader.drain(&POOL, &mut self.slots, usize::MAX);
        std::hint::black_box(&mut self.slots).len()
    }

    /// How many events found no room.
    pub fn dropped(&self) -> u64 {
        self.reader.losses().dropped
    }

    /// Gives the queue back, so that the engine, once released, finds nothing.
    pub fn end(mut self) {
        queue::retire_thread();
        while self.reader.drain(&POOL, &mut self.slots, usize::MAX) != Drained::Ended {}
    }
}
