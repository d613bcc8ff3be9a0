//! Waits until what was written is on the disk: what asks for that, and what to do about it.

use super::context::Context;
use super::place;
use super::tally::Tally;

/// Functions of the kernel that wait until what was written is on the disk.
const FLUSHES: &[&str] = &[
    "do_fsync",
    "vfs_fsync_range",
    "generic_write_sync",
    "ext4_sync_file",
    "xfs_file_fsync",
    "btrfs_sync_file",
    "ksys_sync",
    "__x64_sys_msync",
    "__arm64_sys_msync",
];

/// Functions of databases below which they do so, and what their users can do.
const KNOWN: [(&[&str], &str); 4] = [
    (
        &["XLogFlush", "issue_xlog_fsync"],
        "PostgreSQL waits for its log at each commit: do more in a transaction, let several commit at once (commit_delay), or set \
         synchronous_commit to off where the last few may be lost.",
    ),
    (
        &["log_write_up_to", "log_t::write_buf", "trx_commit_complete_for_mysql", "ha_commit_trans"],
        "MariaDB and MySQL wait for their logs at each commit: do more in a transaction, or set innodb_flush_log_at_trx_commit to 2 and \
         sync_binlog to 0 where the last second may be lost.",
    ),
    (
        &["sqlite3PagerCommitPhaseOne", "sqlite3VdbeHalt", "sqlite3BtreeCommitPhaseOne", "sqlite3PagerSync"],
        "SQLite waits for the disk at each commit: do more in a transaction, or use a write-ahead log that does not (PRAGMA \
         journal_mode=WAL, synchronous=NORMAL).",
    ),
    (
        &["flushAppendOnlyFile"],
        "Redis waits for its log at each command: let it do so once a second (appendfsync everysec), or send several at once.",
    ),
];

/// What to do where others ask for it, such as the kernel's workers for who uses io_uring.
pub(super) const OF_DEVICE: &str = "Most of it is for flushes of the device's cache, which an fsync makes, O_SYNC, or a journal's commit: do that \
                                    once for several, or not where the last of it may be lost.";

/// Whether most of the time at the disk is at sites below one of these functions. O(frames of the finding's stacks).
fn is_mostly(context: &Context, tally: &Tally, functions: &[&str]) -> bool {
    tally.share_of_sites(|stack| place::has(context, stack, |name| functions.contains(&name))) > 0.5
}

/// Whether it is for that. Who commits less often is spared the rest of what a commit is, too, of the journal's and of his own.
pub(super) fn is_it(context: &Context, tally: &Tally) -> bool {
    is_mostly(context, tally, FLUSHES)
}

/// What to do in `function`, if it is that.
pub(super) fn advice(context: &Context, tally: &Tally, function: &str) -> Option<String> {
    if !is_it(context, tally) {
        return None;
    }
    let known = KNOWN.iter().find(|(functions, _)| is_mostly(context, tally, functions));
    let known = known.map(|(_, advice)| (*advice).to_owned());
    Some(known.unwrap_or_else(|| {
        format!(
            "It waits until what it wrote is on the disk (fsync, O_SYNC): do that once for several in {function}, or not where the last of it may \
             be lost."
        )
    }))
}
