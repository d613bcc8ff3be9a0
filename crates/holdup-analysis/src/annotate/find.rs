//! Which function is meant.

use holdup_trace::{FrameId, StringId, Trace};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::report::Other;

/// Names offered where nothing matches.
const OFFERED: usize = 5;
/// Other matches told of.
const OTHERS: usize = 8;

/// A function with code of its own, by name and module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) name: StringId,
    pub(super) module: StringId,
}

/// The function with most samples among those that match, and the others. The error says which names are near.
pub(super) fn find(
    trace: &Trace,
    leaves: &FxHashMap<FrameId, u64>,
    wanted: &str,
) -> Result<(Function, Vec<Other>), String> {
    let matched = matching(trace, wanted);
    let mut weights: FxHashMap<Function, u64> = FxHashMap::default();
    for frame in (0..trace.stacks.frame_count()).map(|i| FrameId(i as u32)) {
        let Some(outer) = trace.names.locations(frame).last() else { continue };
        if trace.names.locations(frame).any(|l| matched.contains(&l.function)) {
            let function = Function { name: outer.function, module: outer.module };
            *weights.entry(function).or_default() += leaves.get(&frame).copied().unwrap_or(0);
        }
    }
    let mut found: Vec<(Function, u64)> = weights.into_iter().collect();
    found.sort_by_key(|(f, n)| (std::cmp::Reverse(*n), trace.text(f.name), trace.text(f.module)));
    let Some(&(best, samples)) = found.first() else { return Err(nothing(trace, leaves, wanted)) };
    if samples == 0 && trace.names.code(|c| c.function == best.name && c.module == best.module).is_none() {
        let what = "has no samples of its own: what it calls ran, or it waited";
        return Err(format!("`{}` {what}", trace.text(best.name)));
    }
    let other = |(f, samples): &(Function, u64)| Other {
        function: trace.text(f.name).to_owned(),
        module: trace.text(f.module).to_owned(),
        samples: *samples,
    };
    Ok((best, found.iter().skip(1).take(OTHERS).map(other).collect()))
}

/// The names that match in the strictest way in which any does.
pub(crate) fn matching(trace: &Trace, wanted: &str) -> FxHashSet<StringId> {
    let names = names(trace);
    let pattern = Regex::new(wanted).ok();
    let tests: [&dyn Fn(&str) -> bool; 5] = [
        &|name| name == wanted,
        &|name| name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with("::")),
        &|name| name.ends_with(wanted),
        &|name| name.contains(wanted),
        &|name| pattern.as_ref().is_some_and(|p| p.is_match(name)),
    ];
    let hits = |test: &&dyn Fn(&str) -> bool| -> FxHashSet<StringId> {
        names.iter().copied().filter(|&name| test(trace.text(name))).collect()
    };
    tests.iter().map(hits).find(|found| !found.is_empty()).unwrap_or_default()
}

/// All functions' names, each once.
fn names(trace: &Trace) -> FxHashSet<StringId> {
    let frames = (0..trace.stacks.frame_count()).map(|i| FrameId(i as u32));
    let all = frames.flat_map(|f| trace.names.locations(f)).map(|l| l.function);
    all.filter(|&name| !trace.text(name).is_empty()).collect()
}

/// A sentence that names what is nearest, among functions with samples.
fn nothing(trace: &Trace, leaves: &FxHashMap<FrameId, u64>, wanted: &str) -> String {
    let mut samples: FxHashMap<StringId, u64> = FxHashMap::default();
    for (&frame, n) in leaves {
        if let Some(outer) = trace.names.locations(frame).last() {
            *samples.entry(outer.function).or_default() += n;
        }
    }
    if samples.is_empty() {
        return "the samples of this trace have no function names".into();
    }
    let mut near: Vec<(usize, u64, &str)> = samples
        .into_iter()
        .map(|(name, n)| (trace.text(name), n))
        .map(|(name, n)| (distance(last_part(name), last_part(wanted)), n, name))
        .collect();
    near.sort_by_key(|(distance, n, name)| (*distance, std::cmp::Reverse(*n), *name));
    let close = near.iter().take_while(|(d, _, _)| *d <= last_part(wanted).len() / 2).count();
    if close == 0 {
        near.sort_by_key(|(_, n, name)| (std::cmp::Reverse(*n), *name));
    }
    let word = if close == 0 { "most samples are in" } else { "near it are" };
    let shown = if close == 0 { OFFERED } else { close.min(OFFERED) };
    let offered: Vec<String> = near.iter().take(shown).map(|(_, _, name)| format!("`{name}`")).collect();
    format!("no function is called {wanted}; {word} {}", offered.join(", "))
}

fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Letters to insert, delete or replace (Levenshtein 1966). O(a × b) for names of at most 256 bytes.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (a, b) = (&a[..a.len().min(256)], &b[..b.len().min(256)]);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(!x.eq_ignore_ascii_case(y));
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_count_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("Find_free", "find_free"), 0);
    }
}
