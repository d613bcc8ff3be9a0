//! As much of Rust as the other half of the layout has.

use anyhow::{Context, Result};

use super::Numbers;

/// What stands between the braces behind the last `head`: a macro that declares it comes before.
pub(super) fn block<'a>(text: &'a str, head: &str) -> Result<&'a str> {
    let found = text.match_indices(head).filter_map(|(at, _)| {
        let rest = text[at + head.len()..].strip_prefix(" {")?;
        Some(&rest[..end_of_block(rest)?])
    });
    found.last().with_context(|| format!("`{head} {{` is not where it was"))
}

/// Where the brace is that closes what has been opened before `text`.
fn end_of_block(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })
}

/// The lines that stand in no braces.
pub(super) fn outside_of_blocks(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with(' ')).flat_map(|line| [line, "\n"]).collect()
}

/// `const NAME: type = number;`
pub(super) fn constants(text: &str) -> Numbers {
    let constants = text.lines().filter_map(|line| line.split_once("const ")).filter_map(|(_, rest)| {
        let (name, rest) = rest.split_once(": ")?;
        let (_, value) = rest.split_once(" = ")?;
        Some((name.to_owned(), number(value.split(';').next()?)?))
    });
    constants.collect()
}

/// `Name = number "text",` or `Name = number,`, the names in capitals, and what the macro adds to all of them.
pub(super) fn codes(text: &str) -> Numbers {
    let codes = text.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(" = ")?;
        Some((name.to_uppercase(), number(rest.split([' ', ',']).next()?)?))
    });
    codes.chain([("UNKNOWN".to_owned(), 255)]).collect()
}

/// `name: type,` in order.
pub(super) fn fields(text: &str) -> Vec<(String, String)> {
    let fields = text.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(": "));
    fields.map(|(name, kind)| (name.trim_start_matches("pub ").to_owned(), kind.to_owned())).collect()
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim().replace('_', "");
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
