//! A trace that answers the page's questions.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use holdup_analysis::annotate::annotate;
use holdup_analysis::diff::Facts;
use holdup_analysis::explore::Explorer;
use holdup_analysis::{Disassembler, Explanation, Options};
use holdup_trace::{Table, ThreadIdx, Trace};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::base::Base;
use crate::crowds::Crowds;
use crate::explained::Explained;
use crate::flame::{Among, Flames, Weights};
use crate::parts::Parts;
use crate::people::{People, Row};
use crate::request::{Ask, ChainOf, FlameOf, Question, Selection, UseOf};
use crate::rows::Rows;
use crate::study::Study;
use crate::table::Views;
use crate::window::Grid;
use crate::{Answer, Cancel, Error, Result};
use crate::{at, chains, flame, lanes, processes, search, span, spans, summary, table, usage};

/// Findings whose chains are made before somebody chooses them.
const CHOSEN: usize = 4;

/// Gives the text of a source file, where it is at hand.
pub type Sources = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It is made from what is known, or ends soon when it is cancelled.
    Quick,
    /// All of the trace is followed first, whoever waits.
    Slow,
}

/// A trace that answers the page's questions. It may be asked by several threads at once.
pub struct Model {
    study: &'static Study,
    explorer: Explorer<'static>,
    people: People,
    base: Base,
    crowds: Crowds,
    parts: Parts,
    views: Views,
    flames: Flames,
    chains: chains::Ready,
    sources: Sources,
    rows: Mutex<Option<(bool, Arc<Rows>)>>,
    explained: OnceLock<Explained>,
    /// Whoever explains first lets the others wait.
    explaining: Mutex<()>,
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
        let study: &'static Study = Box::leak(Box::new(Study::new(trace, name, disassembler)?));
        let (people, base) = (People::new(study), Base::new(study)?);
        Ok(Model {
            crowds: Crowds::new(&people, &base),
            people,
            base,
            explorer: Explorer::new(study.trace).with_disassembler(&crate::Machine).with_timeline(&study.timeline),
            flames: Flames::new(study),
            study,
            parts: Parts::default(),
            views: Views::default(),
            chains: chains::Ready::default(),
            sources: Box::new(|_| None),
            rows: Mutex::default(),
            explained: OnceLock::new(),
            explaining: Mutex::new(()),
        })
    }

    /// With the text of source files from there.
    #[must_use]
    pub fn with_sources(mut self, sources: Sources) -> Self {
        self.sources = sources;
        self
    }

    /// Bytes that are kept for wide windows.
    pub fn base_bytes(&self) -> usize {
        self.base.bytes() + self.crowds.bytes() + self.study.spans.bytes()
    }

    /// Makes what the first questions will ask for: the explanation, the first table, sums for flame graphs, the chains of the first
    /// findings. O(events): slow; questions may be asked meanwhile.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn prepare(&self) -> Result<()> {
        self.explanation()?;
        self.views.prepare(&self.explorer)?;
        self.flames.fill(self.study)?;
        for finding in self.explanation()?.explanation.on_page().take(CHOSEN) {
            let of = ChainOf { finding: Some(finding.id.clone()), ..ChainOf::default() };
            // Of some findings no wait is seen: who chooses one is told so then.
            if let Ok(answer) = self.ask(&Ask::Chain(of), &Cancel::default()) {
                self.chains.keep(&finding.id, answer);
            }
        }
        Ok(())
    }

    /// How long it may take to answer.
    pub fn pace(&self, ask: &Ask) -> Pace {
        let unknown = self.explained.get().is_none();
        let slow = match ask {
            Ask::Slow(_) => true,
            Ask::Explain => unknown,
            Ask::Table(of) => !self.views.has(of),
            ask => unknown && ask.finding().is_some(),
        };
        if slow { Pace::Slow } else { Pace::Quick }
    }

    /// Answers a question as the page sends it: JSON in, framed bytes out, whatever is wrong with it.
    pub fn ask_json(&self, question: &[u8], cancel: &Cancel) -> Vec<u8> {
        Answer::of(Question::parse(question).and_then(|q| self.ask(&q.ask, cancel))).0
    }

    /// Answers a question about this trace alone.
    ///
    /// # Errors
    /// If it makes no sense, if the trace cannot be read, or if it was cancelled.
    pub fn ask(&self, ask: &Ask, cancel: &Cancel) -> Result<Answer> {
        cancel.check()?;
        let Model { study, people, base, crowds, parts, .. } = self;
        match ask {
            Ask::Summary => summary::answer(study, self.explained.get().is_some()),
            Ask::Explain => self.explain(),
            Ask::Use(of) => self.usage(of, cancel),
            Ask::Rows(of) => {
                let only = self.threads_of(&of.selection)?;
                self.rows().answer(study, people, of, only.as_ref())
            }
            Ask::Lanes(of) => lanes::answer(study, people, base, crowds, parts, of, cancel),
            Ask::Spans(of) => spans::answer(study, people, of, cancel),
            Ask::Span(of) => span::answer(study, people, of, cancel),
            Ask::Slowest(of) => span::slowest(study, people, of, cancel),
            Ask::Slow(of) => span::slow(study, of, cancel),
            Ask::Processes(of) => processes::answer(study, base, of),
            Ask::At(of) => at::answer(study, people, parts, of, cancel),
            Ask::Chain(of) => {
                if let Some(known) = self.chains.get(of) {
                    return Ok(known);
                }
                let explained = of.finding.is_some().then(|| self.explanation()).transpose()?;
                chains::answer(study, people, parts, explained, of, cancel)
            }
            Ask::Table(of) => table::answer(study, &self.explorer, &self.views, of, cancel),
            Ask::Flame(of) => flame::answer(of, &self.weights(of, cancel)?, None),
            Ask::Code(of) => self.code(&of.function),
            Ask::Search(of) => search::answer(study, people, of),
            Ask::Diff(_) => Err(Error::Question("a diff is about several traces".into())),
            Ask::Plots => Err(Error::Question("a trace has no plots".into())),
        }
    }

    /// What a flame graph draws.
    pub(crate) fn weights(&self, of: &FlameOf, cancel: &Cancel) -> Result<Weights> {
        let threads = Selection { lock: None, function: None, ..of.filter.clone() };
        let among = Among {
            threads: self.threads_of(&threads)?,
            lock: of.filter.lock.clone(),
            function: of.filter.function.clone(),
        };
        self.flames.weights(self.study, &self.parts, of, &among, cancel)
    }

    /// What a diff compares. O(events): slow.
    pub(crate) fn facts(&self) -> Result<Facts> {
        let Study { trace, name, disassembler, .. } = self.study;
        Ok(Facts::new(trace, name, &Options::default(), *disassembler)?)
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
        let found = Explained::new(self.study, &self.base)?;
        Ok(self.explained.get_or_init(|| found))
    }

    fn explain(&self) -> Result<Answer> {
        let Explained { explanation, culprits, .. } = self.explanation()?;
        let row = |thread: &Option<ThreadIdx>| thread.map(|t| self.people.id(Row::Thread(t)));
        Ok(Answer::document(&ExplainDocument { explanation, culprit_rows: culprits.iter().map(row).collect() }))
    }

    fn code(&self, function: &str) -> Result<Answer> {
        let Study { trace, name, disassembler, .. } = self.study;
        let mut found = annotate(trace, name, function, *disassembler)?;
        let mut files = rustc_hash::FxHashMap::default();
        for row in &mut found.instructions {
            let text: &Option<String> = files.entry(row.file.clone()).or_insert_with_key(|path| (self.sources)(path));
            let line = text.as_ref().and_then(|text| text.lines().nth((row.line as usize).checked_sub(1)?));
            row.source_text = line.map_or(String::new(), |l| l.trim().to_owned());
        }
        Ok(Answer::document(&found))
    }

    fn usage(&self, of: &UseOf, cancel: &Cancel) -> Result<Answer> {
        let Model { study, base, parts, .. } = self;
        let grid = Grid::new(of.window, of.px, study.timeline.end)?;
        let explained = self.explained.get();
        let series = match explained {
            Some(explained) => explained.usage(study, parts, grid, cancel)?,
            None => usage::plain(study, base, parts, grid, cancel)?,
        };
        let over = match self.overlaid(&of.overlay)? {
            Some(threads) => {
                let label = self.label_of(&of.overlay);
                Some(usage::overlay(study, base, parts, grid, usage::Over { label, threads }, cancel)?)
            }
            None => None,
        };
        Ok(usage::answer(study, grid, explained.is_some(), series, over))
    }

    /// All rows; sorted anew when blame becomes known.
    fn rows(&self) -> Arc<Rows> {
        let explained = self.explained.get();
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        match &*rows {
            Some((known, rows)) if *known == explained.is_some() => rows.clone(),
            _ => {
                let blame = explained.map(|e| e.blame.as_slice());
                let new = Arc::new(Rows::new(&self.people, &self.base, blame));
                rows.insert((explained.is_some(), new)).1.clone()
            }
        }
    }

    /// Whose CPU use is laid over the rest: of a finding only its culprit's.
    fn overlaid(&self, selection: &Selection) -> Result<Option<FxHashSet<ThreadIdx>>> {
        match &selection.finding {
            Some(id) => {
                let explained = self.explanation()?;
                Ok(explained.culprits[explained.finding(id)?].map(|culprit| FxHashSet::from_iter([culprit])))
            }
            None => self.threads_of(selection),
        }
    }

    /// The threads that are selected; `None` if nothing is that threads have.
    fn threads_of(&self, selection: &Selection) -> Result<Option<FxHashSet<ThreadIdx>>> {
        let mut found: Option<FxHashSet<ThreadIdx>> = None;
        let mut keep = |threads: FxHashSet<ThreadIdx>| match &mut found {
            Some(known) => known.retain(|t| threads.contains(t)),
            None => found = Some(threads),
        };
        if let Some(row) = &selection.row {
            keep(self.people.threads(self.people.row(row, self.study)?).into_iter().collect());
        }
        if let Some(id) = &selection.finding {
            let explained = self.explanation()?;
            keep(explained.threads(explained.finding(id)?));
        }
        let trace = self.study.trace;
        let mut named = |wanted: &String, of: fn(&holdup_trace::tables::Thread) -> holdup_trace::StringId| {
            let all = trace.threads.rows().enumerate().skip(1).filter(|(_, t)| trace.text(of(t)) == wanted);
            keep(all.map(|(i, _)| ThreadIdx(i as u32)).collect());
        };
        if let Some(name) = &selection.process {
            named(name, |t| t.process);
        }
        if let Some(name) = &selection.thread {
            named(name, |t| t.name);
        }
        Ok(found)
    }

    fn label_of(&self, selection: &Selection) -> String {
        let of_finding = |id: &String| {
            let explained = self.explained.get()?;
            explained.culprits[explained.finding(id).ok()?].map(|t| self.study.label(t))
        };
        let of_row = |id: &String| match self.people.row(id, self.study).ok()? {
            Row::Thread(thread) => Some(self.study.label(thread)),
            Row::Program(p) => Some(self.study.trace.text(self.people.programs[p].id).to_owned()),
            Row::Names(p, n) => Some(self.people.programs[p].names[n].label.clone()),
            Row::Cpu(_) => None,
        };
        let label = selection.finding.as_ref().and_then(of_finding);
        let label = label.or_else(|| selection.row.as_ref().and_then(of_row));
        label.or_else(|| selection.thread.clone()).or_else(|| selection.process.clone()).unwrap_or_default()
    }
}
