//! A row of `docs/real-programs.md`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use holdup_analysis::report::Confidence;
use holdup_base::stats::median;
use serde::{Deserialize, Serialize};

use super::said::Finding;

/// A real fix may beat the printed bound by this much: what measuring is off by.
const SLACK: f64 = 1.05;
/// A bound greater than the measured speed-up over this says little.
const TIGHT: f64 = 0.6;

/// What is kept of a case.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// The case's name.
    pub name: String,
    /// The program.
    pub title: String,
    /// The load.
    pub command: String,
    /// The truth, and what told it.
    pub truth: String,
    /// The first two findings.
    pub said: Vec<Answer>,
    /// The first stall.
    #[serde(default)]
    pub stall: Option<String>,
    /// How they are judged.
    pub verdict: Verdict,
    /// The bound that the first finding prints.
    pub gain_at_most: Option<f64>,
    /// The first finding with the client in focus.
    pub client: Option<(Verdict, Option<Answer>)>,
    /// The first finding with the machine in focus.
    pub machine: Option<(Verdict, Option<Answer>)>,
    /// The first finding from perf's recording.
    pub perf: Option<(Verdict, Option<Answer>)>,
    /// What the fix brought.
    pub bound: Option<Bound>,
}

/// A finding in short.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    kind: String,
    process: String,
    function: String,
    confidence: Confidence,
    title: String,
}

/// How an answer is judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Verdict {
    /// What the program's author would say.
    Right,
    /// Not false, but not enough to mend it.
    Vague,
    /// False, and said so that one may doubt it.
    Wrong,
    /// False, with confidence "high".
    WrongAndSure,
}

/// What the fix brought, beside what was printed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bound {
    fix: String,
    measured: f64,
    printed: Option<f64>,
}

impl Verdict {
    /// Whether it is false.
    pub fn is_wrong(self) -> bool {
        matches!(self, Verdict::Wrong | Verdict::WrongAndSure)
    }

    fn name(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Vague => "vague",
            Verdict::Wrong => "wrong",
            Verdict::WrongAndSure => "**wrong**",
        }
    }
}

impl Answer {
    /// What `finding` says.
    pub fn new(finding: &Finding) -> Self {
        Answer {
            kind: finding.word.clone(),
            process: finding.process().to_owned(),
            function: finding.function().to_owned(),
            confidence: finding.confidence,
            title: finding.title.clone(),
        }
    }

    fn in_short(&self) -> String {
        format!("{} `{}` of {} ({})", self.kind, self.function, self.process, self.confidence)
    }
}

impl Bound {
    /// Compares `printed` with the medians of `rates`, without the fix and with it.
    pub fn new(fix: &str, [held, fixed]: [Vec<f64>; 2], printed: Option<f64>) -> Self {
        Bound { fix: fix.to_owned(), measured: median(fixed) / median(held), printed }
    }

    fn in_words(&self) -> String {
        let judged = match self.printed {
            None => "no bound".to_owned(),
            Some(p) if self.measured > SLACK * p => format!("≤ {p:.2}×, broken"),
            Some(p) if p > self.measured.max(1.0) / TIGHT => format!("≤ {p:.2}×, loose"),
            Some(p) => format!("≤ {p:.2}×"),
        };
        format!("{}: {:.2}× ({judged})", self.fix, self.measured)
    }
}

impl Row {
    /// For a terminal.
    pub fn in_words(&self) -> String {
        let mut text = format!("{}: {}\n  truth   {}", self.name, self.verdict.name(), self.truth);
        let mut line = |what: &str, said: &str| {
            let _ = write!(text, "\n  {what:7} {said}");
        };
        for answer in &self.said {
            line("said", &format!("{}: {}", answer.in_short(), answer.title));
        }
        if let Some(stall) = &self.stall {
            line("stall", stall);
        }
        for (what, other) in [("client", &self.client), ("machine", &self.machine), ("perf", &self.perf)] {
            if let Some((verdict, answer)) = other {
                let said = answer.as_ref().map_or_else(nothing, |a| format!("{}: {}", a.in_short(), a.title));
                line(what, &format!("{}: {said}", verdict.name()));
            }
        }
        if let Some(bound) = &self.bound {
            line("fix", &bound.in_words());
        }
        text
    }

    fn in_table(&self) -> String {
        let said = |n: usize| self.said.get(n).map_or_else(nothing, Answer::in_short);
        let other = |o: &Option<(Verdict, Option<Answer>)>| {
            let said = |(verdict, answer): &(Verdict, Option<Answer>)| {
                format!("{}: {}", verdict.name(), answer.as_ref().map_or_else(nothing, Answer::in_short))
            };
            o.as_ref().map(said).unwrap_or_default()
        };
        let cells = [
            format!("{} (`{}`)", self.title, self.name),
            format!("`{}`", self.command),
            self.truth.clone(),
            self.stall.iter().fold(said(0), |said, stall| format!("{said}; stall: {stall}")),
            said(1),
            self.verdict.name().to_owned(),
            other(&self.client),
            other(&self.machine),
            other(&self.perf),
            self.bound.as_ref().map(Bound::in_words).unwrap_or_default(),
        ];
        format!("| {} |", cells.map(|c| c.replace('|', "\\|").replace('\n', " ")).join(" | "))
    }
}

fn nothing() -> String {
    "nothing held it up".to_owned()
}

/// The kept row of the case `name`, if there is one in the folder `results`.
pub fn read(results: &Path, name: &str) -> Option<Result<Row>> {
    let path = results.join(format!("{name}.json"));
    let text = std::fs::read(&path).ok()?;
    Some(serde_json::from_slice(&text).with_context(|| path.display().to_string()))
}

/// How many are right, vague and wrong.
pub fn sum(rows: &[Row]) -> String {
    let count = |v: Verdict| rows.iter().filter(|r| r.verdict == v).count();
    let wrong = count(Verdict::Wrong) + count(Verdict::WrongAndSure);
    let [all, right, vague, sure] =
        [rows.len(), count(Verdict::Right), count(Verdict::Vague), count(Verdict::WrongAndSure)];
    let bounds: Vec<&Bound> = rows.iter().filter_map(|r| r.bound.as_ref()).collect();
    let printed = bounds.iter().filter_map(|b| Some((b.measured, b.printed?)));
    let broken = printed.clone().filter(|(measured, p)| *measured > SLACK * p).count();
    let tight = printed.clone().filter(|(measured, p)| *p <= measured.max(1.0) / TIGHT).count();
    format!(
        "Of {all} programs, {right} are answered rightly, {vague} vaguely, {wrong} wrongly, {sure} of these with \
         confidence high. Of {} fixes {} have a printed bound; {broken} broke it, and in {tight} it is at most the \
         measured speed-up / {TIGHT}.",
        bounds.len(),
        printed.count(),
    )
}

/// The document.
pub fn page(rows: &[Row]) -> String {
    let mut text = format!(
        "# Real programs\n\n\
         Made by `cargo xtask real --bounds --machine --perf --table docs/real-programs.md`, which runs each program under its load, looks \
         at it with another instrument at the same time, records it with holdup, and compares. `cargo xtask real NAME` \
         tries one again; the names are in brackets. The programs come from Debian (`scripts/install-real.sh`), most of \
         them stripped, on a machine with 2 CPUs; where it has other work to do too (`cargo xtask real --busy`), findings that say so \
         (`cpu-starved`) are left out.\n\n\
         *Right*: the first finding names the kind of reason and the function that the program's author would name. \
         *Vague*: it is not false, or only the second one is right. *Wrong*: it sends one to the wrong place; in bold, \
         with confidence high, or by silence.\n\n{}\n\n\
         | program | load | truth, and how it is known | first finding | second | verdict | client in focus | machine in \
         focus | by perf | fix: measured (bound) |\n|---|---|---|---|---|---|---|---|---|---|\n",
        sum(rows)
    );
    for row in rows {
        text.push_str(&row.in_table());
        text.push('\n');
    }
    text
}
