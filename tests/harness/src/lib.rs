//! What tests of several subjects need.
//!
//! | module | |
//! |---|---|
//! | [`child`] | a test, or a part of one, in a process of its own |
//! | [`kymo`] | the command that was built for the tests, and processes that end with their test |
//! | [`native`] | C and C++ programs, linked with the library |
//! | [`install`] | programs that a test puts somewhere |
//! | [`guest`] | programs that run alone and under `kymo record`, and are compared |
//! | [`control`], [`dynolog`] | clients of the control protocols, and the daemon |
//! | [`users`] | other users of the machine |
//! | [`fakes`] | the vendors' libraries that tests load |
//! | [`nvidia`], [`amd`], [`intel`], [`gaudi`] | machines with devices that are not there |
//! | [`faults`] | what vendors' libraries may do wrong |

use std::path::Path;

pub mod amd;
pub mod child;
pub mod control;
pub mod dynolog;
pub mod fakes;
pub mod faults;
pub mod gaudi;
pub mod guest;
pub mod install;
pub mod intel;
pub mod kymo;
pub mod native;
pub mod nvidia;
pub mod users;

/// The repository.
pub fn root() -> &'static Path {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR"));
    harness.ancestors().nth(2).expect("tests/harness lies in the repository")
}
