//! Functions, processes and lines by names that do not depend on the run.

use std::rc::Rc;

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::{Call, Chain, Place, Trail};
use crate::findings::Context;
use crate::{classify, label};

/// Functions on a trail.
const TRAIL: usize = 5;

/// Names that do not depend on the run.
pub(super) struct Names<'a> {
    context: &'a Context<'a>,
    program: String,
    places: FxHashMap<(Rc<str>, StackId), Place>,
    chains: FxHashMap<StackId, Rc<[Rc<str>]>>,
    texts: FxHashMap<String, Rc<str>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(context: &'a Context<'a>, program: &str) -> Self {
        Names {
            context,
            program: program.to_owned(),
            places: FxHashMap::default(),
            chains: FxHashMap::default(),
            texts: FxHashMap::default(),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> Rc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let shared: Rc<str> = text.into();
        self.texts.insert(text.to_owned(), shared.clone());
        shared
    }

    /// The process's name; empty for the program in focus, which may be called differently on the other side.
    pub(super) fn same_program(&mut self, process: &str) -> Rc<str> {
        let name = if process == self.program { "" } else { process };
        self.text(name)
    }

    pub(super) fn process(&mut self, thread: ThreadIdx) -> Rc<str> {
        self.same_program(label::process_name(self.context.trace, thread))
    }

    pub(super) fn trail(&mut self, thread: ThreadIdx, stack: StackId) -> Trail {
        let place = self.place(thread, stack);
        let frames = self.context.classifier.application_frames(stack);
        let inlined = |i: usize| frames.get(i + 1).is_some_and(|next| next.0 == frames[i].0);
        let call = |i: usize| (self.context.trace.text(frames[i].1.function), inlined(i));
        let mut calls: Vec<Call> = Vec::with_capacity(TRAIL);
        for (function, inlined) in (0..frames.len().min(TRAIL)).map(call).collect::<Vec<_>>() {
            calls.push(Call { function: self.text(function), inlined });
        }
        if calls.is_empty() {
            calls.push(Call { function: place.function, inlined: false });
        }
        Trail { process: place.process, calls }
    }

    pub(super) fn chain(&mut self, thread: ThreadIdx, stack: StackId) -> Chain {
        let process = self.process(thread);
        if let Some(functions) = self.chains.get(&stack) {
            return Chain { process, functions: functions.clone() };
        }
        let mut functions: Vec<Rc<str>> = Vec::new();
        for (_, location) in self.context.classifier.application_frames(stack) {
            let function = self.text(self.context.trace.text(location.function));
            if !functions.contains(&function) {
                functions.push(function);
            }
        }
        if functions.is_empty() {
            let nameless = nameless_module(self.context, stack).map(|module| self.text(&format!("({module})")));
            functions.push(nameless.unwrap_or_else(|| self.place(thread, stack).function));
        }
        let functions: Rc<[Rc<str>]> = functions.into();
        self.chains.insert(stack, functions.clone());
        Chain { process, functions }
    }

    /// The innermost functions of the application, each once, with the line at which it was.
    pub(super) fn lines(&mut self, thread: ThreadIdx, stack: StackId) -> Vec<(Place, Rc<str>)> {
        let process = self.process(thread);
        let mut lines: Vec<(Place, Rc<str>)> = Vec::new();
        for (_, location) in self.context.classifier.application_frames(stack).into_iter().take(TRAIL) {
            let function = self.text(self.context.trace.text(location.function));
            let line = label::source(self.context.trace, &location);
            if !line.is_empty() && lines.iter().all(|(place, _)| place.function != function) {
                lines.push((Place { process: process.clone(), function }, self.text(&line)));
            }
        }
        lines
    }

    pub(super) fn place(&mut self, thread: ThreadIdx, stack: StackId) -> Place {
        let process = self.process(thread);
        if let Some(place) = self.places.get(&(process.clone(), stack)) {
            return place.clone();
        }
        let function = function_of(self.context, stack);
        let place = Place { process: process.clone(), function: self.text(&function) };
        self.places.insert((process, stack), place.clone());
        place
    }
}

/// The innermost module whose functions have no names: a program without symbols.
fn nameless_module<'a>(context: &Context<'a>, stack: StackId) -> Option<&'a str> {
    let trace = context.trace;
    let mut frames = trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f));
    let nameless =
        frames.find(|l| trace.text(l.function).contains("+0x") && !classify::is_kernel_module(trace.text(l.module)))?;
    trace.text(nameless.module).rsplit('/').next()
}

/// The innermost function of the application; else of a library; else of the kernel.
fn function_of(context: &Context, stack: StackId) -> String {
    let trace = context.trace;
    let own = context.classifier.facts(stack).application;
    if own != holdup_trace::StringId::default() {
        return trace.text(own).to_owned();
    }
    let frames: Vec<_> = trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f)).collect();
    let is_kernel = |module: &str| classify::is_kernel_module(module);
    let user = frames.iter().find(|l| !is_kernel(trace.text(l.module)) && !trace.text(l.function).contains("+0x"));
    match user.or(frames.first()) {
        Some(l) => trace.text(l.function).to_owned(),
        None => "(no stack)".to_owned(),
    }
}
