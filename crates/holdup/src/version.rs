//! What this build is.

use std::sync::LazyLock;

/// Of the crate's features those that this build has.
const FEATURES: &[(&str, bool)] = &[
    ("script", cfg!(feature = "script")),
    ("cql", cfg!(feature = "cql")),
    ("postgres", cfg!(feature = "postgres")),
    ("http", cfg!(feature = "http")),
    ("redis", cfg!(feature = "redis")),
    ("https", cfg!(feature = "https")),
    ("png", cfg!(feature = "png")),
];

/// What `--version` prints behind the name: the version, the features that were built in, and for which machines.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let has: Vec<&str> = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
        let features = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
        let library = if cfg!(target_env = "musl") { "musl" } else { "glibc" };
        let optimised = if cfg!(debug_assertions) { ", not optimised" } else { "" };
        format!(
            "{}\nfeatures: {features}\nbuilt for: {} {}, {library}{optimised}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH,
        )
    });
    &TEXT
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_built_in_is_told() {
        let text = super::long();
        assert!(text.starts_with(env!("CARGO_PKG_VERSION")));
        assert_eq!(text.contains("postgres"), cfg!(feature = "postgres"));
        assert_eq!(text.lines().count(), 3);
    }
}
