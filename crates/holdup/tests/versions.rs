//! Files of all versions that there ever were are read, and say what they said.

mod outside;

use std::path::{Path, PathBuf};

use outside::{json, run};

/// Rows of the tables switch, wake, wait, futex and sample in the file of each version, as its own `holdup info` counted them.
const COUNTS: &[[u64; 5]] = &[[92, 43, 38, 16, 71], [109, 53, 47, 17, 64]];

fn file(version: usize) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../holdup-trace/tests/fixtures/v{version}.holdup"))
}

#[test]
fn files_of_each_version_are_read() {
    assert_eq!(
        COUNTS.len(),
        holdup_trace::file::VERSION as usize,
        "a new version needs a file in fixtures, and its counts"
    );
    for (version, counts) in (1..).zip(COUNTS) {
        let path = file(version).display().to_string();
        let info = json(&run(&["info", &path, "--json"]));
        let tables = ["switch", "wake", "wait", "futex", "sample"];
        assert_eq!(tables.map(|table| info["events"][table].as_u64().unwrap_or(0)), *counts, "{path}");
        let report = json(&run(&["explain", &path, "--json"]));
        let first = &report["findings"][0];
        assert_eq!((&first["kind"], &first["culprit"]["function"]), (&"lock-held".into(), &"hold".into()), "{path}");
        assert_eq!(first["waiters"]["threads"], 2, "{path}");
    }
}
