//! `kymo convert`, `info`, `merge` and `export`, and the tools that read their output.

mod a_trace_survives_the_hub;
mod files_that_are_no_trace_are_refused;
mod kymo_convert_and_info;
mod other_tools_read_our_json;
mod slices_are_paired_as_trace_processor_does;
mod tables_are_read_by_other_tools;
mod two_recordings_become_one;
