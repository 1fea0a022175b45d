//! perfetto-sdk: Perfetto's own, in C++, through its Rust bindings.

use std::path::Path;

use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::track_event::{
    EventContext, TrackEvent, TrackEventCounter, TrackEventDebugArg as Arg, TrackEventFlow,
    TrackEventTrack, TrackEventType,
};
use perfetto_sdk::{scoped_track_event, track_event, track_event_categories, track_event_instant};

use crate::session;

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
    let mut recording = session::start("*", 1 << 10);
    work();
    std::thread::spawn(|| {
        scoped_track_event!("work", "receive", |ctx: &mut EventContext| {
            ctx.set_terminating_flow(&TrackEventFlow::process_scoped_flow(9));
        });
    })
    .join()
    .expect("no panic");
    recording.flush_blocking(std::time::Duration::from_secs(10));
    recording.stop_blocking();
    session::write(&mut recording, path);
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
