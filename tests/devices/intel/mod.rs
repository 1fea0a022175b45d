//! Level Zero, SYCL and PTI.

mod a_program_is_recorded_whole;
mod faults_are_counted_and_do_no_harm;
