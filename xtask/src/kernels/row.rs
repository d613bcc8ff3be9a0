//! What came of a job, and the tables of all.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::jobs::{Expected, Job};
use crate::holdup::Holdup;

/// What came of a guest's jobs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    pub release: String,
    pub cpus: u32,
    /// By how many hooks it was recorded.
    pub hooks: usize,
    /// The one that sees threads come back.
    pub back: String,
    /// What the recorder said is missing.
    pub lacks: Vec<String>,
    pub lost: u64,
    pub answers: Vec<Answer>,
}

/// What came of a job.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub job: String,
    pub right: bool,
    pub text: String,
}

/// The hooks that see threads come back.
const BACK: [&str; 3] = ["tp_btf:sched_exit_tp", "fexit:schedule", "tp_btf:sys_exit"];

impl Row {
    /// What the guest's files in `results` say.
    pub fn of(release: &str, cpus: u32, jobs: &[&Job], results: &Path, holdup: &Holdup) -> Result<Row> {
        let mut row = Row {
            release: release.to_owned(),
            cpus,
            hooks: 0,
            back: String::new(),
            lacks: Vec::new(),
            lost: 0,
            answers: Vec::new(),
        };
        for job in jobs {
            let (right, text) = row.judge(job, results, holdup).unwrap_or_else(|e| (false, format!("{e:#}")));
            row.answers.push(Answer { job: job.name.to_owned(), right, text });
        }
        Ok(row)
    }

    fn judge(&mut self, job: &Job, results: &Path, holdup: &Holdup) -> Result<(bool, String)> {
        let read = |kind: &str| fs::read_to_string(results.join(format!("{}.{kind}", job.name)));
        let code = read("code").context("it was not begun")?;
        let said = read("log").unwrap_or_default();
        let truth = match &job.expected {
            Expected::Refusal(words) => {
                let sentence = said.lines().rfind(|line| line.contains(words)).unwrap_or(&said);
                let sentence = sentence.split(". ").next().unwrap_or_default();
                return Ok((code.trim() == "4" && said.contains(words), format!("code {}: {sentence}", code.trim())));
            }
            Expected::Finding(truth) => Some(truth),
            Expected::Answer => None,
        };
        if code.trim() != "0" {
            return Ok((false, format!("code {}: {}", code.trim(), said.lines().last().unwrap_or_default())));
        }
        let trace = results.join(format!("{}.holdup", job.name));
        self.add(&holdup.info(&trace)?);
        let explained = holdup.explain(&trace)?;
        let first = explained.findings.first();
        let text = first.map_or("nothing".to_owned(), |f| match f.function() {
            "" => f.kind.to_string(),
            function => format!("{} `{function}`", f.kind),
        });
        let is_right = truth.map_or(Ok(first.is_some()), |truth| truth.is_met_by(first))?;
        Ok((is_right, text))
    }

    fn add(&mut self, info: &crate::holdup::Info) {
        self.lost += info.lost();
        self.hooks = self.hooks.max(info.hooks.len());
        if let Some(hook) = BACK.iter().find(|hook| info.hooks.iter().any(|h| h == *hook)) {
            self.back = (*hook).to_owned();
        }
        for note in &info.notes {
            if !self.lacks.contains(note) {
                self.lacks.push(note.clone());
            }
        }
    }

    /// Whether everything is as it must be.
    pub fn is_right(&self) -> bool {
        self.answers.iter().all(|answer| answer.right)
    }

    /// For whoever waits for it.
    pub fn in_words(&self) -> String {
        let mut text = format!("{}, {} CPUs: {} hooks, {} lost\n", self.release, self.cpus, self.hooks, self.lost);
        self.lacks.iter().for_each(|lack| writeln!(text, "  {lack}").expect("text"));
        for Answer { job, right, text: answer } in &self.answers {
            writeln!(text, "  {} {job}: {answer}", if *right { "right" } else { "WRONG" }).expect("text");
        }
        text
    }
}

/// All rows in `folder`, by release and CPUs.
pub fn read(folder: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(folder)?.flatten().filter(|e| e.path().extension().is_some_and(|x| x == "json")) {
        let text = fs::read(entry.path())?;
        rows.push(serde_json::from_slice::<Row>(&text).with_context(|| entry.path().display().to_string())?);
    }
    rows.sort_by(|a, b| (a.cpus, &a.release).cmp(&(b.cpus, &b.release)));
    Ok(rows)
}

/// One table for guests that did the same jobs.
pub fn tables(rows: &[Row]) -> String {
    let jobs = |row: &Row| row.answers.iter().map(|answer| answer.job.clone()).collect::<Vec<_>>();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        let names = jobs(row);
        if i == 0 || jobs(&rows[i - 1]) != names {
            let first = if i == 0 { "" } else { "\n" };
            let rule = "---|".repeat(names.len());
            let head = names.join(" | ");
            write!(text, "{first}| kernel | CPUs | hooks | it lacked | {head} | lost |\n|---|---|---|---|{rule}---|\n")
                .expect("text");
        }
        let hooks = match row.back.as_str() {
            "" => row.hooks.to_string(),
            back => format!("{}, `{back}`", row.hooks),
        };
        let cell = |a: &Answer| if a.right { a.text.clone() } else { format!("**wrong**: {}", a.text) };
        let answers: Vec<String> = row.answers.iter().map(cell).collect();
        let Row { release, cpus, lost, .. } = row;
        let lacks = if row.lacks.is_empty() { "nothing".into() } else { row.lacks.join("; ") };
        writeln!(text, "| {release} | {cpus} | {hooks} | {lacks} | {} | {lost} |", answers.join(" | ")).expect("text");
    }
    text
}
