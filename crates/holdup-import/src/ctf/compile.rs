//! From types to plans.
//!
//! Every field first gets a step of its own. What somebody asks for, a length, a tag or an importer's field, gets a slot; then
//! all others are melted into steps that skip.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::parser::Fault;
use super::plan::{Choice, MAX_SLOTS, Plan, Slot, Step, Times, UNUSED};
use super::types::{Array, Enum, Integer, Length, Struct, Type, Variant};

/// Where an event's number is put, whichever of the header's fields holds it.
pub const EVENT_ID: Slot = MAX_SLOTS as Slot - 1;
/// What the paths of an event header's fields begin with.
pub const HEADER: &str = "stream.event.header";

/// A field that has a step.
#[derive(Debug, Clone)]
struct Field {
    block: u32,
    step: u32,
    signed: bool,
    is_shared: bool,
    tags: Option<Rc<Enum>>,
}

/// Makes the plan of a kind of stream.
pub struct Compiler {
    plan: Plan,
    /// The trace's byte order.
    big: bool,
    /// Fields by path: of headers and contexts, which all events share, and of the event at hand.
    shared: FxHashMap<String, Field>,
    own: FxHashMap<String, Field>,
    is_shared: bool,
    /// Slots are given to shared fields from the end, to an event's own from the beginning.
    last: Slot,
    next: Slot,
    /// Steps that may still be made: as many as the metadata justifies.
    budget: usize,
}

impl Compiler {
    /// For a trace of this byte order, and no more than `budget` steps.
    pub fn new(big: bool, budget: usize) -> Self {
        let (shared, own) = (FxHashMap::default(), FxHashMap::default());
        Compiler { plan: Plan::default(), big, shared, own, is_shared: true, last: EVENT_ID, next: 0, budget }
    }

    /// An empty block.
    pub fn block(&mut self) -> u32 {
        self.plan.blocks.push(Vec::new());
        self.plan.blocks.len() as u32 - 1
    }

    /// From here on, fields belong to one event; those of the event before are forgotten.
    pub fn next_event(&mut self) {
        self.is_shared = false;
        self.own.clear();
        self.next = 0;
    }

    /// Appends the steps for `of`, whose place in the trace is `path`.
    pub fn add(&mut self, block: u32, of: &Type, path: &str) -> Result<(), Fault> {
        match of {
            Type::Integer(i) => self.integer(block, i, path, None),
            Type::Enum(e) => self.integer(block, &e.integer, path, Some(e)),
            Type::Float(bits, align) => {
                self.push(block, Step::Align(*align))?;
                self.push(block, Step::Skip((*bits).into()))
            }
            Type::Text => {
                self.push(block, Step::Align(8))?;
                self.named(block, Step::Text { to: UNUSED }, path, (false, None))
            }
            Type::Struct(s) => {
                self.push(block, Step::Align(of.align()))?;
                self.members(block, s, path)
            }
            Type::Variant(v) => self.variant(block, v, path),
            Type::Array(a) => self.array(block, a, path),
        }
    }

    fn members(&mut self, block: u32, s: &Struct, path: &str) -> Result<(), Fault> {
        s.fields.iter().try_for_each(|(name, of)| self.add(block, of, &format!("{path}.{name}")))
    }

    fn integer(&mut self, block: u32, i: &Integer, path: &str, tags: Option<&Rc<Enum>>) -> Result<(), Fault> {
        self.push(block, Step::Align(i.align))?;
        let (bits, signed, big) = (i.bits, i.signed, i.big.unwrap_or(self.big));
        let in_header = path.strip_prefix(HEADER).map(|rest| rest.rsplit('.').next().unwrap_or(rest));
        let step = match in_header {
            Some(name) if i.clock.is_some() || name == "timestamp" => Step::Time { bits, big, to: UNUSED },
            Some("id") => Step::Integer { bits, signed, big, to: EVENT_ID },
            _ => Step::Integer { bits, signed, big, to: UNUSED },
        };
        self.named(block, step, path, (signed, tags.cloned()))
    }

    fn array(&mut self, block: u32, a: &Array, path: &str) -> Result<(), Fault> {
        let times = match &a.length {
            Length::Fixed(length) => Times::Fixed(*length),
            Length::Field(name) => {
                let field = self.referred(path, name)?;
                Times::Read(self.slot(&field)?)
            }
        };
        self.push(block, Step::Align(a.element.align()))?;
        if let Some(bits) = a.element.packed_bits() {
            return self.named(block, Step::Run { times, bits, to: UNUSED }, path, (false, None));
        }
        let each = self.block();
        self.add(each, &a.element, &format!("{path}[]"))?;
        self.push(block, Step::Repeat { times, block: each })
    }

    fn variant(&mut self, block: u32, v: &Variant, path: &str) -> Result<(), Fault> {
        let field = self.referred(path, &v.tag)?;
        let Some(tags) = &field.tags else { return Err(format!("the tag {:?} of {path} is not an enum", v.tag)) };
        let tag = self.slot(&field)?;
        let mut choices = Vec::new();
        for (name, of) in v.options.iter() {
            let each = self.block();
            self.add(each, of, &format!("{path}.{name}"))?;
            let ranges = tags.ranges.iter().filter(|(label, ..)| label == name);
            choices.extend(ranges.map(|&(_, from, to)| Choice { from, to, block: each }));
        }
        self.spend(choices.len())?;
        let (first, count) = (self.plan.choices.len() as u32, choices.len() as u32);
        self.plan.choices.extend(choices);
        self.push(block, Step::Choose { tag, signed: field.signed, first, count })
    }

    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        self.budget = self.budget.checked_sub(steps).ok_or("there are more fields than any tracer describes")?;
        Ok(())
    }

    fn push(&mut self, block: u32, step: Step) -> Result<(), Fault> {
        self.spend(1)?;
        self.plan.blocks.get_mut(block as usize).ok_or("a block is missing")?.push(step);
        Ok(())
    }

    fn named(
        &mut self,
        block: u32,
        step: Step,
        path: &str,
        (signed, tags): (bool, Option<Rc<Enum>>),
    ) -> Result<(), Fault> {
        let at = self.plan.blocks.get(block as usize).map_or(0, Vec::len) as u32;
        let field = Field { block, step: at, signed, is_shared: self.is_shared, tags };
        let known = if self.is_shared { &mut self.shared } else { &mut self.own };
        known.insert(path.to_owned(), field);
        self.push(block, step)
    }

    /// The field that `name` means at `path`: one of the same struct, of one around it, or one by its whole path.
    fn referred(&self, path: &str, name: &str) -> Result<Field, Fault> {
        let mut around = path;
        while let Some((outer, _)) = around.rsplit_once('.') {
            around = outer;
            if let Some(field) = self.field(&format!("{around}.{name}")) {
                return Ok(field.clone());
            }
        }
        self.field(name).cloned().ok_or_else(|| format!("{path} refers to {name:?}, which does not stand before it"))
    }

    fn field(&self, path: &str) -> Option<&Field> {
        self.own.get(path).or_else(|| self.shared.get(path))
    }

    /// The slot of the field at `path`, with or without the underscore that LTTng puts before names.
    pub fn wanted(&mut self, path: &str, name: &str) -> Option<Slot> {
        let field = ["_", ""].iter().find_map(|prefix| self.field(&format!("{path}.{prefix}{name}"))).cloned()?;
        self.slot(&field).ok()
    }

    fn slot(&mut self, field: &Field) -> Result<Slot, Fault> {
        let Compiler { plan, next, last, .. } = self;
        let step = plan.blocks.get_mut(field.block as usize).and_then(|b| b.get_mut(field.step as usize));
        let to = match step {
            Some(Step::Integer { to, .. } | Step::Time { to, .. } | Step::Text { to } | Step::Run { to, .. }) => to,
            _ => return Err("what a field refers to is not an integer".to_owned()),
        };
        if *to == UNUSED {
            if *next + 1 >= *last {
                return Err("an event has more lengths and tags than any tracer describes".to_owned());
            }
            // What all events share must not be overwritten by any of them.
            *to = if field.is_shared {
                *last -= 1;
                *last
            } else {
                *next += 1;
                *next - 1
            };
        }
        Ok(*to)
    }

    /// The plan, with all that nobody asked for melted into skips.
    pub fn finish(mut self) -> Plan {
        self.plan.blocks.iter_mut().for_each(|block| *block = melt(block));
        self.plan
    }
}

/// What is known of the bit at which a step begins: it is `rest` above a multiple of `of`.
struct Known {
    of: u64,
    rest: u64,
}

fn melt(steps: &[Step]) -> Vec<Step> {
    let mut melted: Vec<Step> = Vec::with_capacity(steps.len());
    let mut known = Known { of: 1, rest: 0 };
    for step in steps {
        let step = match *step {
            Step::Align(bits) if u64::from(bits) <= known.of => {
                Step::Skip(known.rest.wrapping_neg() & (u64::from(bits) - 1))
            }
            Step::Integer { bits, to: UNUSED, .. } => Step::Skip(bits.into()),
            Step::Run { times: Times::Fixed(times), bits, to: UNUSED } => Step::Skip(times.saturating_mul(bits.into())),
            ref other => other.clone(),
        };
        known.follow(&step);
        match (melted.last_mut(), step) {
            (_, Step::Skip(0)) => {}
            (Some(Step::Skip(before)), Step::Skip(bits)) => *before = before.saturating_add(bits),
            (_, step) => melted.push(step),
        }
    }
    melted
}

impl Known {
    fn follow(&mut self, step: &Step) {
        let by = match *step {
            Step::Align(bits) => {
                *self = Known { of: bits.into(), rest: 0 };
                return;
            }
            Step::Skip(bits) => bits,
            Step::Integer { bits, .. } | Step::Time { bits, .. } => bits.into(),
            Step::Run { times: Times::Fixed(times), bits, .. } => times.saturating_mul(bits.into()),
            // Whole bytes, as many as may be: what is known below a byte stays.
            Step::Text { .. } => return self.limit(8),
            Step::Run { bits, .. } if bits.is_multiple_of(8) => return self.limit(8),
            Step::Run { .. } | Step::Repeat { .. } | Step::Choose { .. } => return self.limit(1),
        };
        self.rest = self.rest.wrapping_add(by) & (self.of - 1);
    }

    fn limit(&mut self, of: u64) {
        self.of = self.of.min(of);
        self.rest &= self.of - 1;
    }
}
