//! Which of some names a person may have meant.

/// Edits that turn `a` into `b`: a character more, less or other. O(length of `a` × length of `b`).
pub use strsim::levenshtein as distance;

/// How far `name` is from `wanted`, for sorting: names that contain it, or that it contains, are nearest.
pub fn rank(wanted: &str, name: &str) -> (bool, usize) {
    // A name may be as long as a file's path; nobody mistypes that much.
    let cut = |text: &str| text.chars().take(64).collect::<String>().to_lowercase();
    let (wanted, name) = (cut(wanted), cut(name));
    let apart = name.is_empty() || wanted.is_empty() || !(name.contains(&wanted) || wanted.contains(&name));
    (apart, distance(&wanted, &name))
}

/// The nearest of `names`, if it is near enough to ask whether it was meant.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (rank, name) = names.into_iter().map(|name| (rank(wanted, name), name)).min()?;
    let near = !rank.0 || rank.1 <= 1 + wanted.chars().count() / 3;
    near.then_some(name)
}

/// ` (did you mean NAME?)` with the nearest of `names`; empty if none is near enough.
pub fn hint<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, names).map_or(String::new(), |name| format!(" (did you mean {name}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_comes_first() {
        let names = ["bash", "nginx", "ninja", "systemd"];
        assert_eq!(nearest("ngnix", names), Some("nginx"));
        assert_eq!(nearest("systemd-journal", names), Some("systemd"));
        assert_eq!(nearest("NGINX", names), Some("nginx"));
        assert_eq!(nearest("postgres", names), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!((distance("kitten", "sitting"), distance("", "ab"), distance("é", "e")), (3, 2, 1));
    }
}
