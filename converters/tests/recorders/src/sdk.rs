//! perfetto-sdk: Perfetto's own, in C++, through its Rust bindings.

use std::io::Write;
use std::path::Path;
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
use perfetto_sdk::track_event::{
    EventContext, TrackEvent, TrackEventCounter, TrackEventDebugArg as Arg, TrackEventFlow,
    TrackEventTrack, TrackEventType,
};
use perfetto_sdk::{scoped_track_event, track_event, track_event_categories, track_event_instant};

track_event_categories! {
    pub mod categories {
        ( "work", "What is done", [ "tag" ] ),
        ( "other", "What else is done", [] ),
    }
}
use categories as perfetto_te_ns;

pub fn record(path: &Path) {
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).build());
    TrackEvent::init();
    perfetto_te_ns::register().expect("the first time");
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&config());
    session.start_blocking();
    work();
    std::thread::spawn(|| {
        scoped_track_event!("work", "receive", |ctx: &mut EventContext| {
            ctx.set_terminating_flow(&TrackEventFlow::process_scoped_flow(9));
        });
    })
    .join()
    .expect("no panic");
    session.flush_blocking(std::time::Duration::from_secs(10));
    session.stop_blocking();
    let file = Arc::new(Mutex::new(std::fs::File::create(path).expect("a file")));
    session.read_trace_blocking(move |data, _| {
        file.lock().expect("no panic").write_all(data).expect("room");
    });
}

fn work() {
    scoped_track_event!("work", "outer", |ctx: &mut EventContext| {
        ctx.add_debug_arg("on", Arg::Bool(true));
        ctx.add_debug_arg("unsigned", Arg::Uint64(u64::MAX));
        ctx.add_debug_arg("signed", Arg::Int64(-3));
        ctx.add_debug_arg("share", Arg::Double(0.5));
        ctx.add_debug_arg("text", Arg::String("a \"quoted\" text"));
        ctx.add_debug_arg("address", Arg::Pointer(0xbeef));
    });
    for step in 0..3 {
        scoped_track_event!("other", "inner", |ctx: &mut EventContext| {
            ctx.add_debug_arg("step", Arg::Uint64(step));
        });
    }
    scoped_track_event!("work", "send", |ctx: &mut EventContext| {
        ctx.set_flow(&TrackEventFlow::process_scoped_flow(9));
    });
    track_event_instant!("work", "moment");
    let process = TrackEventTrack::process_track_uuid();
    let counter = TrackEventTrack::register_counter_track("load", process).expect("a track");
    for value in [0.25, 0.75] {
        track_event!("work", TrackEventType::Counter, |ctx: &mut EventContext| {
            ctx.set_track(&counter);
            ctx.set_counter(TrackEventCounter::Double(value));
        });
    }
    let own = TrackEventTrack::register_named_track("lane", 1, process).expect("a track");
    let name = c"on a track of its own";
    track_event!("work", TrackEventType::SliceBegin(name.as_ptr()), |ctx: &mut EventContext| {
        ctx.set_track(&own);
    });
    track_event!("work", TrackEventType::SliceEnd, |ctx: &mut EventContext| {
        ctx.set_track(&own);
    });
}

/// Track events of all categories.
fn config() -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffers: &mut TraceConfigBufferConfig| {
            buffers.set_size_kb(1 << 10);
        });
        config.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories("*");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    bytes
}
