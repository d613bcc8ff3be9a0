//! The tables of a thread's stacks: each stack, frame and function once.

use holdup_analysis::classify::is_kernel_module;
use holdup_analysis::label::is_recorder;
use holdup_analysis::lanes::Doing;
use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::shared::{KERNEL, Strings, USER, category};

/// Who calls whom.
#[derive(Debug, Default, Serialize)]
pub(super) struct StackTable {
    frame: Vec<u32>,
    prefix: Vec<Option<u32>>,
    length: usize,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    /// -1: functions have their names already, so that nobody has to look addresses up.
    address: Vec<i8>,
    inline_depth: Vec<u32>,
    category: Vec<Option<u32>>,
    subcategory: Vec<Option<u32>>,
    func: Vec<u32>,
    native_symbol: Vec<Option<u32>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<Option<u32>>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
    length: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct FuncTable {
    name: Vec<u32>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    resource: Vec<i32>,
    source: Vec<Option<u32>>,
    #[serde(rename = "lineNumber")]
    line_number: Vec<Option<u32>>,
    #[serde(rename = "columnNumber")]
    column_number: Vec<Option<u32>>,
    length: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ResourceTable {
    lib: Vec<Option<u32>>,
    name: Vec<u32>,
    host: Vec<Option<u32>>,
    #[serde(rename = "type")]
    of: Vec<u8>,
    length: usize,
}

/// A resource that is a library, as the format numbers it.
const LIBRARY: u8 = 1;

/// All of a thread.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub stacks: StackTable,
    pub frames: FrameTable,
    pub funcs: FuncTable,
    pub resources: ResourceTable,
    known_stacks: FxHashMap<(StackId, Option<Doing>), Option<u32>>,
    nodes: FxHashMap<(Option<u32>, u32), u32>,
    known_frames: FxHashMap<FrameKey, u32>,
    known_funcs: FxHashMap<(u32, i32, Option<u32>), u32>,
    known_resources: FxHashMap<u32, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    func: u32,
    category: Option<u32>,
    line: Option<u32>,
    depth: u32,
}

impl Tables {
    /// The number of a stack; with what is waited for as its innermost frame. O(depth) when it is new.
    pub fn stack(&mut self, trace: &Trace, strings: &mut Strings, stack: StackId, waits: Option<Doing>) -> Option<u32> {
        if let Some(&known) = self.known_stacks.get(&(stack, waits)) {
            return known;
        }
        let frames: Vec<FrameId> = trace.stacks.frames(stack).collect();
        let own = frames.iter().take_while(|f| of_recorder(trace, **f)).count();
        let mut at = None;
        for &frame in frames[own..].iter().rev() {
            let mut locations: Vec<LocationRow> = trace.names.locations(frame).collect();
            locations.retain(|l| !trace.text(l.function).is_empty());
            if locations.is_empty() {
                let address = trace.stacks.frame(frame).map_or(0, |f| f.address);
                let func = self.func(strings.of(&format!("{address:#x}")), -1, None);
                at = Some(self.node(at, FrameKey { func, category: None, line: None, depth: 0 }));
            }
            for (depth, location) in locations.iter().rev().enumerate() {
                let key = self.key(trace, strings, location, depth as u32);
                at = Some(self.node(at, key));
            }
        }
        if let Some(doing) = waits {
            let func = self.func(strings.of(&format!("({})", doing.name())), -1, None);
            at = Some(self.node(at, FrameKey { func, category: Some(category(doing)), line: None, depth: 0 }));
        }
        self.known_stacks.insert((stack, waits), at);
        at
    }

    fn key(&mut self, trace: &Trace, strings: &mut Strings, location: &LocationRow, depth: u32) -> FrameKey {
        let module = trace.text(location.module);
        let resource = match module {
            "" => -1,
            module => self.resource(strings.of(module.rsplit('/').next().unwrap_or(module))) as i32,
        };
        let source = (location.file != StringId::default()).then(|| strings.source(trace.text(location.file)));
        let func = self.func(strings.of(trace.text(location.function)), resource, source);
        let category = if is_kernel_module(module) { KERNEL } else { USER };
        FrameKey { func, category: Some(category), line: Some(location.line).filter(|&l| l > 0), depth }
    }

    fn node(&mut self, prefix: Option<u32>, key: FrameKey) -> u32 {
        let frame = self.frame(key);
        let stacks = &mut self.stacks;
        *self.nodes.entry((prefix, frame)).or_insert_with(|| {
            stacks.frame.push(frame);
            stacks.prefix.push(prefix);
            stacks.length += 1;
            stacks.length as u32 - 1
        })
    }

    fn frame(&mut self, key: FrameKey) -> u32 {
        let frames = &mut self.frames;
        *self.known_frames.entry(key).or_insert_with(|| {
            frames.address.push(-1);
            frames.inline_depth.push(key.depth);
            frames.category.push(key.category);
            frames.subcategory.push(key.category.map(|_| 0));
            frames.func.push(key.func);
            frames.native_symbol.push(None);
            frames.inner_window_id.push(None);
            frames.line.push(key.line);
            frames.column.push(None);
            frames.length += 1;
            frames.length as u32 - 1
        })
    }

    fn func(&mut self, name: u32, resource: i32, source: Option<u32>) -> u32 {
        let funcs = &mut self.funcs;
        *self.known_funcs.entry((name, resource, source)).or_insert_with(|| {
            funcs.name.push(name);
            funcs.is_js.push(false);
            funcs.relevant_for_js.push(false);
            funcs.resource.push(resource);
            funcs.source.push(source);
            funcs.line_number.push(None);
            funcs.column_number.push(None);
            funcs.length += 1;
            funcs.length as u32 - 1
        })
    }

    fn resource(&mut self, name: u32) -> u32 {
        let resources = &mut self.resources;
        *self.known_resources.entry(name).or_insert_with(|| {
            resources.lib.push(None);
            resources.name.push(name);
            resources.host.push(None);
            resources.of.push(LIBRARY);
            resources.length += 1;
            resources.length as u32 - 1
        })
    }
}

fn of_recorder(trace: &Trace, frame: FrameId) -> bool {
    let mut locations = trace.names.locations(frame).peekable();
    locations.peek().is_some() && locations.all(|l| is_recorder(trace.text(l.function)))
}
