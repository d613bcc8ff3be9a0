//! What `holdup lab reproduce` prints.

use std::io::Write;

use holdup_analysis::contention::{HoldTime, LockUse, Role};
use holdup_analysis::label::duration;
use holdup_base::numbers::count;
use holdup_base::text::clean;
use holdup_lab::reproduce::Report;

use super::{screen, wrap};

/// The lock in words: its name where it has one, else where it is.
pub fn lock_words(used: &LockUse) -> String {
    let lock = &used.lock;
    match (lock.name.is_empty(), lock.address.is_empty()) {
        (false, _) => lock.name.clone(),
        (true, false) => format!("{} at {}", lock.kind.name(), lock.address),
        (true, true) => "a lock without a name".to_owned(),
    }
}

/// Prints who used the lock how.
pub fn print_recorded(used: &LockUse) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    writeln!(out, "{}", wrap::paragraph(&format!("{}  ", used.finding), &clean(&used.title)))?;
    let others = match used.others {
        0 => String::new(),
        n => format!("; the one that was waited for most, of {}", count(n as u64 + 1)),
    };
    writeln!(out, "{}", wrap::paragraph("    ", &format!("the lock: {}{others}", clean(&lock_words(used)))))?;
    writeln!(out, "\n    {:<32} {:>7} {:>8} {:>12} {:>12}", "as recorded", "threads", "takings", "a hold", "waited")?;
    for role in &used.roles {
        let name: String = clean(&role.names.join(", ")).chars().take(32).collect();
        let waited = duration(role.waited.seconds());
        writeln!(out, "    {name:<32} {:>7} {:>8} {:>12} {waited:>12}", role.threads, count(role.takings), hold(role))?;
    }
    Ok(out.flush()?)
}

fn hold(role: &Role) -> String {
    let of = |hold: &HoldTime| (hold.ran + hold.blocked).seconds();
    match role.holds.len() {
        0 => "not seen".to_owned(),
        n => duration(role.holds.iter().map(of).sum::<f64>() / n as f64),
    }
}

/// Prints what came out.
pub fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let [there, here] = report.waiting;
    let word = if report.reproduced { "reproduced" } else { "not reproduced here" };
    let more = match report.takings_for_each_seen {
        1.0 => String::new(),
        more => format!(", with {more:.0} takings for each that somebody had to wait for or waited in"),
    };
    let base = duration(report.base_s.median);
    let what = format!(
        "{word}: {there:.2} threads waited on average where it was recorded, {here:.2} do here{more}; a round takes {base}"
    );
    writeln!(out, "\n{}", wrap::paragraph("  ", &what))?;
    let changes = || report.changes.iter().map(|tried| clean(&tried.change).into_owned());
    let width = changes().map(|words| words.chars().count()).max().unwrap_or(0).clamp(24, 60);
    writeln!(out, "\n    {:<width$} {:>8} {:>16} {:>8}", "the same work", "faster", "rounds", "waiting")?;
    for (tried, words) in report.changes.iter().zip(changes()) {
        let gain = &tried.gain;
        let rounds = format!("{:.2} to {:.2}", gain.low, gain.high);
        writeln!(out, "    {words:<width$} {:>7.2}× {rounds:>16} {:>8.2}", gain.median, tried.waiting)?;
    }
    for doubt in &report.doubts {
        writeln!(out, "\n{}", wrap::paragraph("  note: ", &clean(doubt)))?;
    }
    Ok(out.flush()?)
}
