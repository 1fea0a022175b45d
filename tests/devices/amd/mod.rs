//! HIP and rocprofiler-sdk.

mod a_program_is_recorded_whole;
mod a_program_that_embeds_kymograph_is_recorded;
mod a_waiting_program_is_traced_on_request;
mod doctor_checks_amd;
mod faults_are_counted_and_do_no_harm;
mod json_has_kinetos_keys;
mod options_choose_what_is_recorded;
mod roctx_is_recorded_without_rocprofiler;
