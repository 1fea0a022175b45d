//! A session of perfetto-sdk's, in the process.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;

/// Starts to record track events of these categories, into a buffer of this size.
pub fn start(categories: &str, kilobytes: u32) -> TracingSession {
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&config(categories, kilobytes));
    session.start_blocking();
    session
}

/// Writes what was recorded into a new file.
pub fn write(session: &mut TracingSession, path: &Path) {
    let file = Arc::new(Mutex::new(std::fs::File::create(path).expect("a file")));
    session.read_trace_blocking(move |data, _| {
        file.lock().expect("no panic").write_all(data).expect("room");
    });
}

fn config(categories: &str, kilobytes: u32) -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffers: &mut TraceConfigBufferConfig| {
            buffers.set_size_kb(kilobytes);
        });
        config.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories(categories);
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    bytes
}
