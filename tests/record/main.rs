//! What a recording holds: slices, threads, windows, steps and losses.

mod a_hundred_recordings_follow_each_other;
mod a_long_call_stays_on_its_thread;
mod a_programs_own_profilers_take_part;
mod a_schedule_chooses_iterations;
mod a_tiny_buffer_counts_what_it_loses;
mod device_work_is_shown_with_its_arrows;
mod events_across_the_edges_of_a_window_are_kept;
mod gradients_belong_to_the_ranges_around_backward;
mod hostile_strings_are_kept;
#[cfg(feature = "inject")]
mod processes_state_clocks_in_order;
mod several_sinks_get_one_trace;
mod slices_are_reconstructed_exactly;
mod steps_have_one_numbering;
mod ten_thousand_short_lived_threads_leave_nothing_behind;
mod the_clock_agrees_with_boottime;
mod threads_may_share_a_call_site;
mod threads_that_come_and_go_cost_no_memory;
