//! Where a stack is in the program, as far as homes are told by it.

use std::hash::Hasher;
use std::rc::Rc;

use holdup_trace::{SpaceId, StackId, StringId};
use rustc_hash::{FxHashMap, FxHasher};

use crate::classify::{WaitKind, is_kernel_module};
use crate::intervals::prepare::Dictionary;

/// The user's part of a stack, by functions, the outermost first.
#[derive(Debug)]
pub(super) struct Path {
    /// The address space of that part; the kernel's if there is none.
    pub(super) space: SpaceId,
    pub(super) functions: Vec<u64>,
    /// How deep the innermost function of the application lies.
    pub(super) application: usize,
    pub(super) hash: u64,
    /// Whether the functions around the wait have a lock's name.
    pub(super) says_lock: bool,
    /// Whether it ends in the C library or the kernel, and tells nothing of the program.
    pub(super) blind: bool,
    /// Whether it is in the kernel to look for input, or to take it.
    pub(super) receives: bool,
    /// Whether it waits for the answer to what it asked itself.
    pub(super) asks: bool,
    /// Whether a scheduler's task, or what a loop has called, waits here with the thread that others need.
    pub(super) keeps_thread: bool,
    /// Whether a scheduler's thread waits here for a task: however little it shares with the little that it does, it is at home.
    pub(super) parked: bool,
    /// Whether a loop that never runs within a task waits here for whatever comes.
    pub(super) in_loop: bool,
}

pub(super) struct Paths<'d, 'a> {
    dictionary: &'d Dictionary<'a>,
    known: FxHashMap<StackId, Rc<Path>>,
}

impl<'d, 'a> Paths<'d, 'a> {
    pub(super) fn new(dictionary: &'d Dictionary<'a>) -> Self {
        Paths { dictionary, known: FxHashMap::default() }
    }

    pub(super) fn of(&mut self, stack: StackId) -> Rc<Path> {
        if let Some(path) = self.known.get(&stack) {
            return path.clone();
        }
        let path = Rc::new(self.make(stack));
        self.known.insert(stack, path.clone());
        path
    }

    fn make(&self, stack: StackId) -> Path {
        let Dictionary { trace, classifier, .. } = self.dictionary;
        let (mut functions, mut beyond, mut receives) = (Vec::new(), None, false);
        for frame in trace.stacks.frames(stack) {
            let mut named = false;
            for number in trace.names.rows(frame) {
                let location = trace.names.location(number);
                named = true;
                if is_kernel_module(trace.text(location.module)) {
                    receives |= receives_in(trace.text(location.function));
                    continue;
                }
                if beyond.is_none() && classifier.is_application_at(number) {
                    beyond = Some(functions.len());
                }
                let name = trace.text(location.function);
                let by_name = !name.is_empty() && !name.contains("+0x");
                functions.push(if by_name { u64::from(location.function.0) } else { u64::from(frame.0) | 1 << 32 });
            }
            if !named {
                functions.push(u64::from(frame.0) | 1 << 32);
            }
        }
        functions.reverse();
        let space = trace.stacks.frames(stack).filter_map(|frame| Some(trace.stacks.frame(frame)?.space));
        let space = space.max().unwrap_or(SpaceId::KERNEL);
        let application = beyond.map_or(0, |beyond| functions.len() - beyond);
        let facts = classifier.facts(stack);
        let is_called_by_loop = classifier.is_called_by_loop(stack);
        let in_task = classifier.scheduler_at(stack).is_some_and(|s| s.lends_threads);
        let mut hasher = FxHasher::default();
        functions.iter().for_each(|function| hasher.write_u64(*function));
        Path {
            space,
            functions,
            application,
            hash: hasher.finish(),
            says_lock: facts.lock_function != StringId::default(),
            blind: !facts.tells,
            receives,
            asks: facts.asks,
            parked: facts.parked,
            in_loop: facts.kind == Some(WaitKind::Input) && is_called_by_loop == Some(false),
            keeps_thread: !facts.parked && in_task || is_called_by_loop == Some(true),
        }
    }
}

/// Whether a function of the kernel looks for input, or takes it.
fn receives_in(function: &str) -> bool {
    const RECEIVE: [&str; 8] = [
        "sock_recvmsg",
        "sock_read_iter",
        "__sys_recvfrom",
        "___sys_recvmsg",
        "do_epoll_wait",
        "do_sys_poll",
        "do_select",
        "do_accept",
    ];
    RECEIVE.contains(&function)
}
