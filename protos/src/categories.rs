//! Which categories are wanted: of a recording, and of a trace that is converted.

/// A list of category names to take or to leave out.
///
/// `render,io*,-io.debug` takes `render` and everything that begins with `io`, except
/// `io.debug`. Whatever is left out stays out, wherever it stands in the list; a list
/// that only leaves out takes everything else. `*` stands for any bytes, also none;
/// there is no way to write a literal `*` or `,`. Names need not be UTF-8; upper and lower
/// case of ASCII letters are the same.
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
        CategoryFilter::of(list.split(','))
    }

    /// As [`CategoryFilter::parse`], of names that are separate already.
    ///
    /// # Errors
    /// As [`CategoryFilter::parse`].
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<CategoryFilter, String> {
        let mut filter = CategoryFilter { wanted: Vec::new(), unwanted: Vec::new() };
        for name in names.into_iter().map(str::trim) {
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
        let any = |globs: &[Box<[u8]>]| globs.iter().any(|glob| matches_any_case(glob, name));
        any(&self.wanted) && !any(&self.unwanted)
    }

    /// Whether something that has several names is wanted: by one of them, and left out by none.
    pub fn takes<'n>(&self, names: impl IntoIterator<Item = &'n [u8]>) -> bool {
        let mut wanted = false;
        for name in names {
            if self.unwanted.iter().any(|glob| matches_any_case(glob, name)) {
                return false;
            }
            wanted |= self.wanted.iter().any(|glob| matches_any_case(glob, name));
        }
        wanted
    }

    /// The names that are to be recorded, as they were written.
    pub fn wanted(&self) -> impl Iterator<Item = &[u8]> {
        self.wanted.iter().map(|glob| &**glob)
    }

    /// Which of [`CategoryFilter::wanted`] this name is called by, as bits; of the first 64.
    pub fn matching(&self, name: &[u8]) -> u64 {
        matching(self.wanted(), |glob| matches_any_case(glob, name))
    }
}

/// Which of the first 64 globs match, as bits.
fn matching<'g>(globs: impl Iterator<Item = &'g [u8]>, matches: impl Fn(&[u8]) -> bool) -> u64 {
    let bits = globs.take(64).enumerate().filter(|(_, glob)| matches(glob));
    bits.fold(0, |bits, (at, _)| bits | 1 << at)
}

/// Whether `glob`, in which `*` stands for any bytes, matches the whole of `name`. Never
/// worse than quadratic: only the last `*` is ever reconsidered.
pub fn matches(glob: &[u8], name: &[u8]) -> bool {
    matches_by(glob, name, |one, other| one == other)
}

/// As [`matches()`], whatever the case of ASCII letters.
pub fn matches_any_case(glob: &[u8], name: &[u8]) -> bool {
    matches_by(glob, name, u8::eq_ignore_ascii_case)
}

fn matches_by(glob: &[u8], name: &[u8], same: impl Fn(&u8, &u8) -> bool) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g + 1, n));
                g += 1;
            }
            Some(byte) if same(byte, &name[n]) => {
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
        assert!(filter.matches(b"anything") && filter.matches(b""));
        assert!(!filter.matches(b"NCCL") && !filter.matches(b"nccl"));
        assert!(CategoryFilter::parse(",,").is_err());
        assert!(CategoryFilter::parse("a,-").is_err());
    }
}
