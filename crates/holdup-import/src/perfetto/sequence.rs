//! What the packets of one writer told before: interned data and defaults, until the writer clears them.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use holdup_trace::{ChainId, Timestamp};

use super::place::Place;
use super::wire::{Fields, Value, field};

/// At what a profiler's samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timebase {
    /// Nobody said.
    #[default]
    Unknown,
    /// When a thread leaves its CPU.
    Switch,
    /// When a thread wakes another.
    Waking,
    /// At another tracepoint.
    Tracepoint,
    /// By a clock, cycles or another counter; nanoseconds between two samples, 0 if that is not said.
    Counter(u64),
}

/// A mapped file.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// First address; 0 if it is not known.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Where in the file the mapping begins.
    pub file_offset: u64,
    /// What a frame's relative address has on top of the distance from `start`.
    pub bias: u64,
    /// Interned number of the build id.
    pub build_id: u64,
    /// Interned numbers of the parts of the path.
    pub path: Vec<u64>,
}

/// A frame of a call stack.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    /// Interned number of the function's name.
    pub function: u64,
    /// Interned number of the mapping.
    pub mapping: u64,
    /// The address, relative to the mapping.
    pub address: u64,
    /// Interned number of the source file.
    pub source: u64,
    /// Source line.
    pub line: u32,
    /// Whether it is told to be of the kernel.
    pub kernel: bool,
}

/// Lists of interned strings, each with numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    /// Functions.
    Functions,
    /// Build ids, as bytes.
    BuildIds,
    /// Parts of paths of mapped files.
    Paths,
    /// Source files.
    Sources,
}

/// The interned data of a sequence.
#[derive(Debug, Default)]
pub struct Interned {
    strings: FxHashMap<(List, u64), Vec<u8>>,
    /// Mapped files.
    pub mappings: FxHashMap<u64, Mapping>,
    /// Frames.
    pub frames: FxHashMap<u64, Frame>,
    /// Frames of call stacks, the outermost first.
    pub stacks: FxHashMap<u64, Vec<u64>>,
    /// Chains that were made of stacks, by process, with the instruction on top.
    pub chains: FxHashMap<(u64, u32), (ChainId, u64)>,
    /// Where frames lie, by process.
    pub places: FxHashMap<(u64, u32), Rc<Place>>,
    /// Thread and process of `stack_sample`.
    pub tasks: FxHashMap<u64, (u32, u32)>,
    /// CPUs of `stack_sample`.
    pub executions: FxHashMap<u64, u32>,
}

impl Interned {
    /// The string of that number; empty if there is none.
    pub fn string(&self, list: List, number: u64) -> &[u8] {
        self.strings.get(&(list, number)).map_or(&[], |s| s)
    }

    /// Takes what an `InternedData` tells.
    pub fn add(&mut self, message: &[u8]) {
        for (number, value) in Fields::new(message) {
            let entry = value.bytes();
            match number {
                5 => self.add_string(List::Functions, entry),
                16 => self.add_string(List::BuildIds, entry),
                17 => self.add_string(List::Paths, entry),
                18 => self.add_string(List::Sources, entry),
                6 => self.add_frame(entry),
                7 => self.add_stack(entry),
                19 => self.add_mapping(entry),
                48 => {
                    self.tasks.insert(iid(entry), task(entry));
                }
                49 => {
                    self.executions.insert(iid(entry), execution(entry));
                }
                _ => {}
            }
        }
    }

    fn add_string(&mut self, list: List, entry: &[u8]) {
        let text = field(entry, 2).map_or(&[][..], |value| value.bytes());
        self.strings.insert((list, iid(entry)), text.to_vec());
    }

    fn add_frame(&mut self, entry: &[u8]) {
        const KERNEL: u64 = 2;
        let mut frame = Frame::default();
        for (number, value) in Fields::new(entry) {
            match number {
                2 => frame.function = value.number(),
                3 => frame.mapping = value.number(),
                4 => frame.address = value.number(),
                5 => frame.source = value.number(),
                6 => frame.line = value.low(),
                7 => frame.kernel = value.number() == KERNEL,
                _ => {}
            }
        }
        self.frames.insert(iid(entry), frame);
    }

    fn add_stack(&mut self, entry: &[u8]) {
        let frames = Fields::new(entry).filter(|&(n, _)| n == 2).flat_map(|(_, value)| value.numbers());
        self.stacks.insert(iid(entry), frames.collect());
    }

    fn add_mapping(&mut self, entry: &[u8]) {
        let mut mapping = Mapping::default();
        let (mut exact, mut first, mut load) = (0_u64, 0, 0);
        for (number, value) in Fields::new(entry) {
            match number {
                2 => mapping.build_id = value.number(),
                3 => first = value.number(),
                4 => mapping.start = value.number(),
                5 => mapping.end = value.number(),
                6 => load = value.number(),
                7 => mapping.path.extend(value.numbers()),
                8 => exact = value.number(),
                _ => {}
            }
        }
        mapping.file_offset = exact;
        mapping.bias = exact.wrapping_sub(first).wrapping_add(load);
        self.mappings.insert(iid(entry), mapping);
    }
}

fn iid(entry: &[u8]) -> u64 {
    field(entry, 1).map_or(0, |value| value.number())
}

/// Thread and process in a `TaskContext`.
pub fn task(message: &[u8]) -> (u32, u32) {
    let number = |n| field(message, n).map(|value| value.low());
    let pid = number(2);
    (number(3).or(pid).unwrap_or(0), pid.unwrap_or(0))
}

/// The CPU in an `ExecutionContext`; `u32::MAX` for none.
pub fn execution(message: &[u8]) -> u32 {
    field(message, 2).map_or(u32::MAX, |value| value.low())
}

/// The state of one sequence of packets.
#[derive(Debug, Default)]
pub struct Sequence {
    /// Whether packets were lost since the state was cleared last: what refers to it cannot be understood.
    pub broken: bool,
    /// Whether a packet came before.
    pub seen: bool,
    /// The clock of packets that name none; 0 for the trace's own.
    pub clock: u32,
    /// What samples are taken at.
    pub timebase: Timebase,
    /// Interned data.
    pub interned: Interned,
    /// The time of the last packet that had one.
    pub last: u64,
}

impl Sequence {
    /// Forgets what was told so far.
    pub fn clear(&mut self) {
        *self = Sequence { seen: self.seen, last: self.last, ..Sequence::default() };
    }

    /// Takes a `TracePacketDefaults`.
    pub fn defaults(&mut self, message: &[u8]) {
        for (number, value) in Fields::new(message) {
            match number {
                58 => self.clock = value.low(),
                // perf_sample_defaults holds its timebase in field 1.
                12 => self.timebase = field(value.bytes(), 1).map_or(self.timebase, |base| timebase(base.bytes())),
                _ => {}
            }
        }
    }
}

/// The meaning of a `PerfEvents.Timebase`.
fn timebase(message: &[u8]) -> Timebase {
    let number = |n| field(message, n);
    let Some(tracepoint) = number(3) else {
        return Timebase::Counter(period(number(1), number(2), number(4)));
    };
    let name = field(tracepoint.bytes(), 1).map_or(&[][..], |name| name.bytes());
    match name.rsplit(|&b| b == b':' || b == b'/').next() {
        Some(b"sched_switch") => Timebase::Switch,
        Some(b"sched_waking") => Timebase::Waking,
        _ => Timebase::Tracepoint,
    }
}

/// Nanoseconds between two samples: by their number in a second, or as the period of a counter that counts nanoseconds.
fn period(period: Option<Value>, frequency: Option<Value>, counter: Option<Value>) -> u64 {
    const CPU_CLOCK: u64 = 1;
    const TASK_CLOCK: u64 = 3;
    match (period.map(Value::number), frequency.map(Value::number)) {
        (_, Some(frequency @ 1..)) => Timestamp::from_seconds(1.0 / frequency as f64).nanos(),
        (Some(period), _) if counter.is_some_and(|c| [CPU_CLOCK, TASK_CLOCK].contains(&c.number())) => period,
        _ => 0,
    }
}
