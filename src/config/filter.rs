//! Which categories are recorded.

/// A list of category names to record or to leave out.
///
/// `render,io*,-io.debug` records `render` and everything that begins with `io`, except
/// `io.debug`. Whatever is left out stays out, wherever it stands in the list; a list
/// that only leaves out records everything else. `*` stands for any bytes, also none;
/// there is no way to write a literal `*` or `,`. Names are compared byte for byte, as
/// programs are free to use names that are not UTF-8.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CategoryFilter {
    wanted: Vec<Box<[u8]>>,
    unwanted: Vec<Box<[u8]>>,
}

impl Default for CategoryFilter {
    /// Everything.
    fn default() -> Self {
        CategoryFilter { wanted: vec![(*b"*").into()], unwanted: Vec::new() }
    }
}

impl CategoryFilter {
    /// Reads a list.
    ///
    /// # Errors
    /// The list names nothing: what is expected, as the end of a sentence.
    pub fn parse(list: &str) -> Result<CategoryFilter, String> {
        let mut filter = CategoryFilter { wanted: Vec::new(), unwanted: Vec::new() };
        for name in list.split(',').map(str::trim) {
            match name.strip_prefix('-') {
                Some("") => {
                    return Err("expected a name after `-`, such as -render".to_owned());
                }
                Some(name) => filter.unwanted.push(name.as_bytes().into()),
                None if name.is_empty() => {}
                None => filter.wanted.push(name.as_bytes().into()),
            }
        }
        if filter.wanted.is_empty() {
            if filter.unwanted.is_empty() {
                return Err("expected names such as render,io*,-io.debug".to_owned());
            }
            filter.wanted = CategoryFilter::default().wanted;
        }
        Ok(filter)
    }

    /// Whether the category `name` is recorded. Costs time proportional to the list and
    /// the name: ask once per category, not once per event.
    pub fn matches(&self, name: &[u8]) -> bool {
        let any = |globs: &[Box<[u8]>]| globs.iter().any(|glob| matches(glob, name));
        any(&self.wanted) && !any(&self.unwanted)
    }

    /// The names that are to be recorded, as they were written.
    pub fn wanted(&self) -> impl Iterator<Item = &[u8]> {
        self.wanted.iter().map(|glob| &**glob)
    }

    /// Which of [`CategoryFilter::wanted`] this name is called by, as bits; of the first 64.
    pub(crate) fn matching(&self, name: &[u8]) -> u64 {
        matching(self.wanted(), name)
    }
}

/// Which of the first 64 globs match, as bits.
pub(super) fn matching<'g>(globs: impl Iterator<Item = &'g [u8]>, name: &[u8]) -> u64 {
    let bits = globs.take(64).enumerate().filter(|(_, glob)| matches(glob, name));
    bits.fold(0, |bits, (at, _)| bits | 1 << at)
}

/// Whether `glob`, in which `*` stands for any bytes, matches the whole of `name`. Never
/// worse than quadratic: only the last `*` is ever reconsidered.
pub(super) fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g + 1, n));
                g += 1;
            }
            Some(byte) if *byte == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match &mut star {
                // The star takes one byte more.
                Some((after, from)) => {
                    *from += 1;
                    (g, n) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("io", "io", true),
            ("io", "iox", false),
            ("io*", "io", true),
            ("io*", "io.read", true),
            ("*read", "io.read", true),
            ("*read", "io.reads", false),
            ("a*b*c", "a__b__b__c", true),
            ("a*b*c", "a__c__b", false),
            ("a**c", "ac", true),
            ("", "", true),
            ("", "x", false),
        ] {
            let found = matches(glob.as_bytes(), name.as_bytes());
            assert_eq!(found, expected, "{glob} {name}");
        }
        assert!(matches(b"a*", b"a\xff\x00"));
    }

    #[test]
    fn what_is_left_out_stays_out() {
        let filter = CategoryFilter::parse("-io.debug, render,io*").unwrap();
        assert!(filter.matches(b"render"));
        assert!(filter.matches(b"io.read"));
        assert!(!filter.matches(b"io.debug"));
        assert!(!filter.matches(b"net"));
        assert_eq!(filter.wanted().collect::<Vec<_>>(), [&b"render"[..], b"io*"]);
        assert_eq!(
            ["render", "io.x", "net"].map(|name| filter.matching(name.as_bytes())),
            [1, 2, 0]
        );
        let filter = CategoryFilter::parse("-NCCL").unwrap();
        assert!(filter.matches(b"anything") && filter.matches(b"") && !filter.matches(b"NCCL"));
        assert!(CategoryFilter::parse(",,").is_err());
        assert!(CategoryFilter::parse("a,-").is_err());
    }
}
