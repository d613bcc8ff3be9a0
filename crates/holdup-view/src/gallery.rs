//! All that one page shows: several traces, each under a number.

use std::sync::{Arc, PoisonError, RwLock};

use holdup_base::named;
use serde::Serialize;

use holdup_analysis::diff::{DiffOptions, Facts, diff};

use crate::request::Ask;
use crate::{Answer, Cancel, Error, Model, Pace, Plots, Question, Result, flame};

/// Several traces, some perhaps still being read.
#[derive(Default)]
pub struct Gallery {
    slots: RwLock<Vec<Slot>>,
}

struct Slot {
    name: String,
    item: Item,
}

/// What a number stands for.
#[derive(Clone, Default)]
pub enum Item {
    /// Not yet known.
    #[default]
    Reading,
    /// A trace.
    Trace(Arc<Model>),
    /// Results of measurements.
    Plots(Arc<Plots>),
    /// It cannot be shown, and why.
    Failed(String),
}

named! {
    /// What an item shows.
    enum Shows {
        /// A trace.
        Trace = "trace",
        /// Results of measurements.
        Plots = "plots",
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    id: usize,
    name: &'a str,
    kind: Shows,
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct List<'a> {
    traces: Vec<Listed<'a>>,
}

impl Gallery {
    /// Makes room for something that is about to be read; returns its number.
    pub fn add(&self, name: &str) -> usize {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.push(Slot { name: name.to_owned(), item: Item::Reading });
        slots.len() - 1
    }

    /// It was read.
    pub fn set(&self, id: usize, item: Item) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get_mut(id) {
            slot.item = item;
        }
    }

    /// What there is: `{"traces":[…]}`, as the page's `TraceInfo`.
    pub fn list(&self) -> Answer {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let listed = |(id, slot): (usize, &'_ Slot)| {
            let (reading, error) = match &slot.item {
                Item::Reading => (Some(0.0), None),
                Item::Failed(why) => (None, Some(why.clone())),
                Item::Trace(_) | Item::Plots(_) => (None, None),
            };
            let shows = if matches!(slot.item, Item::Plots(_)) { Shows::Plots } else { Shows::Trace };
            (id, slot.name.clone(), shows, reading, error)
        };
        let all: Vec<_> = slots.iter().enumerate().map(listed).collect();
        drop(slots);
        let traces = all.iter().map(|(id, name, shows, reading, error)| Listed {
            id: *id,
            name,
            kind: *shows,
            reading: *reading,
            error: error.as_deref(),
        });
        Answer::document(&List { traces: traces.collect() })
    }

    /// The trace with this number.
    ///
    /// # Errors
    /// If there is none, or not yet, or if it cannot be read.
    pub fn trace(&self, id: u32) -> Result<Arc<Model>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let question = |what: String| Err(Error::Question(what));
        match slots.get(id as usize).map(|slot| (&slot.name, &slot.item)) {
            Some((_, Item::Trace(model))) => Ok(model.clone()),
            Some((name, Item::Reading)) => question(format!("{name} is still being read: ask again")),
            Some((_, Item::Failed(why))) => question(why.clone()),
            Some((name, Item::Plots(_))) => question(format!("{name} is no trace")),
            None => question(format!("there is no trace {id}")),
        }
    }

    /// Answers a question as the page sends it: JSON in, framed bytes out, whatever is wrong with it.
    pub fn ask_json(&self, question: &[u8], cancel: &Cancel) -> Vec<u8> {
        Answer::of(Question::parse(question).and_then(|q| self.ask(&q, cancel))).0
    }

    /// How long it may take to answer.
    pub fn pace(&self, question: &Question) -> Pace {
        match (&question.ask, self.trace(question.trace)) {
            (Ask::Diff(_), _) => Pace::Slow,
            (ask, Ok(model)) => model.pace(ask),
            (_, Err(_)) => Pace::Quick,
        }
    }

    /// Answers a question about any of them.
    ///
    /// # Errors
    /// If it makes no sense, if the trace cannot be read, or if it was cancelled.
    pub fn ask(&self, question: &Question, cancel: &Cancel) -> Result<Answer> {
        cancel.check()?;
        match &question.ask {
            Ask::Plots => match self.item(question.trace) {
                Some(Item::Plots(plots)) => Ok(plots.answer()),
                _ => self.trace(question.trace)?.ask(&question.ask, cancel),
            },
            Ask::Diff(of) => {
                let facts = |ids: &[u32]| ids.iter().map(|&id| self.facts(id, cancel)).collect::<Result<Vec<Facts>>>();
                let (before, after) = (facts(&of.before)?, facts(&of.after)?);
                if before.is_empty() || after.is_empty() {
                    return Err(Error::Question("a diff needs a trace before and one after".into()));
                }
                Ok(Answer::document(&diff(&before, &after, &DiffOptions { per: None, fail_on: None })))
            }
            Ask::Flame(of) if of.against.is_some() => {
                let now = self.trace(question.trace)?.weights(of, cancel)?;
                let before = self.trace(of.against.unwrap_or_default())?.weights(of, cancel)?;
                flame::answer(of, &now, Some(&before))
            }
            ask => self.trace(question.trace)?.ask(ask, cancel),
        }
    }

    fn facts(&self, id: u32, cancel: &Cancel) -> Result<Facts> {
        cancel.check()?;
        self.trace(id)?.facts()
    }

    fn item(&self, id: u32) -> Option<Item> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(id as usize).map(|slot| slot.item.clone())
    }
}
