//! The trace's events: which one a record belongs to, how it is decoded, and what its samples are used for.

use rustc_hash::FxHashMap;

use super::attr::{self, Attr, sample};
use super::features::Features;
use super::plan::Plan;
use crate::bytes::u64_at;
use crate::linux::Instant;
use crate::linux::format::Format;
use crate::linux::tracepoint::Tracepoint;

/// What an event's samples are used for.
#[derive(Debug, Clone, Default)]
pub enum Role {
    /// Counted only.
    #[default]
    Counted,
    /// A tracepoint in a trace without any formats: to be recognised by its first sample.
    Unformatted,
    /// Where CPU time goes.
    CpuTime,
    /// What the machine did.
    Tracepoint(Tracepoint),
}

impl Role {
    /// Whether switches come from it.
    pub fn is_switch(&self) -> bool {
        matches!(self, Role::Tracepoint(point) if point.is_switch())
    }

    /// Whether wake-ups come from it.
    pub fn is_wake(&self) -> bool {
        matches!(self, Role::Tracepoint(point) if point.is_wake())
    }
}

/// One event of the trace.
#[derive(Debug)]
pub struct Source {
    /// What it is.
    pub attr: Attr,
    /// How its samples are decoded.
    pub plan: Plan,
    /// perf's name for it.
    pub name: String,
    /// What its samples are used for.
    pub role: Role,
    /// How many samples there were.
    pub count: u64,
    ids: Vec<u64>,
}

/// All events of the trace.
#[derive(Debug, Default)]
pub struct Events {
    /// In the file's order.
    pub list: Vec<Source>,
    by_id: FxHashMap<u64, u32>,
    /// The event of each small id, plus one: ids are mostly small.
    by_small_id: Vec<u32>,
    /// Where samples have their id.
    id_at: Option<usize>,
    /// Whether all records have their id at the end.
    id_at_end: bool,
    /// Names that came on their own.
    updated_names: FxHashMap<u64, String>,
}

const SMALL_ID: u64 = 1 << 16;

impl Events {
    /// Adds an event.
    pub fn add(&mut self, attr: Attr, ids: Vec<u64>) {
        let at = self.list.len() as u32;
        for &id in &ids {
            if id < SMALL_ID {
                let slot = id as usize;
                self.by_small_id.resize(self.by_small_id.len().max(slot + 1), 0);
                self.by_small_id[slot] = at + 1;
            } else {
                self.by_id.insert(id, at);
            }
        }
        if self.list.is_empty() {
            self.id_at_end = attr.sample_id_all && attr.sample_type & sample::IDENTIFIER != 0;
            self.id_at = if attr.sample_type & sample::IDENTIFIER != 0 {
                Some(0)
            } else if attr.sample_type & sample::ID != 0 {
                let before = sample::IP | sample::TID | sample::TIME | sample::ADDR;
                Some((attr.sample_type & before).count_ones() as usize * 8)
            } else {
                None
            };
        }
        let plan = Plan::new(&attr);
        let name = attr.default_name();
        self.list.push(Source { attr, plan, name, role: Role::default(), count: 0, ids });
    }

    /// A name for the event with this id.
    pub fn rename(&mut self, id: u64, name: String) {
        self.updated_names.insert(id, name);
    }

    fn by_id(&self, id: u64) -> Option<usize> {
        match self.by_small_id.get(usize::try_from(id).unwrap_or(usize::MAX)) {
            Some(&at) if at != 0 => Some(at as usize - 1),
            _ => self.by_id.get(&id).map(|&at| at as usize),
        }
    }

    /// The event that a sample belongs to.
    #[inline]
    pub fn of_sample(&self, body: &[u8]) -> Option<usize> {
        if self.list.len() == 1 {
            return Some(0);
        }
        let id = u64_at(body, self.id_at?)?;
        // Samples that perf makes up itself have no id.
        self.by_id(id).or_else(|| (id == 0 && !self.list.is_empty()).then_some(0))
    }

    /// When and where a record other than a sample was written.
    pub fn stamp(&self, body: &[u8]) -> Instant {
        self.plan_of_other(body).map_or(Instant::NONE, |plan| plan.stamp(body))
    }

    /// The plan by which a record other than a sample ends.
    pub fn plan_of_other(&self, body: &[u8]) -> Option<&Plan> {
        let by_id = || {
            let id = u64_at(body, body.len().checked_sub(8)?)?;
            self.by_id(id)
        };
        let at = if self.id_at_end { by_id() } else { None };
        self.list.get(at.unwrap_or(0)).map(|source| &source.plan)
    }

    /// Whether any event is used for `role`.
    pub fn any(&self, role: impl Fn(&Role) -> bool) -> bool {
        self.list.iter().any(|s| role(&s.role))
    }

    /// Names the events and decides what they are used for. To be called again whenever more became known.
    pub fn prepare(&mut self, features: &Features) {
        let best = self.list.iter().filter_map(|s| s.attr.cpu_time_rank()).min();
        let formats = |attr: &Attr| match attr.kind {
            attr::TRACEPOINT => features.formats.get(&attr.config),
            _ => None,
        };
        for source in &mut self.list {
            let format = formats(&source.attr);
            source.name = name(source, format, features, &self.updated_names);
            source.role = match format {
                Some(format) => Tracepoint::of(format).map_or(Role::Counted, Role::Tracepoint),
                None if source.attr.kind == attr::TRACEPOINT && features.formats.is_empty() => Role::Unformatted,
                None if best.is_some() && source.attr.cpu_time_rank() == best => Role::CpuTime,
                None => Role::Counted,
            };
        }
    }
}

fn name(source: &Source, format: Option<&Format>, features: &Features, updated: &FxHashMap<u64, String>) -> String {
    if let Some(name) = source.ids.iter().find_map(|id| updated.get(id)) {
        return name.clone();
    }
    let same_ids = |n: &&super::features::EventName| !n.ids.is_empty() && n.ids == source.ids;
    let same_event = |n: &&super::features::EventName| n.attr == source.attr;
    let described = features.names.iter().find(same_ids).or_else(|| features.names.iter().find(same_event));
    match (described, format) {
        (Some(described), _) if !described.name.is_empty() => described.name.clone(),
        (_, Some(format)) => format.full_name(),
        _ => source.attr.default_name(),
    }
}
