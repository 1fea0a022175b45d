//! What `kymo doctor` reports: what a backend needs, and whether it is there.
//!
//! Each backend has a function that looks and says what it found. It runs in a process of
//! its own, which loads the vendor's libraries as a recorded program would: some of them
//! abort a process that has no device.

/// Whether something is as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is.
    Good,
    /// It is not, and a recording will miss something.
    Bad,
    /// It is not there, which is no fault.
    Absent,
}

/// One line of `kymo doctor`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to do, unless it is good.
    pub advice: String,
}

/// Between the parts of a finding in a line of text.
const SEPARATOR: char = '\u{1f}';

impl Finding {
    /// Something that is as it should be.
    pub fn good(name: &str, detail: impl Into<String>) -> Finding {
        let (state, advice) = (State::Good, String::new());
        Finding { name: name.to_owned(), state, detail: detail.into(), advice }
    }

    /// Something that a recording will miss.
    pub fn bad(name: &str, detail: impl Into<String>, advice: impl Into<String>) -> Finding {
        let (state, advice) = (State::Bad, advice.into());
        Finding { name: name.to_owned(), state, detail: detail.into(), advice }
    }

    /// Something that is not there.
    pub fn absent(name: &str, detail: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { state: State::Absent, ..Finding::bad(name, detail, advice) }
    }

    /// As a line, for the process that asked.
    pub fn to_line(&self) -> String {
        let state = match self.state {
            State::Good => "good",
            State::Bad => "bad",
            State::Absent => "absent",
        };
        let parts = [&self.name, state, &self.detail, &self.advice];
        parts.join(&SEPARATOR.to_string()).replace('\n', " ")
    }

    /// From such a line.
    pub fn from_line(line: &str) -> Option<Finding> {
        let mut parts = line.split(SEPARATOR);
        let name = parts.next()?.to_owned();
        let state = match parts.next()? {
            "good" => State::Good,
            "bad" => State::Bad,
            "absent" => State::Absent,
            _ => return None,
        };
        Some(Finding {
            name,
            state,
            detail: parts.next()?.to_owned(),
            advice: parts.next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_survives_being_a_line() {
        for finding in [
            Finding::good("CUPTI", "version 28 (/usr/lib/libcupti.so.12)"),
            Finding::bad("CUDA activity", "another tool: error=39", "stop the other one"),
            Finding::absent("AMD GPU", "", "install ROCm"),
        ] {
            assert_eq!(Finding::from_line(&finding.to_line()), Some(finding));
        }
        assert_eq!(Finding::from_line("chatter of a driver"), None);
    }
}
