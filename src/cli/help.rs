//! `kymo help`, `kymo --version` and `kymo record --help-all`.

use super::carried;
use clap::Args;
use kymograph::config::OPTIONS;
use std::ffi::OsString;
use std::sync::LazyLock;

/// Shows the help of a command.
#[derive(Args)]
pub(super) struct Help {
    /// The command.
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Show all settings of a recording, also those that Kymograph makes itself.
    #[arg(long, conflicts_with = "command")]
    all: bool,
}

impl Help {
    /// The command line that shows it.
    pub(super) fn words(self) -> Vec<OsString> {
        if self.all {
            return ["kymo", "record", "--help-all"].map(OsString::from).into();
        }
        let help = OsString::from("--help");
        std::iter::once("kymo".into()).chain(self.command).chain([help]).collect()
    }
}

/// What `kymo --version` says after the name.
pub(super) fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(text_of_version);
    &TEXT
}

fn text_of_version() -> String {
    let features = [("inject", cfg!(feature = "inject")), ("tracing", cfg!(feature = "tracing"))];
    let on: Vec<_> = features.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let library = if carried::is_there() { "in kymo" } else { "a file of its own" };
    format!(
        "{}\nfeatures: {}\nlibkymograph.so: {library}",
        env!("CARGO_PKG_VERSION"),
        on.join(", ")
    )
}

/// Settings that other parts of Kymograph make, or that serve to find faults in it.
const INTERNAL: [&str; 6] =
    ["CONTROL", "JSON_NOTES", "KEEPER", "SAMPLES", "CUPTI_FINALIZE", "LIBRARY"];

/// The settings, as text for `--help`; the internal ones with `all`.
pub(super) fn settings(all: bool) -> String {
    let mut out = "SETTINGS, for --set KEY=VALUE or as environment variables KYMOGRAPH_KEY=VALUE\n"
        .to_owned();
    for option in OPTIONS.iter().filter(|option| all || !INTERNAL.contains(&option.key)) {
        out += &format!("  {}={}", option.key, option.value);
        if !option.default.is_empty() {
            out += &format!(" [default: {}]", option.default);
        }
        out += &format!("\n      {}\n", option.help);
    }
    if !all {
        out += "Internal settings: kymo record --help-all\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_settings_are_settings_and_are_hidden() {
        for key in INTERNAL {
            let row = format!("  {key}=");
            assert!(settings(true).contains(&row) && !settings(false).contains(&row), "{key}");
        }
        assert!(settings(false).contains("  BUFFER=SIZE [default: 64M]"));
    }
}
