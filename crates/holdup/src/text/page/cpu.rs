//! Where the CPU time went, in words.

use std::io::{self, Write};

use holdup_analysis::Explanation;
use holdup_analysis::report::{Finding, FindingKind};

use super::super::wrap::width;
use super::{LABEL, row_as_is};

/// Parts below this share are left out.
const SMALLEST: f64 = 0.005;

/// One line for each large part, the others side by side.
pub fn write(out: &mut impl Write, answer: &Explanation, findings: &[&Finding]) -> io::Result<()> {
    let cpu = &answer.cpu_seconds;
    let all = answer.trace.focus.is_empty();
    let total = cpu.total.max(f64::MIN_POSITIVE);
    let whose = if all { "programs" } else { "your program" };
    let parts = [
        (cpu.busy, format!("{whose} worked")),
        (cpu.spin, format!("{whose} spun, waiting for another CPU")),
        (cpu.held_up, format!("stood still, waiting for {}", cause(answer, findings))),
        (cpu.runnable_idle, "ready, but not scheduled".to_owned()),
        (cpu.other, others(answer, findings).to_owned()),
        (cpu.no_work, "nothing to do".to_owned()),
        (cpu.lost, unknown(answer).to_owned()),
    ];
    let said = parts.iter().filter(|(s, _)| s / total >= SMALLEST);
    let words: Vec<String> = said.map(|(s, what)| format!("{:>3.0} % {what}", 100.0 * s / total)).collect();
    lines(&words).iter().enumerate().try_for_each(|(i, line)| {
        let label = if i == 0 { "CPU time" } else { "" };
        row_as_is(out, label, line)
    })
}

/// As many in a line as have room.
fn lines(words: &[String]) -> Vec<String> {
    let room = width() - LABEL;
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + word.chars().count() <= room => {
                line.push_str("   ");
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}

/// What the idle CPUs waited for.
fn cause(answer: &Explanation, findings: &[&Finding]) -> &'static str {
    let charged: f64 =
        answer.findings.iter().filter(|f| f.kind != FindingKind::CpuBound).map(|f| f.share_of_held_up).sum();
    match findings.first().filter(|first| first.is_cause()) {
        Some(first) if first.share_of_held_up >= 0.8 * charged => "the above",
        Some(_) => "the above and smaller causes",
        None => "smaller causes",
    }
}

/// Who else ran, and where.
fn others(answer: &Explanation, findings: &[&Finding]) -> &'static str {
    let cpu = &answer.cpu_seconds;
    let stood = findings.iter().filter(|f| f.is_cause()).map(|f| f.blame_cpu_s).sum::<f64>();
    // What others used of the CPUs that stood still is not idle, and yet it is what the program missed.
    let many = cpu.other > 0.1 * cpu.total;
    if many && stood > 2.0 * (cpu.held_up + cpu.runnable_idle) && stood > 0.02 * cpu.total {
        "other programs, also where yours stood still"
    } else {
        "other programs"
    }
}

fn unknown(answer: &Explanation) -> &'static str {
    if answer.health.lost_events > 0 { "unknown: events were lost" } else { "unknown: not in this trace" }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn short_parts_share_a_line() {
        let words = ["59 % a".to_owned(), "x".repeat(70), " 7 % b".to_owned(), " 1 % c".to_owned()];
        let lines = lines(&words);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2], " 7 % b    1 % c");
    }
}
