//! The flight recorder: what it keeps, and when it writes a dump.

#[cfg(feature = "inject")]
mod a_dump_has_what_devices_had_finished;
mod a_dump_holds_what_happened_before_the_request;
mod a_dying_program_dumps_its_flight_recorder;
mod a_flight_recorder_is_read_at_any_moment;
#[cfg(feature = "inject")]
mod a_flight_recorder_is_written_before_exec;
mod a_flight_recorder_keeps_the_last_seconds;
#[cfg(feature = "inject")]
mod kymo_trigger_dumps_a_flight_recorder;
#[cfg(feature = "inject")]
mod processes_under_one_flight_recorder_dump_into_one_file;
