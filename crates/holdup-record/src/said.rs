//! What the BPF library says: kept for sentences about what failed.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

/// From here on what libbpf says is kept, anew, instead of printed.
pub(crate) fn keep() {
    LOG.lock().map(|mut log| log.clear()).ok();
    libbpf_rs::set_print(Some((PrintLevel::Debug, keep_log)));
}

/// What libbpf had to say about a failure. HOLDUP_BPF_LOG=1 prints all of it.
static LOG: Mutex<String> = Mutex::new(String::new());

#[expect(clippy::needless_pass_by_value, reason = "the library's signature")]
fn keep_log(_: PrintLevel, text: String) {
    if std::env::var_os("HOLDUP_BPF_LOG").is_some() {
        eprint!("{text}");
    }
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&text);
    }
}

/// The first failure that was told of.
pub(crate) fn reason() -> String {
    let log = all();
    let line = log
        .lines()
        .find(|l| l.contains("not allowed") || (l.contains("failed") && !l.contains("optional")))
        .or_else(|| log.lines().next());
    line.unwrap_or("libbpf says no more").trim().to_owned()
}

/// All that was said since it was kept anew.
pub(crate) fn all() -> String {
    LOG.lock().map(|log| log.clone()).unwrap_or_default()
}
