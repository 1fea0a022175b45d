//! Several destinations.

use super::Sink;
use std::fmt;
use std::io;

/// Hands every batch to several sinks. One that fails is given up: what it lacks cannot be
/// made up for later. The others go on, and [`Sink::trouble`] tells; when none is left,
/// writing fails.
pub struct Fanout {
    sinks: Vec<(String, Box<dyn Sink>)>,
    trouble: Option<io::Error>,
}

impl Fanout {
    /// All of these, each with a name for its errors.
    pub fn new(sinks: Vec<(String, Box<dyn Sink>)>) -> Fanout {
        Fanout { sinks, trouble: None }
    }

    fn each(&mut self, mut action: impl FnMut(&mut dyn Sink) -> io::Result<()>) -> io::Result<()> {
        let trouble = &mut self.trouble;
        self.sinks.retain_mut(|(name, sink)| match action(&mut **sink) {
            Ok(()) => true,
            Err(error) => {
                *trouble = Some(io::Error::new(error.kind(), format!("{name}: {error}")));
                false
            }
        });
        match self.sinks.is_empty() {
            false => Ok(()),
            // For good.
            true => Err(trouble.take().map_or(io::ErrorKind::NotConnected.into(), |error| {
                io::Error::new(io::ErrorKind::NotConnected, error)
            })),
        }
    }
}

impl fmt::Debug for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sinks.iter().map(|(name, _)| name)).finish()
    }
}

impl Sink for Fanout {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        self.each(|sink| sink.write(packets))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.each(|sink| sink.finish())
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{Memory, Stream};

    /// Takes so many writes.
    struct Limited(u32);

    impl io::Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_that_fails_is_given_up_and_told_of_once() {
        let memory = Memory::new();
        let mut all = Fanout::new(vec![
            ("full".to_owned(), Box::new(Stream::new(Limited(1)))),
            ("memory".to_owned(), Box::new(memory.clone())),
        ]);
        all.write(b"a").unwrap();
        assert!(all.trouble().is_none());
        all.write(b"b").unwrap();
        assert!(all.trouble().unwrap().to_string().starts_with("full: "));
        all.write(b"c").unwrap();
        assert!(all.trouble().is_none());
        all.finish().unwrap();
        assert_eq!(memory.bytes(), b"abc");
    }

    #[test]
    fn when_none_is_left_writing_fails_for_good() {
        let mut all = Fanout::new(vec![("full".to_owned(), Box::new(Stream::new(Limited(0))))]);
        let error = all.write(b"a").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        assert!(error.to_string().contains("full"), "{error}");
        assert!(all.write(b"b").is_err());
    }
}
