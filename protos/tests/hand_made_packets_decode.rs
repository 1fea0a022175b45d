//! Packets written by hand and packets written with our messages mean the same to Perfetto's
//! own schema as they do to ours.

mod schema;

use kymograph_protos::perfetto::{
    GpuRenderStageEvent, Trace, TracePacket, TrackEvent, gpu_render_stage_event::NameField,
    trace_packet::Data, trace_packet::OptionalTrustedPacketSequenceId::TrustedPacketSequenceId,
    track_event,
};
use prost::Message;
use prost_reflect::DynamicMessage;
use schema::Source;

/// The packet of a host slice that introduces its category, name and argument name.
const SLICE_BEGINS: &[u8] = b"\x0a\x41\x40\x00\x68\x02\x50\x07\
    \x62\x2b\x0a\x0a\x08\x01\x12\x06cpu_op\x12\x0c\x08\x01\x12\x08aten::mm\
    \x1a\x0f\x08\x01\x12\x0bExternal id\
    \x5a\x0c\x48\x01\x18\x01\x50\x01\x22\x04\x08\x01\x18\x05";

/// A trace in the words of Perfetto's schema. Panics if that leaves anything unknown.
fn as_perfetto_reads_it(trace: &[u8]) -> String {
    let pool = Source::find().pool;
    let message = pool.get_message_by_name("perfetto.protos.Trace").unwrap();
    let decoded = DynamicMessage::decode(message, trace).unwrap();
    let text = decoded.to_text_format();
    let packets = decoded.get_field_by_name("packet").unwrap();
    for packet in packets.as_list().unwrap() {
        let unknown = packet.as_message().unwrap().unknown_fields().count();
        assert_eq!(unknown, 0, "{text}");
    }
    text
}

#[test]
fn a_packet_written_by_hand_is_read_by_us() {
    let trace = Trace::decode(SLICE_BEGINS).unwrap();
    let [packet] = trace.packet.as_slice() else { panic!("{trace:?}") };
    assert_eq!(packet.timestamp, Some(0));
    assert_eq!(packet.sequence_flags, Some(2));
    assert_eq!(packet.optional_trusted_packet_sequence_id, Some(TrustedPacketSequenceId(7)));
    let interned = packet.interned_data.as_ref().unwrap();
    assert_eq!(interned.event_categories[0].name(), "cpu_op");
    assert_eq!(interned.event_names[0].name(), "aten::mm");
    assert_eq!(interned.debug_annotation_names[0].name(), "External id");
    let Some(Data::TrackEvent(event)) = &packet.data else { panic!("{packet:?}") };
    assert_eq!(event.r#type(), track_event::Type::SliceBegin);
    assert_eq!(event.name_field, Some(track_event::NameField::NameIid(1)));
}

#[test]
fn a_packet_written_by_hand_is_read_by_perfetto() {
    let text = as_perfetto_reads_it(SLICE_BEGINS);
    assert_eq!(
        text,
        "packet:[{timestamp:0,trusted_packet_sequence_id:7,\
         track_event{category_iids:[1],debug_annotations:[{name_iid:1,uint_value:5}],\
         type:TYPE_SLICE_BEGIN,name_iid:1},\
         interned_data{event_categories:[{iid:1,name:\"cpu_op\"}],\
         event_names:[{iid:1,name:\"aten::mm\"}],\
         debug_annotation_names:[{iid:1,name:\"External id\"}]},sequence_flags:2}]"
    );
}

#[test]
fn packets_written_with_our_messages_are_read_by_perfetto() {
    let flows = TrackEvent {
        flow_ids: vec![1, u64::MAX],
        extra_counter_values: vec![-1],
        ..Default::default()
    };
    let kernel = GpuRenderStageEvent {
        event_id: Some(1 << 32 | 77),
        duration: Some(40_000),
        hw_queue_iid: Some(100),
        name_field: None::<NameField>,
        ..Default::default()
    };
    let packet = |data| TracePacket { data: Some(data), ..Default::default() };
    let packet_list =
        vec![packet(Data::TrackEvent(flows)), packet(Data::GpuRenderStageEvent(kernel))];
    let trace = Trace { packet: packet_list };
    assert_eq!(
        as_perfetto_reads_it(&trace.encode_to_vec()),
        "packet:[{track_event{extra_counter_values:[-1],flow_ids:[1,18446744073709551615]}},\
         {gpu_render_stage_event{event_id:4294967373,duration:40000,hw_queue_iid:100}}]"
    );
}
