//! Requests for traces: `kymo trigger`, signals, and the daemon.

mod a_daemon_asks_for_traces;
mod a_daemon_traces_a_python_program;
mod a_mute_or_flooding_process_costs_little;
mod a_signal_may_ask_for_a_trace;
mod a_waiting_program_is_traced_on_request;
mod assertions_of_kineto_are_tested;
mod names_given_before_a_recording_are_in_later_traces;
mod output_of_others_moves_no_cursor;
mod the_commands_of_the_control_page_work;
mod the_daemon_of_the_tests_is_as_strict_as_a_stock_one;
