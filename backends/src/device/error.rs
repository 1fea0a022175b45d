//! Why activities of a vendor cannot be recorded, for people.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

/// See the module. Shown, it says what failed, on what, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Error {
    /// A call of the vendor's library failed, for the reason that the library gives.
    Call { function: &'static str, reason: String },
    /// The library, which lies there, lacks a function.
    Missing { library: String, function: &'static CStr, advice: &'static str },
    /// One of several devices cannot be recorded.
    Device { device: u32, why: Box<Error> },
    /// Libraries, drivers or the environment are not as they must be.
    Unusable(Cow<'static, str>),
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn call(function: &'static str, reason: impl Into<String>) -> Error {
        Error::Call { function, reason: reason.into() }
    }

    pub(crate) fn missing(library: impl Into<String>, function: &'static CStr) -> Error {
        Error::Missing { library: library.into(), function, advice: "" }
    }

    pub(crate) fn on_device(self, device: u32) -> Error {
        Error::Device { device, why: Box::new(self) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Call { function, reason } => write!(f, "{function}: {reason}"),
            Error::Missing { library, function, advice } => {
                let separator = if advice.is_empty() { "" } else { "; " };
                let function = function.to_string_lossy();
                write!(f, "{library} has no {function}{separator}{advice}")
            }
            Error::Device { device, why } => write!(f, "device {device}: {why}"),
            Error::Unusable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(why: String) -> Error {
        Error::Unusable(why.into())
    }
}

impl From<&'static str> for Error {
    fn from(why: &'static str) -> Error {
        Error::Unusable(why.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_failed_and_on_what() {
        let call = Error::call("synProfilerStart", "synStatus 26").on_device(3);
        assert_eq!(call.to_string(), "device 3: synProfilerStart: synStatus 26");
        let missing = Error::missing("libcupti.so.12", c"cuptiSubscribe");
        assert_eq!(missing.to_string(), "libcupti.so.12 has no cuptiSubscribe");
    }
}
