//! What has no line of its own on the page: smaller causes, added up, and the names that are missing.

use std::io::{self, Write};

use holdup_analysis::label::{count, duration};
use holdup_analysis::report::{Finding, Nameless};

use super::super::wrap::cut;
use super::{FURTHER, Page, row};

/// What is smaller than this, all of it together, is not worth a line.
const LEAST_REST: f64 = 0.001;

impl Page<'_> {
    /// What would name the functions that are shown by address.
    pub(super) fn nameless(&self, out: &mut impl Write, findings: &[&Finding]) -> io::Result<()> {
        let of_first = findings.first().map(|f| [f.culprit.function.as_str(), f.waiters.function.as_str()]);
        let hot = self.answer.hot.iter().filter(|_| self.shows_hot(findings)).map(|h| h.function.as_str());
        let shown: Vec<&str> = of_first.into_iter().flatten().chain(hot).collect();
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let is_shown = |file: &&Nameless| {
            let start = base(&file.path) + "+0x";
            shown.iter().any(|function| function.starts_with(&start))
        };
        let files: Vec<&Nameless> = self.answer.nameless.iter().filter(is_shown).collect();
        let Some(first) = files.first() else { return Ok(()) };
        let base = base(&first.path);
        let id = if first.build_id.is_empty() { String::new() } else { format!(" for build id {}", first.build_id) };
        let others = match files.len() {
            1 => String::new(),
            2 => " and another file".to_owned(),
            n => format!(" and {} other files", n - 1),
        };
        let what = format!("functions of {}{others} have no names", cut(&first.path, 40));
        row(
            out,
            "Note",
            &format!("{what}: install {base}-dbgsym or the like, or ask debuginfod{id}, and record again."),
        )
    }

    /// What held threads up and has no line, added up.
    pub(super) fn rest(&self, shown: &[&Finding]) -> Option<String> {
        let lines = &shown[..shown.len().min(1 + FURTHER)];
        let others = self.answer.findings.iter().filter(|f| f.is_cause());
        let others: Vec<f64> = others.filter(|f| lines.iter().all(|l| l.id != f.id)).map(|f| f.blame_cpu_s).collect();
        let smaller = &self.answer.smaller;
        let (n, sum) = (others.len() + smaller.causes, others.iter().sum::<f64>() + smaller.blame_cpu_s);
        let causes = if n == 1 { "1 smaller cause".to_owned() } else { format!("{} smaller causes", count(n as u64)) };
        let matters = sum >= LEAST_REST * self.answer.cpu_seconds.total;
        (n > 0 && matters).then(|| format!("{causes}: {} of CPU time in all (--all)", duration(sum)))
    }
}
