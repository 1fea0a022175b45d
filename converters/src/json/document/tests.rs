use super::*;
use crate::json::RepairKind::*;

/// Reads in pieces of `step` bytes and says what there was.
fn read(text: &[u8], step: usize) -> (String, Vec<(RepairKind, u64)>) {
    struct Pieces<'a>(&'a [u8], usize);
    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let len = self.0.len().min(self.1).min(to.len());
            to[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }
    let mut document = Document::new(Pieces(text, step), Limits::default());
    let mut out = String::new();
    loop {
        match document.next_item() {
            Ok(Some(Item::Event(event))) => out += event.root().raw(),
            Ok(Some(Item::Member(key, value))) => {
                out += &format!("<{key}={}>", value.root().raw());
            }
            Ok(None) => break,
            Err(error) => out += &format!("!{error}"),
        }
        if out.contains('!') {
            break;
        }
    }
    let repairs = document.repairs().first();
    (out, repairs.iter().map(|repair| (repair.kind, repair.offset)).collect())
}

#[test]
fn every_shape_of_a_document() {
    for (text, out, repairs) in [
        ("[]", "", vec![]),
        ("\u{feff} {}", "", vec![]),
        (r#"[{"a":1},{"b":2}]"#, r#"{"a":1}{"b":2}"#, vec![]),
        (r#"{"x":1,"traceEvents":[{"a":1}],"y":"z"}"#, r#"<x=1>{"a":1}<y=z>"#, vec![]),
        (r#"[{"a":1},{"b":2},"#, r#"{"a":1}{"b":2}"#, vec![(MissingEnd, 17)]),
        (r#"[{"a":1} {"b":2},]"#, r#"{"a":1}{"b":2}"#, vec![(MissingComma, 9)]),
        (r#"[{"a":1},{"b":"#, r#"{"a":1}"#, vec![(Cut, 9), (MissingEnd, 14)]),
        (r#"{"traceEvents":[{"a":1}"#, r#"{"a":1}"#, vec![(MissingEnd, 23)]),
        (r#"[{"a":1,}]x"#, r#"{"a":1,}"#, vec![(TrailingComma, 8), (Trailing, 10)]),
        (
            r#"[{"a":"f("x")"},{"b":NaN}]"#,
            r#"{"a":"f(\"x\")"}{"b":NaN}"#,
            vec![(Quote, 9), (Quote, 11), (NotFinite, 21)],
        ),
        ("[{\"a\":\"b\nc\"}]", "{\"a\":\"b\nc\"}", vec![(Control, 8)]),
        (r#"[{"a":"\x"}]"#, r#"{"a":"\x"}"#, vec![(Escape, 7)]),
        (r#"[{"a"},{"ph":"X"}]"#, r#"{"ph":"X"}"#, vec![(Unreadable, 1)]),
        (r#"{"a":?,"b":1}"#, "<b=1>", vec![(Unreadable, 5)]),
        (r#"{"traceEvents":[{"a"}],"b":1}"#, "<b=1>", vec![(Unreadable, 16)]),
        ("7", "!at byte 0: expected `{` or `[`, found `7`", vec![]),
        ("", "!at byte 0: expected `{` or `[`, found the end", vec![]),
    ] {
        for step in [1, 2, 3, 7, 1000] {
            let (got, noted) = read(text.as_bytes(), step);
            assert_eq!(got, out, "{text} by {step}");
            assert_eq!(noted, repairs, "{text} by {step}");
        }
    }
}

#[test]
fn bytes_that_are_no_text_keep_their_place() {
    for step in [1, 2, 3, 100] {
        let (out, repairs) = read(b"[{\"a\":\"\xff\xc3\xa9\xe2\x82\"}]", step);
        assert_eq!(out, "{\"a\":\"?\u{e9}??\"}", "{step}");
        assert!(repairs.iter().all(|&(kind, at)| kind == Encoding && (7..12).contains(&at)));
    }
}

#[test]
fn an_element_beyond_a_limit_is_lost_and_no_other() {
    let limits = Limits { element_bytes: 1 << 20, depth: 8, nodes: 100, ..Limits::default() };
    let long = format!("{{\"a\": \"{}\\\"}}\"}}", "x".repeat(3 << 20));
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(20), "]".repeat(20));
    let many = format!("{{\"a\": [{}1]}}", "1,".repeat(200));
    for lost in [long, deep, many] {
        let text = format!("[{{\"b\":1}}, {lost}, {{\"c\":2}}]");
        let mut document = Document::new(text.as_bytes(), limits);
        let mut read = String::new();
        while let Some(Item::Event(event)) = document.next_item().unwrap() {
            read += event.root().raw();
        }
        assert_eq!(read, "{\"b\":1}{\"c\":2}");
        assert_eq!(document.repairs().count(Limit), 1);
        assert_eq!(document.repairs().total(), 1);
    }
}

#[test]
fn events_may_stand_in_lines() {
    let text = "{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":3},\n";
    let mut document = Document::of_lines(text.as_bytes(), Limits::default());
    let mut read = String::new();
    while let Some(Item::Event(event)) = document.next_item().unwrap() {
        read += event.root().raw();
    }
    assert_eq!(read, "{\"a\":1}{\"b\":2}{\"c\":3}");
    assert_eq!(document.repairs().total(), 0);
}
