//! perfetto-sdk: Perfetto's own, in C++, through its Rust bindings.

use std::hint::black_box;

use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::track_event::{EventContext, TrackEvent, TrackEventDebugArg};
use perfetto_sdk::{scoped_track_event, track_event_categories};

use crate::session;
use crate::work::{Outcome, Output, Work};

track_event_categories! {
    pub mod categories {
        ( "bench", "All there is", [ "tag" ] ),
    }
}
use categories as perfetto_te_ns;

pub fn run(work: &Work) -> Outcome {
    // The largest shared memory that it allows: with less, it loses events.
    let args =
        ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).shmem_size_hint_kb(32 << 10);
    Producer::init(args.build());
    TrackEvent::init();
    perfetto_te_ns::register().expect("the first time");
    // A buffer that takes them all.
    let mut recording = session::start("bench", 256 << 10);
    let (nanos, _) = work.on_threads(|batches| {
        batches.run(|scopes| {
            for n in 0..scopes {
                scoped_track_event!("bench", "step", |ctx: &mut EventContext| {
                    ctx.add_debug_arg("n", TrackEventDebugArg::Uint64(black_box(n)));
                });
            }
        });
    });
    recording.stop_blocking();
    let output = Output::new();
    session::write(&mut recording, &output.path());
    Outcome { nanos, bytes: output.bytes(), arrived: output.slices() }
}
