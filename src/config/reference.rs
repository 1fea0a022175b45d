//! The option table as text, for people.

use super::OPTIONS;

/// The option table as a Markdown table, for the docs.
pub fn markdown() -> String {
    let mut table =
        String::from("| key | environment | value | default | meaning |\n|---|---|---|---|---|\n");
    for o in OPTIONS {
        let value = o.value.replace('|', "\\|");
        let default =
            if o.default.is_empty() { "–".to_owned() } else { format!("`{}`", o.default) };
        table += &format!("| `{}` | `{}` | `{value}` | {default} | {} |\n", o.key, o.env, o.help);
    }
    table
}

/// The option table as indented text, for `--help`.
pub fn text() -> String {
    let mut out = String::new();
    for o in OPTIONS {
        out += &format!("  {}={}", o.key, o.value);
        if !o.default.is_empty() {
            out += &format!(" [default: {}]", o.default);
        }
        out += &format!("\n      {}\n", o.help);
    }
    out
}
