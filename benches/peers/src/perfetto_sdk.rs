//! perfetto-sdk: Perfetto's own, in C++, through its Rust bindings.

use std::hint::black_box;
use std::io::Write;
use std::sync::{Arc, Mutex};

use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{EventContext, TrackEvent, TrackEventDebugArg};
use perfetto_sdk::{scoped_track_event, track_event_categories};

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
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&config());
    session.start_blocking();
    let (nanos, _) = work.on_threads(|batches| {
        batches.run(|scopes| {
            for n in 0..scopes {
                scoped_track_event!("bench", "step", |ctx: &mut EventContext| {
                    ctx.add_debug_arg("n", TrackEventDebugArg::Uint64(black_box(n)));
                });
            }
        });
    });
    session.stop_blocking();
    let output = Output::new();
    let file = Arc::new(Mutex::new(std::fs::File::create(output.path()).expect("a file")));
    session.read_trace_blocking(move |data, _| {
        file.lock().expect("no panic").write_all(data).expect("room");
    });
    Outcome { nanos, bytes: output.bytes(), arrived: output.slices() }
}

/// Track events, into a buffer that takes them all.
fn config() -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffers: &mut TraceConfigBufferConfig| {
            buffers.set_size_kb(256 << 10);
        });
        config.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories("bench");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    bytes
}
