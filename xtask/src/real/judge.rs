//! Right, vague or wrong.

use std::path::Path;

use anyhow::{Context, Result};
use holdup_analysis::report::{Confidence, FindingKind};
use regex::Regex;

use super::case::{Case, Expect, Is, Recorded};
use super::row::{Answer, Row, Verdict};
use super::said::{Finding, Said, Stall};
use crate::holdup::Holdup;

/// Judges what is said of `recorded`: the program in focus, then its client.
pub fn row(case: &Case, holdup: &Holdup, recorded: &Recorded, busy: bool) -> Result<Row> {
    let said = Said::of(holdup, &recorded.trace, None)?;
    let first = said.first(busy && !case.expect.starves());
    let client =
        case.client.map(|c| other(case, c.expect, holdup, &recorded.trace, Some(c.process), busy)).transpose()?;
    Ok(Row {
        name: case.name.to_owned(),
        title: case.title.to_owned(),
        command: case.command.to_owned(),
        truth: format!("{} {}", case.truth, recorded.truth).trim().to_owned(),
        verdict: verdict(&case.expect, &first, &said)?,
        stall: said.stall().map(|s| s.title.clone()),
        gain_at_most: first.first().and_then(|f| f.gain_at_most),
        said: first.iter().map(Answer::new).collect(),
        client,
        machine: None,
        perf: None,
        bound: None,
    })
}

/// Judges what is said with another in focus.
pub fn other(
    case: &Case,
    expect: Expect,
    holdup: &Holdup,
    trace: &Path,
    focus: Option<&str>,
    busy: bool,
) -> Result<(Verdict, Option<Answer>)> {
    let said = Said::of(holdup, trace, focus).with_context(|| case.name)?;
    let first = said.first(busy && !expect.starves());
    Ok((verdict(&expect, &first, &said)?, first.first().map(Answer::new)))
}

fn verdict(expect: &Expect, first: &[Finding], said: &Said) -> Result<Verdict> {
    let stall = said.stall();
    let is = |finding: Option<&Finding>, any: &[Is]| -> Result<bool> {
        any.iter().try_fold(false, |found, is| {
            Ok(found
                || match is.stall {
                    "" => finding.map_or(Ok(false), |f| matches(is, f))?,
                    pattern => stalled(pattern, stall)?,
                })
        })
    };
    let (one, two) = (first.first(), first.get(1));
    let right = is(one, expect.right)? || (expect.nothing && one.is_none_or(is_idle));
    let vague = is(one, expect.vague)? || is(two, expect.right)?;
    Ok(match (right, vague, one) {
        (true, ..) => Verdict::Right,
        (_, true, _) => Verdict::Vague,
        // To say that nothing is held up is said without a doubt, unless it is said that this recording can't tell.
        (_, _, None) if said.doubts_itself() => Verdict::Wrong,
        (_, _, None) => Verdict::WrongAndSure,
        (_, _, Some(f)) if f.confidence == Confidence::High => Verdict::WrongAndSure,
        _ => Verdict::Wrong,
    })
}

/// Whether it says that there was no work, and not that something held it up.
fn is_idle(finding: &Finding) -> bool {
    finding.kind() == Some(FindingKind::IdleByDesign)
}

fn stalled(pattern: &str, stall: Option<&Stall>) -> Result<bool> {
    let pattern = Regex::new(pattern)?;
    Ok(stall.is_some_and(|s| s.says(|text| pattern.is_match(text))))
}

fn matches(is: &Is, finding: &Finding) -> Result<bool> {
    let pattern = |text: &str| Regex::new(text).with_context(|| format!("the pattern {text}"));
    let [who, function, hung, title] = [pattern(is.who)?, pattern(is.function)?, pattern(is.hung)?, pattern(is.title)?];
    Ok((is.kinds.is_empty() || finding.kind().is_some_and(|kind| is.kinds.contains(&kind)))
        && finding.who(|name| who.is_match(name))
        && finding.ran(|name| function.is_match(name))
        && finding.hung(|name| hung.is_match(name))
        && title.is_match(&finding.title))
}

#[cfg(test)]
mod tests {
    use holdup_analysis::report::FindingKind;

    use super::super::said::{Caveat, Culprit};
    use super::*;

    const LOCK: Is = Is { kinds: &[FindingKind::LockHeld], function: "^flush$", ..Is::ANY };
    const EXPECT: Expect = Expect { right: &[LOCK], vague: &[Is { who: "^db$", ..Is::ANY }], nothing: false };

    fn finding(kind: FindingKind, process: &str, function: &str, confidence: Confidence) -> Finding {
        let culprit = Culprit { process: Some(process.into()), function: Some(function.into()), ..Culprit::default() };
        Finding { word: kind.name().to_owned(), culprit: Some(culprit), confidence, ..Finding::default() }
    }

    fn said(findings: &[Finding]) -> Verdict {
        verdict(&EXPECT, findings, &Said::default()).unwrap()
    }

    #[test]
    fn a_right_finding_comes_first() {
        let right = finding(FindingKind::LockHeld, "db", "flush", Confidence::High);
        let wrong = finding(FindingKind::Serial, "client", "read", Confidence::High);
        assert_eq!(said(&[right.clone(), wrong.clone()]), Verdict::Right);
        assert_eq!(said(&[wrong.clone(), right]), Verdict::Vague);
        assert_eq!(said(&[wrong]), Verdict::WrongAndSure);
    }

    #[test]
    fn kind_and_function_both_count() {
        assert_eq!(said(&[finding(FindingKind::Serial, "other", "flush", Confidence::Low)]), Verdict::Wrong);
        assert_eq!(said(&[finding(FindingKind::LockHeld, "other", "flush_all", Confidence::Medium)]), Verdict::Wrong);
        assert_eq!(said(&[finding(FindingKind::LockHeld, "db", "flush_all", Confidence::High)]), Verdict::Vague);
    }

    #[test]
    fn a_stall_is_an_answer() {
        let right = &[Is { stall: "keysCommand", ..Is::ANY }];
        let expect = Expect { right, ..EXPECT };
        let stall = |title: &str| Stall { title: title.into(), ..Stall::default() };
        let of = |stall: Option<Stall>| {
            verdict(&expect, &[], &Said { stalls: stall.into_iter().collect(), ..Said::default() }).unwrap()
        };
        assert_eq!(of(Some(stall("20 clients waited for keysCommand"))), Verdict::Right);
        assert_eq!(of(Some(stall("20 clients waited for getCommand"))), Verdict::WrongAndSure);
        assert_eq!(of(None), Verdict::WrongAndSure);
    }

    #[test]
    fn silence_is_wrong_where_something_is_held_up() {
        assert_eq!(said(&[]), Verdict::WrongAndSure);
        let caveats = vec![Caveat { record: vec!["holdup record -- CMD".into()] }];
        let doubtful = Said { caveats, ..Said::default() };
        assert_eq!(verdict(&EXPECT, &[], &doubtful).unwrap(), Verdict::Wrong);
        assert_eq!(verdict(&Expect { nothing: true, ..EXPECT }, &[], &Said::default()).unwrap(), Verdict::Right);
    }
}
