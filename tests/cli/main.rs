//! What the commands of `kymo` print and refuse.

#[cfg(feature = "inject")]
mod a_delay_leaves_the_beginning_out;
#[cfg(feature = "inject")]
mod a_pipe_gets_what_the_file_gets;
#[cfg(feature = "inject")]
mod a_trace_is_loaded_while_it_is_recorded;
mod a_trace_opens_in_the_ui_and_nowhere_else;
mod analyze_reports_what_it_can;
mod converting_shows_progress_on_a_terminal;
mod data_sets_are_for_a_program_beside_kymo;
mod doctor_checks_the_daemon;
mod doctor_suggests_remedies;
mod missing_data_has_a_reason;
mod nothing_starts_when_the_command_line_is_wrong;
mod on_a_terminal_kymo_shows_a_line_and_leaves_ctrl_c_alone;
mod the_command_explains_itself;
