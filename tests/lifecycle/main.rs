//! Ends, kills and forks of recorded processes and of `kymo`.

mod a_child_of_vfork_ends_alone;
mod a_forked_child_may_begin_with_anything;
mod a_killed_kymo_leaves_nothing_behind_for_long;
mod a_killed_process_leaves_a_valid_trace;
mod a_waiting_program_that_is_killed_leaves_its_trace;
mod forked_children_record_apart;
mod kymo_recover_saves_what_a_killed_program_recorded;
mod recorded_events_survive_a_kill;
mod the_end_of_a_process_writes_everything;
