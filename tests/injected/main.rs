//! Programs that know nothing of Kymograph behave under `kymo record` as they do alone.

mod a_command_that_cannot_be_injected_runs_all_the_same;
mod a_recorded_program_behaves_as_it_does_alone;
mod a_recorded_program_ends_as_it_does_alone;
mod an_interposed_call_reaches_its_own_library;
mod programs_of_all_kinds_run;
mod standard_streams_pass_through_untouched;
mod the_command_ends_as_if_kymo_were_not_there;
mod the_environment_is_only_added_to;
