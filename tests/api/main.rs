//! The interfaces that programs use: Rust, C, `tracing`, and the options.

mod a_c_program_records_through_the_header;
mod compiled_out_nothing_is_recorded;
mod every_option_comes_from_one_table;
mod the_api_does_what_a_program_expects;
#[cfg(feature = "tracing")]
mod tracing_events_are_in_the_trace;
