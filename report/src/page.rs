//! The page: one file of HTML with script, style and data in it.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::Report;
use crate::columns::text;
use crate::report::Tables;

const SCRIPT: &str = include_str!("../web/dist/page.js");
const STYLE: &str = include_str!("../web/dist/page.css");
/// What the page may load: the script and the style that are in it, by their hashes.
const POLICY: &str = include_str!("../web/dist/policy.txt");
const SHELL: &str = include_str!("../web/src/page.html");

/// What tells a page of ours from other files: it is near its beginning.
pub const MARK: &str = "<meta name=\"generator\" content=\"kymo report\">";

/// Writes a page. Without a number of a version its data is in it; with one, it asks for blocks as
/// they are needed, at `block-VERSION-NUMBER` beside its own address, and for the number itself at
/// `version` now and then.
///
/// # Errors
///
/// Those of `out`.
pub fn write(report: &Report, version: Option<u64>, out: &mut impl Write) -> io::Result<()> {
    let mut blocks = Blocks::default();
    let index = index(report, version, &mut blocks);
    let connect = if version.is_some() { "; connect-src 'self'" } else { "" };
    let title = match report.runs.as_slice() {
        [run] if !run.name.is_empty() => format!("{} · kymo report", run.name),
        [run] => match run.ranks.as_slice() {
            [rank] => format!("{} · kymo report", rank.file),
            _ => "kymo report".to_owned(),
        },
        _ => "kymo report".to_owned(),
    };
    let (head, rest) = SHELL.split_once("<!--head-->").unwrap_or((SHELL, ""));
    let (body, end) = rest.split_once("<!--data-->").unwrap_or((rest, ""));
    out.write_all(head.as_bytes())?;
    write!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}{connect}\">\n{MARK}\n\
         <title>{}</title>\n<style>{STYLE}</style>",
        POLICY.trim(),
        escaped(&title)
    )?;
    out.write_all(body.as_bytes())?;
    // In JSON, `<` stands in texts only.
    let index = index.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"index\">{index}</script>")?;
    let inside = blocks.0.iter().enumerate().filter(|_| version.is_none());
    for (number, block) in inside {
        writeln!(out, "<script type=\"text/plain\" id=\"b{number}\">{block}</script>")?;
    }
    write!(out, "<script>{SCRIPT}</script>")?;
    out.write_all(end.as_bytes())
}

/// The block of a number.
pub(crate) fn block(report: &Report, number: usize) -> Option<&str> {
    let mut blocks = Blocks::default();
    index(report, None, &mut blocks);
    blocks.0.get(number).copied()
}

/// Packed data, each under a number.
#[derive(Default)]
struct Blocks<'r>(Vec<&'r str>);

impl<'r> Blocks<'r> {
    /// The number of a block; `null` for an empty one.
    fn add(&mut self, block: &'r str) -> String {
        if block.is_empty() {
            return "null".to_owned();
        }
        self.0.push(block);
        (self.0.len() - 1).to_string()
    }
}

/// What there is, and in which block.
fn index<'r>(report: &'r Report, version: Option<u64>, blocks: &mut Blocks<'r>) -> String {
    let live = version.map_or("null".to_owned(), |version| version.to_string());
    let mut out = format!("{{\"live\":{live},\"plugin\":{},\"runs\":[", report.plugin);
    let mut id = 0;
    for (n, run) in report.runs.iter().enumerate() {
        out += if n == 0 { "{\"name\":" } else { ",\n{\"name\":" };
        text(&mut out, &run.name);
        put_tables(&mut out, &run.tables, blocks);
        out += ",\"ranks\":[";
        let first = run.ranks.iter().filter(|rank| rank.events > 0).map(|rank| rank.origin).min();
        for (n, rank) in run.ranks.iter().enumerate() {
            out += if n == 0 { "{\"file\":" } else { ",\n{\"file\":" };
            text(&mut out, &rank.file);
            let offset = first.map_or(0, |first| rank.origin.saturating_sub(first));
            let (timeline, samples) = (blocks.add(&rank.timeline), blocks.add(&rank.samples));
            let _ = write!(
                out,
                ",\"id\":{id},\"rank\":{},\"events\":{},\"offset\":{},\"in_file\":{},\
                 \"source\":{},\"timeline\":{timeline},\"samples\":{samples},\"about\":{}}}",
                rank.rank,
                rank.events,
                offset.max(0),
                rank.in_file.max(0),
                rank.source,
                rank.about.trim()
            );
            id += 1;
        }
        out += "]}";
    }
    out += "],\"comparisons\":[";
    for (n, comparison) in report.comparisons.iter().enumerate() {
        let comma = if n == 0 { "" } else { ",\n" };
        let _ = write!(out, "{comma}{{\"base\":{},\"test\":{}", comparison.base, comparison.test);
        put_tables(&mut out, &comparison.tables, blocks);
        out.push('}');
    }
    out + "]}"
}

fn put_tables<'r>(out: &mut String, tables: &'r Tables, blocks: &mut Blocks<'r>) {
    *out += ",\"tables\":{";
    for (n, (name, block)) in tables.packed.iter().enumerate() {
        let _ = write!(out, "{}\"{name}\":{}", if n == 0 { "" } else { "," }, blocks.add(block));
    }
    *out += "},\"missing\":{";
    for (n, (name, why)) in tables.missing.iter().enumerate() {
        let _ = write!(out, "{}\"{name}\":", if n == 0 { "" } else { "," });
        text(out, why);
    }
    out.push('}');
}

/// A text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
