//! What held the CPUs up, and when: the explanation, and its charges over time.

use holdup_analysis::blame::{self, Asked, Course, Key, Study as Swept, Window as Span};
use holdup_analysis::{Explanation, Options, explain_study};
use holdup_trace::{Table, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::Base;
use crate::parts::{Parts, touched};
use crate::study::Study;
use crate::usage::{Series, resample};
use crate::window::Grid;
use crate::{Cancel, Error, Result};

/// Steps of what was charged in a bucket of the base.
const FINER: u64 = 8;
/// Findings that are told apart in the use of the CPUs.
const TOLD: usize = 8;

/// The explanation, and whom it names.
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    /// By finding: the thread that is its culprit.
    pub(crate) culprits: Vec<Option<ThreadIdx>>,
    /// CPU nanoseconds charged to each thread.
    pub(crate) blame: Vec<f64>,
    /// Which subjects belong to which of `told`, from 1 on.
    series: FxHashMap<Key, usize>,
    /// The findings that are told apart, by id.
    told: Vec<String>,
    /// By steps of `width` nanoseconds.
    course: Course,
    width: u64,
}

impl Study {
    /// What the sweep looks at, from `from` to `to`.
    pub(crate) fn swept(&self, from: u64, to: u64) -> Swept<'_> {
        Swept {
            trace: self.trace,
            timeline: &self.timeline,
            focus: &self.focus,
            classifier: self.classifier,
            spins: &self.spins,
            window: Span { from, to },
        }
    }
}

impl Explained {
    /// Explains the trace. O(events): slow.
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn new(study: &Study, base: &Base) -> Result<Self> {
        let swept = study.swept(0, study.timeline.end);
        let (explanation, blame) = explain_study(&swept, &study.name, &Options::default(), study.disassembler)?;
        let mut series = FxHashMap::default();
        let mut told = Vec::new();
        let about = |f: &&holdup_analysis::report::Finding| f.is_cause() && !f.about.subjects.is_empty();
        for finding in explanation.findings.iter().filter(about).take(TOLD) {
            told.push(finding.id.clone());
            for subject in &finding.about.subjects {
                series.entry(*subject).or_insert(told.len());
            }
        }
        let width = (base.width / FINER).max(1);
        let steps = study.timeline.end.max(1).div_ceil(width);
        let asked =
            Asked { from: 0, width: width as f64, steps: steps as usize, series: &series, count: told.len() + 1 };
        let course = blame::over_time(&study.swept(0, steps * width), &asked, || false)?;
        let culprits = explanation.findings.iter().map(|f| culprit(study, f)).collect();
        Ok(Explained { explanation, culprits, blame, series, told, course, width })
    }

    /// The place of a finding in the list.
    ///
    /// # Errors
    /// If there is none of that id.
    pub(crate) fn finding(&self, id: &str) -> Result<usize> {
        let at = self.explanation.findings.iter().position(|f| f.id == id);
        at.ok_or_else(|| Error::Question(format!("there is no finding {id}")))
    }

    /// The threads that have a part in a finding: culprits and waiters.
    pub(crate) fn threads(&self, finding: usize) -> FxHashSet<ThreadIdx> {
        let about = &self.explanation.findings[finding].about;
        about.culprits.iter().chain(&about.waiters).copied().chain(self.culprits[finding]).collect()
    }

    /// What the CPUs did, with what held them up told apart.
    ///
    /// # Errors
    /// If a table is damaged, or if nobody wants to know any more.
    pub(crate) fn usage(
        &self,
        study: &Study,
        parts: &Parts,
        grid: Grid,
        cancel: &Cancel,
    ) -> Result<Vec<(String, Series)>> {
        let course = if grid.width() < self.width as f64 {
            let Self { series, told, .. } = self;
            let asked = Asked { from: grid.from, width: grid.width(), steps: grid.px, series, count: told.len() + 1 };
            let swept = study.swept(grid.from, grid.to);
            let found = parts.map(&study.timeline, touched(&study.timeline, grid.from, grid.to), cancel, |chunk| {
                blame::over_part(&swept, chunk, &asked)
            })?;
            let mut sum = Course::new(asked.steps, asked.count);
            found.into_iter().flatten().for_each(|(first, course)| sum.add(first, &course));
            sum
        } else {
            self.resampled(grid)
        };
        Ok(self.named(course, grid, study.timeline.cpus as f32))
    }

    fn resampled(&self, grid: Grid) -> Course {
        let of = |steps: &Vec<f32>| {
            let mut sum = vec![0.0; grid.px];
            resample(steps, self.width, grid, &mut sum);
            sum
        };
        let from = &self.course;
        Course {
            running: of(&from.running),
            spin: of(&from.spin),
            other: of(&from.other),
            runnable_idle: of(&from.runnable_idle),
            no_work: of(&from.no_work),
            lost: of(&from.lost),
            charged: from.charged.iter().map(of).collect(),
        }
    }

    /// The series in the order of stacking, in CPUs: together they are all CPUs.
    fn named(&self, mut course: Course, grid: Grid, cpus: f32) -> Vec<(String, Series)> {
        let width = grid.width() as f32;
        let all = [&mut course.running, &mut course.spin, &mut course.other, &mut course.no_work, &mut course.lost];
        all.into_iter().chain(&mut course.charged).flatten().for_each(|v| *v = (*v / width).max(0.0));
        // Samples come one at a time: in a narrow pixel one may stand for more than ran there.
        let spin: Series = course.spin.iter().zip(&course.running).map(|(s, r)| s.min(*r)).collect();
        let busy: Series = course.running.iter().zip(&spin).map(|(r, s)| r - s).collect();
        let mut charged = course.charged.into_iter();
        let rest = charged.next().unwrap_or_default();
        let mut series = vec![("busy".to_owned(), busy), ("spin".to_owned(), spin), ("other".to_owned(), course.other)];
        series.extend(self.told.iter().map(|id| format!("held:{id}")).zip(charged));
        series.push(("held:rest".to_owned(), rest));
        let known = |px: usize| series.iter().map(|(_, s)| s[px]).sum::<f32>() + course.no_work[px] + course.lost[px];
        let runnable = (0..grid.px).map(|px| (cpus - known(px)).max(0.0)).collect();
        series.push(("runnable_idle".to_owned(), runnable));
        series.push(("no_work".to_owned(), course.no_work));
        series.push(("lost".to_owned(), course.lost));
        series
    }
}

/// The thread that a finding names.
fn culprit(study: &Study, finding: &holdup_analysis::report::Finding) -> Option<ThreadIdx> {
    let (trace, named) = (study.trace, &finding.culprit);
    let is = |t: &holdup_trace::tables::Thread| {
        t.tid == named.tid && t.pid == named.pid && trace.text(t.name) == named.thread
    };
    let about = &finding.about.culprits;
    let known = about.iter().copied().find(|c| trace.thread(*c).is_some_and(|t| is(&t)));
    let any = || trace.threads.rows().enumerate().skip(1).find(|(_, t)| is(t)).map(|(i, _)| ThreadIdx(i as u32));
    known.or_else(any)
}
