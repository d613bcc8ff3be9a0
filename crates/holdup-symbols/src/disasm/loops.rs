//! Short loops, for finding out where a thread spins.
//!
//! A loop is a branch back (the *back edge*) and all instructions that lead from its target to it again:
//!
//! ```text
//!     target →  mov   (%rdi),%eax     in the loop
//!               test  %eax,%eax       in
//!               je    out             in
//!               call  slow            not in, if it does not come back to the back edge
//!        cold:  pause                 in
//!               jmp   target          the back edge
//! ```
//!
//! Compilers move rare parts behind the rest of the function, so a loop's instructions need not be neighbours.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Instruction, Kind};

/// Loops of more instructions are not reported: nobody waits in them.
pub const LOOP_LIMIT: usize = 64;

/// A short loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The first instruction: the target of the branch back.
    pub start: u64,
    /// The address behind the branch back.
    pub end: u64,
    /// Addresses of the loop's instructions, sorted.
    pub instructions: Vec<u64>,
    /// Whether it has a `pause`, `yield` or `isb`.
    pub has_pause: bool,
    /// Whether it has an atomic instruction.
    pub has_atomic: bool,
    /// Whether it has a compare-and-exchange, or a load-exclusive pair.
    pub has_compare_exchange: bool,
    /// Whether it has a call.
    pub has_call: bool,
    /// Whether it reads memory and does nothing to it: neither stores, nor atomics, nor calls.
    pub load_only: bool,
}

impl Loop {
    /// Whether the instruction at `address` is part of the loop.
    pub fn contains(&self, address: u64) -> bool {
        self.instructions.binary_search(&address).is_ok()
    }
}

/// The loops of at most [`LOOP_LIMIT`] instructions, by start and end. `code` is one function in order of address.
pub fn loops(code: &[Instruction]) -> Vec<Loop> {
    let graph = Graph::new(code);
    let mut found = Vec::new();
    for (from, instruction) in code.iter().enumerate() {
        let Kind::Branch { target: Some(target), .. } = instruction.kind else { continue };
        if let Some(&to) = graph.index.get(&target)
            && to <= from
            && let Some(body) = graph.body(to, from)
        {
            found.push(describe(code, to, from, &body));
        }
    }
    found.sort_by_key(|l| (l.start, l.end));
    found
}

struct Graph {
    /// Address → index.
    index: FxHashMap<u64, usize>,
    successors: Vec<[Option<usize>; 2]>,
    predecessors: Vec<Vec<usize>>,
}

impl Graph {
    fn new(code: &[Instruction]) -> Graph {
        let index: FxHashMap<u64, usize> = code.iter().enumerate().map(|(i, c)| (c.address, i)).collect();
        let next = |i: usize| Some(i + 1).filter(|&n| n < code.len());
        let lookup = |target: Option<u64>| target.and_then(|t| index.get(&t).copied());
        let successors: Vec<_> = code
            .iter()
            .enumerate()
            .map(|(i, c)| match c.kind {
                Kind::Branch { target, conditional } => [lookup(target), if conditional { next(i) } else { None }],
                Kind::Return | Kind::Trap => [None, None],
                Kind::Plain | Kind::Call { .. } | Kind::Pause => [next(i), None],
            })
            .collect();
        let mut predecessors = vec![Vec::new(); code.len()];
        for (i, s) in successors.iter().enumerate() {
            s.iter().flatten().for_each(|&to: &usize| predecessors[to].push(i));
        }
        Graph { index, successors, predecessors }
    }

    /// The instructions on ways from `first` to `last` that do not pass `first` again and never go before it: an
    /// outer loop would lead there, and with it everything. Sorted; `None` if there are too many.
    fn body(&self, first: usize, last: usize) -> Option<Vec<usize>> {
        let mut before = FxHashSet::from_iter([first, last]);
        let mut todo = if first == last { vec![] } else { vec![last] };
        while let Some(i) = todo.pop() {
            for &p in self.predecessors[i].iter().filter(|&&p| p > first) {
                if before.insert(p) {
                    todo.push(p);
                }
            }
            // Ways that lead in from elsewhere are cut off below, but must not make this endless.
            if before.len() > 4 * LOOP_LIMIT {
                return None;
            }
        }
        let mut body = FxHashSet::from_iter([first]);
        let mut todo = vec![first];
        while let Some(i) = todo.pop().filter(|_| body.len() <= LOOP_LIMIT) {
            todo.extend(self.successors[i].iter().flatten().filter(|&&s| before.contains(&s) && body.insert(s)));
        }
        let mut body: Vec<usize> = body.into_iter().collect();
        body.sort_unstable();
        (body.len() <= LOOP_LIMIT && body.binary_search(&last).is_ok()).then_some(body)
    }
}

fn describe(code: &[Instruction], first: usize, last: usize, body: &[usize]) -> Loop {
    let any = |test: fn(&Instruction) -> bool| body.iter().any(|&i| test(&code[i]));
    let has_atomic = any(|c| c.atomic.is_some());
    let has_call = any(|c| matches!(c.kind, Kind::Call { .. }));
    Loop {
        start: code[first].address,
        end: code[last].end(),
        instructions: body.iter().map(|&i| code[i].address).collect(),
        has_pause: any(|c| c.kind == Kind::Pause),
        has_atomic,
        has_compare_exchange: any(|c| matches!(c.atomic, Some(a) if a != super::Atomic::ReadModifyWrite)),
        has_call,
        load_only: any(|c| c.load) && !any(|c| c.store) && !has_atomic && !has_call,
    }
}
