//! Many threads in few words.

use std::collections::BTreeMap;

/// Names shown at most; the rest is counted.
const SHOWN: usize = 3;

/// `compiler-00 … compiler-11` for names that differ by a number, `nginx (8 threads)` for equal ones, the greatest
/// groups first.
pub(crate) fn grouped<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        groups.entry(stem(name)).or_default().push(name);
    }
    let mut groups: Vec<Vec<&str>> = groups.into_values().collect();
    groups.sort_by_key(|names| std::cmp::Reverse(names.len()));
    let more: usize = groups.iter().skip(SHOWN).map(Vec::len).sum();
    let mut words: Vec<String> = groups.into_iter().take(SHOWN).map(together).collect();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words
}

/// A name without the number at its end.
pub(crate) fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn together(mut names: Vec<&str>) -> String {
    // By number: worker-9 comes before worker-10.
    names.sort_by_key(|name| (name.len(), *name));
    let (first, last, count) = (names[0], names[names.len() - 1], names.len());
    let shown = if first.is_empty() { "(unnamed)" } else { first };
    match count {
        1 => shown.to_owned(),
        _ if first == last => format!("{shown} ({count} threads)"),
        2 => format!("{first}, {last}"),
        _ => format!("{first} … {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn like_names_come_together() {
        let names = ["w-10", "main", "w-9", "w-11", "nginx", "nginx"];
        assert_eq!(grouped(names.into_iter()), ["w-9 … w-11", "nginx (2 threads)", "main"]);
        assert_eq!(grouped(["a1", "a2", "b", "c", "d", "e"].into_iter()), ["a1, a2", "b", "c", "2 more"]);
        assert_eq!(grouped(["", ""].into_iter()), ["(unnamed) (2 threads)"]);
    }
}
