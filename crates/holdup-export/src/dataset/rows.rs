//! What the tables of a data set say of one trace.

use std::collections::BTreeMap;

use holdup_analysis::Explanation;
use holdup_analysis::blame::Study;
use holdup_analysis::explore::relation::{Column, Data};
use holdup_analysis::explore::{self, Explorer, Process, Query, Stop, TableKind};
use holdup_analysis::report::Finding;

use super::schema::{BUILDS, FINDINGS, FUNCTIONS, LOCKS, Rows, STACKS, TableDoc, Value, WAIT_SITES, nanos};
use crate::stacks::{Kind, weigh};
use crate::{Result, Source};

/// Rows of a table for each trace; what is beyond is one row.
const MOST: usize = 1000;
/// What that row says instead of names.
const OTHERS: &str = "(others)";

/// A trace and what was found in it.
pub struct Told<'a> {
    pub trace: &'a str,
    pub study: &'a Study<'a>,
    pub source: &'a Source<'a>,
    pub explanation: &'a Explanation,
}

/// A table made from groups of rows of one that `holdup table` knows.
struct Grouped {
    to: &'static TableDoc,
    from: TableKind,
    by: &'static [&'static str],
    /// The first is by what they rank; `max` of the others is not added up.
    measures: &'static [&'static str],
    filter: Option<&'static str>,
}

const GROUPED: [Grouped; 3] = [
    Grouped {
        to: &WAIT_SITES,
        from: TableKind::Waits,
        by: &["process", "kind", "function", "blocked"],
        measures: &["sum:wait", "count", "max:wait"],
        filter: Some("kind != kernel-idle"),
    },
    Grouped {
        to: &LOCKS,
        from: TableKind::Locks,
        by: &["process", "kind", "function", "waker-function"],
        measures: &["sum:wait", "count", "max:wait"],
        filter: None,
    },
    Grouped {
        to: &FUNCTIONS,
        from: TableKind::Cpu,
        by: &["process", "module", "function"],
        measures: &["sum:weight", "count"],
        filter: None,
    },
];

impl Told<'_> {
    /// All tables but that of traces.
    pub fn tables(&self) -> Result<Vec<Rows>> {
        let explorer = Explorer::new(self.source.trace).with_timeline(self.study.timeline);
        let builds = self.builds()?;
        let mut all = vec![self.findings(&builds)];
        for grouped in &GROUPED {
            all.push(self.grouped(&explorer, grouped)?);
        }
        all.push(self.stacks()?);
        let mut rows = Rows::new(&BUILDS);
        builds.iter().for_each(|(module, id)| rows.push([self.trace.into(), (*module).into(), (*id).into()]));
        all.push(rows);
        Ok(all)
    }

    fn findings(&self, builds: &BTreeMap<&str, &str>) -> Rows {
        let mut rows = Rows::new(&FINDINGS);
        for (i, finding) in self.explanation.findings.iter().enumerate() {
            let Finding { culprit, waiters, lock, .. } = finding;
            rows.push([
                self.trace.into(),
                (i as u64 + 1).into(),
                finding.kind.name().into(),
                u64::from(finding.is_cause()).into(),
                finding.confidence.name().into(),
                culprit.process.as_str().into(),
                culprit.thread.as_str().into(),
                culprit.function.as_str().into(),
                culprit.module.as_str().into(),
                builds.get(culprit.module.as_str()).copied().unwrap_or_default().into(),
                culprit.source.as_str().into(),
                lock.as_ref().map_or("", |l| l.kind.name()).into(),
                lock.as_ref().map_or("", |l| l.name.as_str()).into(),
                waiters.function.as_str().into(),
                nanos(finding.blame_cpu_s),
                nanos(waiters.total_s),
                waiters.waits.into(),
                (waiters.threads as u64).into(),
                nanos(waiters.max_s),
                Value::Number(finding.gain_at_most.map_or(0, |gain| (gain * 1000.0).round() as i64)),
                finding.title.as_str().into(),
                finding.advice.as_str().into(),
            ]);
        }
        rows
    }

    fn grouped(&self, explorer: &Explorer, grouped: &Grouped) -> Result<Rows> {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        let query = Query {
            by: words(grouped.by),
            measures: words(grouped.measures),
            filters: grouped.filter.map(str::to_owned).into_iter().collect(),
            process: self.source.options.focus.clone().map_or(Process::Recorded, Process::Named),
            ..Query::new(grouped.from)
        };
        let answer = explorer.run(&query, &Stop::default()).map_err(told)?;
        let (names, measures) = answer.columns.split_at(grouped.by.len());
        let mut rows = Rows::new(grouped.to);
        for row in 0..answer.len().min(MOST) {
            rows.push_all(self.row(names.iter().map(|c| text(c, row)), measures.iter().map(|c| number(c, row))));
        }
        if answer.len() > MOST {
            let rest = |(column, name): (&Column, &&str)| {
                let values = (MOST..answer.len()).map(|row| number(column, row));
                if name.starts_with("max:") { values.max().unwrap_or_default() } else { values.sum() }
            };
            let names = names.iter().map(|_| OTHERS.to_owned());
            rows.push_all(self.row(names, measures.iter().zip(grouped.measures).map(rest)));
        }
        Ok(rows)
    }

    fn row(&self, names: impl Iterator<Item = String>, measures: impl Iterator<Item = u64>) -> Vec<Value> {
        std::iter::once(self.trace.into()).chain(names.map(Value::from)).chain(measures.map(Value::from)).collect()
    }

    fn stacks(&self) -> Result<Rows> {
        let found = weigh(self.study, &[Kind::Blame], false)?;
        let name = |id: &u32| found.names.get(*id as usize).map_or("", |n| n.name.as_str()).replace(';', ":");
        let paths = found.groups.iter().flat_map(|group| &group.paths);
        let mut all: Vec<(u64, String)> =
            paths.map(|(path, ns)| (*ns, path.iter().map(name).collect::<Vec<_>>().join(";"))).collect();
        all.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let rest: u64 = all.iter().skip(MOST).map(|(ns, _)| ns).sum();
        all.truncate(MOST);
        all.extend((rest > 0).then(|| (rest, OTHERS.to_owned())));
        let mut rows = Rows::new(&STACKS);
        all.into_iter().for_each(|(ns, stack)| rows.push([self.trace.into(), stack.into(), ns.into()]));
        Ok(rows)
    }

    /// Files that held code, with their build ids.
    fn builds(&self) -> Result<BTreeMap<&str, &str>> {
        let trace = self.source.trace;
        let told = trace.images.iter().map(|image| image.map(|i| (trace.text(i.path), trace.text(i.build_id))));
        Ok(told.collect::<holdup_trace::Result<_>>()?)
    }
}

fn text(column: &Column, row: usize) -> String {
    match &column.data {
        Data::Text(text) => text.get(row).to_owned(),
        Data::Numbers(_) | Data::Reals(_) => number(column, row).to_string(),
    }
}

fn number(column: &Column, row: usize) -> u64 {
    match &column.data {
        Data::Numbers(numbers) => numbers[row],
        Data::Reals(reals) => reals[row].round() as u64,
        Data::Text(_) => 0,
    }
}

fn told(error: explore::Error) -> crate::Error {
    match error {
        explore::Error::Trace(e) => e.into(),
        other => holdup_trace::Error::Input(other.to_string()).into(),
    }
}
