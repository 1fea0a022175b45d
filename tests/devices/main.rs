//! Work of devices, recorded on machines without one: vendors' libraries are fakes.

mod a_recording_reads_at_a_glance;
mod a_script_gives_the_same_on_every_vendor;
mod amd;
mod devices_have_one_number_each;
mod devices_show_the_ranges_they_worked_for;
mod doctor_tests_devices;
mod gaudi;
mod intel;
mod nvidia;
mod reports_of_devices_are_replayed;
