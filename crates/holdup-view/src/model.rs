//! A trace that answers the page's questions.

use std::sync::{Mutex, OnceLock, PoisonError};

use holdup_analysis::report::Culprit;
use holdup_analysis::{Disassembler, Explanation, Options};
use holdup_trace::{Table, ThreadIdx, Trace};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::base::Base;
use crate::parts::Parts;
use crate::people::{People, Row};
use crate::request::{Ask, Question, Selection, UseOf};
use crate::rows::Rows;
use crate::study::Study;
use crate::window::Grid;
use crate::{Answer, Cancel, Error, Result, at, lanes, summary, usage};

/// A trace that answers the page's questions. It may be asked by several threads at once.
pub struct Model {
    study: Study,
    people: People,
    base: Base,
    parts: Parts,
    rows: Mutex<Option<(bool, std::sync::Arc<Rows>)>>,
    explained: OnceLock<Explained>,
    /// Whoever explains first lets the others wait.
    explaining: Mutex<()>,
}

/// The explanation, and whom it names.
struct Explained {
    explanation: Explanation,
    /// By finding.
    culprits: Vec<Option<ThreadIdx>>,
}

#[derive(Serialize)]
struct ExplainDocument<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    culprit_rows: Vec<Option<String>>,
}

impl Model {
    /// Follows the trace, which is called `name`, twice. O(events) time; it is kept for as long as the process lives.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn open(trace: Trace, name: &str, disassembler: Box<dyn Disassembler + Send>) -> Result<Self> {
        let study = Study::new(trace, name, disassembler)?;
        let base = Base::new(&study)?;
        Ok(Model {
            people: People::new(&study),
            base,
            study,
            parts: Parts::default(),
            rows: Mutex::default(),
            explained: OnceLock::new(),
            explaining: Mutex::new(()),
        })
    }

    /// Bytes that are kept for wide windows.
    pub fn base_bytes(&self) -> usize {
        self.base.bytes()
    }

    /// Answers a question as the page sends it: JSON in, framed bytes out, whatever is wrong with it.
    pub fn ask_json(&self, question: &[u8], cancel: &Cancel) -> Vec<u8> {
        Answer::of(Question::parse(question).and_then(|q| self.ask(&q.ask, cancel))).0
    }

    /// Answers a question.
    ///
    /// # Errors
    /// If it makes no sense, if the trace cannot be read, or if it was cancelled.
    pub fn ask(&self, ask: &Ask, cancel: &Cancel) -> Result<Answer> {
        cancel.check()?;
        let Model { study, people, base, parts, .. } = self;
        match ask {
            Ask::Summary => summary::answer(study, self.explained.get().is_some()),
            Ask::Explain => self.explain(),
            Ask::Use(of) => self.usage(of, cancel),
            Ask::Rows(of) => {
                let only = self.threads_of(&of.selection)?;
                self.rows().answer(study, people, of, only.as_ref())
            }
            Ask::Lanes(of) => lanes::answer(study, people, base, parts, of, cancel),
            Ask::Processes(_) => Err(Error::Question("processes are not told yet".into())),
            Ask::At(of) => at::answer(study, people, base, parts, of, cancel),
        }
    }

    /// What held the CPUs up. Slow for the first time: O(events).
    fn explanation(&self) -> Result<&Explained> {
        if let Some(known) = self.explained.get() {
            return Ok(known);
        }
        let _first = self.explaining.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.explained.get() {
            return Ok(known);
        }
        let Study { trace, name, disassembler, .. } = &self.study;
        let explanation = holdup_analysis::explain(trace, name, &Options::default(), *disassembler)?;
        let culprits = explanation.findings.iter().map(|f| self.thread_of(&f.culprit)).collect();
        Ok(self.explained.get_or_init(|| Explained { explanation, culprits }))
    }

    fn explain(&self) -> Result<Answer> {
        let Explained { explanation, culprits } = self.explanation()?;
        let row = |thread: &Option<ThreadIdx>| thread.map(|t| self.people.id(Row::Thread(t)));
        Ok(Answer::document(&ExplainDocument { explanation, culprit_rows: culprits.iter().map(row).collect() }))
    }

    fn thread_of(&self, culprit: &Culprit) -> Option<ThreadIdx> {
        let trace = self.study.trace;
        let mut same = trace
            .threads
            .rows()
            .enumerate()
            .skip(1)
            .filter(|(_, t)| t.tid == culprit.tid && t.pid == culprit.pid && trace.text(t.name) == culprit.thread);
        same.next().map(|(i, _)| ThreadIdx(i as u32))
    }

    fn usage(&self, of: &UseOf, cancel: &Cancel) -> Result<Answer> {
        let Model { study, base, parts, .. } = self;
        let grid = Grid::new(of.window, of.px, study.timeline.end)?;
        let series = usage::plain(study, base, parts, grid, cancel)?;
        let over = match self.threads_of(&of.overlay)? {
            Some(threads) => {
                let label = self.label_of(&of.overlay);
                Some(usage::overlay(study, base, parts, grid, usage::Over { label, threads }, cancel)?)
            }
            None => None,
        };
        Ok(usage::answer(study, grid, false, series, over))
    }

    /// All rows; sorted anew when blame becomes known.
    fn rows(&self) -> std::sync::Arc<Rows> {
        let explained = self.explained.get().is_some();
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        match &*rows {
            Some((known, rows)) if *known == explained => rows.clone(),
            _ => {
                let new = std::sync::Arc::new(Rows::new(&self.people, &self.base, None));
                rows.insert((explained, new)).1.clone()
            }
        }
    }

    /// The threads that are selected; `None` if nothing is.
    fn threads_of(&self, selection: &Selection) -> Result<Option<FxHashSet<ThreadIdx>>> {
        if selection.is_empty() {
            return Ok(None);
        }
        if let Some(row) = &selection.row {
            let row = self.people.row(row, &self.study)?;
            return Ok(Some(self.people.threads(row).into_iter().collect()));
        }
        if let Some(name) = &selection.process {
            let trace = self.study.trace;
            let named = trace.threads.rows().enumerate().skip(1).filter(|(_, t)| trace.text(t.process) == name);
            return Ok(Some(named.map(|(i, _)| ThreadIdx(i as u32)).collect()));
        }
        if let Some(id) = &selection.finding {
            let explained = self.explanation()?;
            let at = explained.explanation.findings.iter().position(|f| f.id == *id);
            let at = at.ok_or_else(|| Error::Question(format!("there is no finding {id}")))?;
            return Ok(Some(explained.culprits[at].into_iter().collect()));
        }
        Ok(None)
    }

    fn label_of(&self, selection: &Selection) -> String {
        if let Some(name) = &selection.process {
            return name.clone();
        }
        let of_finding = |id: &String| {
            let explained = self.explained.get()?;
            let at = explained.explanation.findings.iter().position(|f| f.id == *id)?;
            explained.culprits[at].map(|t| self.study.label(t))
        };
        let of_row = |id: &String| match self.people.row(id, &self.study).ok()? {
            Row::Thread(thread) => Some(self.study.label(thread)),
            Row::Program(p) => Some(self.study.trace.text(self.people.programs[p].id).to_owned()),
            Row::Names(p, n) => Some(self.people.programs[p].names[n].label.clone()),
            Row::Cpu(_) => None,
        };
        let label = selection.finding.as_ref().and_then(of_finding);
        label.or_else(|| selection.row.as_ref().and_then(of_row)).unwrap_or_default()
    }
}
