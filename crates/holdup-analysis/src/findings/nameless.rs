//! Files whose functions have no names, and what would name them.

use rustc_hash::FxHashSet;

use super::context::Context;
use crate::report::{Finding, Hot, Nameless};

/// Files that are listed.
const LISTED: usize = 4;

/// The files of the functions that the findings and the profile show by address, in their order. O(images).
pub(super) fn of(context: &Context, findings: &[Finding], hot: &[Hot]) -> Vec<Nameless> {
    let shown = findings.iter().flat_map(|f| [f.culprit.function.as_str(), f.waiters.function.as_str()]);
    let mut files: Vec<&str> = Vec::new();
    for file in shown.chain(hot.iter().map(|h| h.function.as_str())).filter_map(file_of) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files.truncate(LISTED);
    let wanted: FxHashSet<&str> = files.iter().copied().collect();
    let mut found: Vec<Option<Nameless>> = vec![None; files.len()];
    for image in context.trace.images.iter().flatten() {
        let path = context.trace.text(image.path);
        let base = path.rsplit('/').next().unwrap_or(path).trim_end_matches(" (deleted)");
        if !wanted.contains(base) {
            continue;
        }
        if let Some(at) = files.iter().position(|file| *file == base).filter(|at| found[*at].is_none()) {
            let build_id = context.trace.text(image.build_id).to_owned();
            found[at] = Some(Nameless { path: path.to_owned(), build_id });
        }
    }
    found.into_iter().flatten().collect()
}

/// `gzip` of `gzip+0x4290`.
fn file_of(function: &str) -> Option<&str> {
    let (file, offset) = function.rsplit_once("+0x")?;
    (!file.is_empty() && offset.bytes().all(|b| b.is_ascii_hexdigit())).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::file_of;

    #[test]
    fn addresses_tell_their_file() {
        assert_eq!(file_of("libstdc++.so.6+0x4290"), Some("libstdc++.so.6"));
        assert_eq!(file_of("operator+"), None);
    }
}
