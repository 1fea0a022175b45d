//! Names of XLA's and TensorFlow's `TraceMe`s, which carry arguments (`TraceMeEncode` in
//! XLA's `tsl/profiler/lib/traceme_encode.h`):
//!
//! ```text
//! Thunk:#hlo_op=fusion.3,program_id=7#
//! └name┘ └─ key=value, … ───────────┘
//! ```
//! Numbers in them make nearly every message unique, which would fill the interner and hide
//! that they are of one kind.

use kymograph_protos::StrId;

use super::super::args::Args;
use super::super::session::Session;
use super::super::text::Text;

/// Arguments that are taken out of a message.
const MAX_PARTS: usize = 8;

/// Whether a message may be one: costs a byte.
#[inline(always)]
pub(crate) fn may_be(text: &[u8]) -> bool {
    text.last() == Some(&b'#')
}

/// The name, and the arguments as they stand; none if a message is not of this form.
fn parse(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = text.strip_suffix(b"#")?;
    let at = inside.iter().position(|byte| *byte == b'#')?;
    let (name, members) = (&inside[..at], &inside[at + 1..]);
    let name = name.strip_suffix(b":").unwrap_or(name);
    let whole = !name.is_empty() && members.contains(&b'=') && !members.contains(&b'#');
    whole.then_some((name, members))
}

/// The members `key=value`. Commas may stand in values: in brackets, or where no key follows.
fn members(mut text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let equals = text.iter().position(|byte| *byte == b'=')?;
        let (key, rest) = (&text[..equals], &text[equals + 1..]);
        let mut depth = 0_i32;
        let end = rest.iter().enumerate().position(|(at, byte)| {
            depth += match byte {
                b'(' | b'[' | b'{' => 1,
                b')' | b']' | b'}' => -1,
                _ => 0,
            };
            *byte == b',' && depth <= 0 && begins_with_a_key(&rest[at + 1..])
        });
        let end = end.unwrap_or(rest.len());
        text = rest.get(end + 1..).unwrap_or_default();
        Some((key, &rest[..end]))
    })
}

fn begins_with_a_key(text: &[u8]) -> bool {
    let part_of_one = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = text.iter().take_while(part_of_one).count();
    length > 0 && text.get(length) == Some(&b'=')
}

/// What a thread is called that has such a name: one without marks, with all that tells it from
/// others. None if the name is not of this form.
pub(crate) fn row(text: &[u8]) -> Option<Vec<u8>> {
    let (name, rest) = parse(text)?;
    let mut row = name.to_vec();
    for (at, (key, value)) in members(rest).enumerate() {
        row.extend_from_slice(if at == 0 { " · ".as_bytes() } else { b", " });
        [key, b" ", value].into_iter().for_each(|part| row.extend_from_slice(part));
    }
    Some(row)
}

/// Adds the arguments of a message, and returns its name.
#[cold]
pub(crate) fn take_apart<'a>(session: &Session, args: &mut Args, text: Text<'a>) -> Text<'a> {
    let Some((name, rest)) = parse(text.bytes()) else { return text };
    for (key, value) in members(rest).take(MAX_PARTS) {
        let key = session.intern_or_wait(StrId::NONE, key);
        let number = std::str::from_utf8(value).ok().filter(|text| !text.starts_with('+'));
        match number.and_then(|text| text.parse().ok()) {
            Some(number) => args.signed(key, number),
            None => args.string(session, key, value),
        }
    }
    let length = name.len();
    match text {
        Text::Borrowed(all) => Text::Borrowed(&all[..length]),
        text => Text::Owned(text.bytes()[..length].to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, Vec<(String, String)>)> {
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (name, rest) = parse(text.as_bytes())?;
        Some((owned(name), members(rest).map(|(k, v)| (owned(k), owned(v))).collect()))
    }

    fn expect(text: &str, name: &str, members: &[(&str, &str)]) {
        let members = members.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        assert_eq!(found(text), Some((name.into(), members)), "{text}");
    }

    #[test]
    fn names_and_arguments() {
        expect("Thunk:#hlo_op=fusion.3#", "Thunk", &[("hlo_op", "fusion.3")]);
        expect("Execute#id=3,kind=a b#", "Execute", &[("id", "3"), ("kind", "a b")]);
        expect("a::b:#shape=(2,3),n=-1#", "a::b", &[("shape", "(2,3)"), ("n", "-1")]);
        expect("x:#text=one, two,m=)#", "x", &[("text", "one, two"), ("m", ")")]);
        expect("x:#empty=,n=1#", "x", &[("empty", ""), ("n", "1")]);
    }

    #[test]
    fn names_of_threads() {
        let name = row(b"XlaLauncher:#global=0,local=1,process=0#").unwrap();
        assert_eq!(String::from_utf8(name).unwrap(), "XlaLauncher · global 0, local 1, process 0");
        assert_eq!(row(b"scheduler"), None);
    }

    #[test]
    fn other_names_stay_what_they_are() {
        for text in ["#", "##", "a#", "#a=1#", "## forward ##", "a#b#", "C#", "a#b=1#c#", ""] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
