//! Short loops, for finding out where a thread spins.
//!
//! A loop is a *natural* one: an instruction (the *header*) that every way into the loop passes, an edge back to it,
//! and all instructions from which that edge can be reached without passing the header again.
//!
//! ```text
//!               jmp   header
//!     body:     pause                 in the loop; falls through to the header: the edge back
//!     header:   mov   (%rdi),%eax     in
//!               test  %eax,%eax       in
//!               je    body            in
//!               add   $1,%edx         not in, but in the loop around it:
//!               jne   header          another edge back to the same header
//! ```
//!
//! Compilers turn loops around like that and move rare parts behind the rest of the function, so a loop is neither
//! "from the target of a backward branch to the branch" nor are its instructions neighbours.

use rustc_hash::FxHashSet;

use super::idiom::{self, Idiom};
use super::purpose::Purpose;
use super::{Instruction, Kind, Operation};

/// Loops of more instructions are not reported: nobody waits in them.
pub const LOOP_LIMIT: usize = 64;

/// A short loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The lowest address.
    pub start: u64,
    /// The address behind the last instruction.
    pub end: u64,
    /// Addresses of the loop's instructions, sorted.
    pub instructions: Vec<u64>,
    /// Whether it has a `pause`, `yield` or `isb`.
    pub has_pause: bool,
    /// Whether one of them is in no loop within it, or it does nothing beside pausing.
    pub pauses: bool,
    /// Whether it reads the same places again and again, and goes on as long as it finds the same there.
    pub looks: bool,
    /// Whether it tries again and again to put one value where another one is.
    pub acquires: bool,
    /// Whether it has an atomic instruction.
    pub has_atomic: bool,
    /// Whether it has a compare-and-exchange, or a load-exclusive pair.
    pub has_compare_exchange: bool,
    /// Whether it has a call.
    pub has_call: bool,
    /// Whether it reads memory and does nothing to it: neither stores, nor atomics, nor calls.
    pub load_only: bool,
    /// What could be done faster in it, where that is certain: of innermost loops with one way back.
    pub idiom: Option<Idiom>,
}

impl Loop {
    /// Whether the instruction at `address` is part of the loop.
    pub fn contains(&self, address: u64) -> bool {
        self.instructions.binary_search(&address).is_ok()
    }
}

/// The loops of at most [`LOOP_LIMIT`] instructions, by start and end. `code` is one function in order of address.
pub fn loops(code: &[Instruction]) -> Vec<Loop> {
    let flow = Flow::of(code);
    let (mut bodies, mut single) = (Vec::new(), FxHashSet::default());
    let mut search = Search::new(code.len());
    for header in flow.headers() {
        let before = bodies.len();
        bodies.extend(flow.before(header).iter().filter_map(|&latch| search.body(&flow, header, latch as usize)));
        if let [one] = &bodies[before..] {
            single.insert(one.clone());
        }
    }
    bodies.sort_unstable();
    bodies.dedup();
    let inner = |body: &[usize], other: &[usize]| {
        other.len() < body.len() && other.iter().all(|i| body.binary_search(i).is_ok())
    };
    // Those that begin within it; they are sorted.
    let near = |body: &[usize]| {
        let (first, last) = (body.first().copied(), body.last().copied());
        let from = bodies.partition_point(|other: &Vec<usize>| other.first().copied() < first);
        let to = bodies.partition_point(|other| other.first().copied() <= last);
        &bodies[from..to.max(from)]
    };
    let plain = |body: &Vec<usize>| single.contains(body) && !near(body).iter().any(|other| inner(body, other));
    let idiom = |body: &Vec<usize>| plain(body).then(|| idiom::of(body.iter().map(|&i| &code[i]).collect()))?;
    let with_idiom = |body: &Vec<usize>| Loop { idiom: idiom(body), ..describe(code, body) };
    let mut found: Vec<Loop> = bodies.iter().map(with_idiom).collect();
    found.sort_by_key(|l| (l.start, l.end));
    pause_themselves(code, &mut found);
    found
}

/// Tells the loops that pause from those that only have such a loop within.
fn pause_themselves(code: &[Instruction], found: &mut [Loop]) {
    let pauses: Vec<u64> = code.iter().filter(|c| c.kind == Kind::Pause).map(|c| c.address).collect();
    for at in 0..found.len() {
        let inner = |l: &Loop| l.instructions.len() < found[at].instructions.len();
        let here = pauses.iter().filter(|pause| found[at].contains(**pause));
        let mut own = here.filter(|pause| !found.iter().any(|l| inner(l) && l.contains(**pause)));
        found[at].pauses |= own.next().is_some();
    }
}

/// Which instructions lead to which.
struct Flow {
    /// By instruction, those that lead there: branches in their order, and the one before it.
    before: Vec<u32>,
    /// By instruction: where its own begin in `before`.
    first: Vec<u32>,
}

impl Flow {
    fn of(code: &[Instruction]) -> Self {
        let mut jumps = Vec::new();
        for (i, c) in code.iter().enumerate() {
            if let Kind::Branch { target: Some(target), .. } = c.kind
                && let Ok(to) = code.binary_search_by_key(&target, |c| c.address)
            {
                jumps.push((to, i));
            }
        }
        jumps.sort_unstable();
        let mut jumps = jumps.into_iter().peekable();
        let mut flow = Flow { before: Vec::with_capacity(2 * code.len()), first: vec![0] };
        for i in 0..code.len() {
            while let Some((_, from)) = jumps.next_if(|(to, _)| *to == i) {
                flow.before.push(from as u32);
            }
            if i > 0 && flow.falls(code, i) {
                flow.before.push(i as u32 - 1);
            }
            flow.first.push(flow.before.len() as u32);
        }
        flow
    }

    /// Whether the instruction before `i` leads there.
    fn falls(&self, code: &[Instruction], i: usize) -> bool {
        let goes_on = match code[i - 1].kind {
            Kind::Branch { conditional, .. } => conditional,
            Kind::Return | Kind::Trap => false,
            Kind::Plain | Kind::Call { .. } | Kind::Pause => true,
        };
        // Padding that nobody comes to does not lead into the block that it aligns.
        let padding = i > 1 && code[i - 1].operation == Operation::Nothing && self.before(i - 1).is_empty();
        goes_on && !padding
    }

    /// Those that lead to `i`.
    fn before(&self, i: usize) -> &[u32] {
        &self.before[self.first[i] as usize..self.first[i + 1] as usize]
    }

    /// Where loops may begin: others cannot have both a way in and a way back. (With one alone the way in may be a jump table.)
    fn headers(&self) -> impl Iterator<Item = usize> + '_ {
        let returns = |i: usize| self.before(i).iter().any(|&from| from as usize >= i);
        (0..self.first.len() - 1).filter(move |&i| self.before(i).len() > 1 || returns(i))
    }
}

/// Looks for the instructions between two.
struct Search {
    /// By instruction: the number of the last search that came there.
    seen: Vec<u32>,
    number: u32,
    /// What this one has found.
    body: Vec<usize>,
}

impl Search {
    fn new(instructions: usize) -> Self {
        Search { seen: vec![0; instructions], number: 0, body: Vec::new() }
    }

    fn insert(&mut self, i: usize) {
        if std::mem::replace(&mut self.seen[i], self.number) != self.number {
            self.body.push(i);
        }
    }

    /// The loop of the edge from `latch` to `header`, sorted. `None` if it is too long, or if it can be entered elsewhere.
    fn body(&mut self, flow: &Flow, header: usize, latch: usize) -> Option<Vec<usize>> {
        self.number += 1;
        self.body.clear();
        self.insert(header);
        self.insert(latch);
        let mut comes_from_header = latch == header;
        // What was found is looked at in turn; the header's own ways in are not.
        let mut next = 1;
        while let Some(&i) = self.body.get(next) {
            next += 1;
            let length = self.body.len();
            if i == 0 || length > LOOP_LIMIT || flow.before(i).is_empty() {
                return None;
            }
            for p in flow.before(i).iter().map(|&p| p as usize) {
                comes_from_header |= p == header;
                self.insert(p);
            }
        }
        let mut body = self.body.clone();
        body.sort_unstable();
        comes_from_header.then_some(body)
    }
}

fn describe(code: &[Instruction], body: &[usize]) -> Loop {
    let any = |test: fn(&Instruction) -> bool| body.iter().any(|&i| test(&code[i]));
    let all = || body.iter().map(|&i| &code[i]);
    let has_atomic = any(|c| c.atomic.is_some());
    let has_call = any(|c| matches!(c.kind, Kind::Call { .. }));
    let has_pause = any(|c| c.kind == Kind::Pause);
    let purpose = Purpose::of(all().collect());
    Loop {
        start: all().next().map_or(0, |c| c.address),
        end: all().next_back().map_or(0, Instruction::end),
        instructions: all().map(|c| c.address).collect(),
        has_pause,
        pauses: has_pause && purpose.is_quiet(),
        looks: purpose.looks(),
        acquires: purpose.acquires(),
        has_atomic,
        has_compare_exchange: any(|c| matches!(c.atomic, Some(a) if a != super::Atomic::ReadModifyWrite)),
        has_call,
        load_only: any(|c| c.load) && !any(|c| c.store) && !has_atomic && !has_call,
        idiom: None,
    }
}
