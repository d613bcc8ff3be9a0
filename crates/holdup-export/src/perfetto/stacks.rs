//! Stacks as packets of a profiler: what a stack consists of is told when a writer first needs it.

use std::collections::HashSet;

use holdup_trace::tables::{Frame, ImageRow};
use holdup_trace::{FrameId, SpaceId, StackId, StringId, Table, Trace};

use super::message::Message;
use super::packet::{Writer, with_state};
use crate::Result;

/// The number of the kernel's mapping, and of the one for code of which nothing is known.
const KERNEL: u64 = 1;
const NOWHERE: u64 = 2;
/// Numbers of mappings from here on are those of images.
const IMAGES: u64 = 3;
/// Kinds of frames.
const KIND_KERNEL: u64 = 2;

/// What can be told.
pub struct Places<'a> {
    trace: &'a Trace,
    images: Vec<ImageRow>,
    /// The images of each space, by start.
    spaces: Vec<Vec<(u64, u64, usize)>>,
}

impl<'a> Places<'a> {
    /// O(images).
    pub fn new(trace: &'a Trace) -> Result<Self> {
        let images: Vec<ImageRow> = trace.images.load()?.rows().collect();
        let mut spaces: Vec<Vec<(u64, u64, usize)>> = Vec::new();
        for (at, image) in images.iter().enumerate().filter(|(_, image)| image.space != SpaceId::KERNEL) {
            let space = image.space.index();
            if spaces.len() <= space {
                spaces.resize(space + 1, Vec::new());
            }
            spaces[space].push((image.start, image.end, at));
        }
        spaces.iter_mut().for_each(|images| images.sort_unstable());
        Ok(Places { trace, images, spaces })
    }

    fn image(&self, frame: Frame) -> Option<usize> {
        let images = self.spaces.get(frame.space.index())?;
        let behind = images.partition_point(|&(start, ..)| start <= frame.address);
        images[..behind].iter().rev().find(|&&(_, end, _)| frame.address < end).map(|&(.., at)| at)
    }
}

/// What one writer has told so far.
#[derive(Debug, Default)]
pub struct Told {
    stacks: HashSet<StackId>,
    frames: HashSet<FrameId>,
    mappings: HashSet<u64>,
    strings: HashSet<(u32, StringId)>,
}

/// A stack of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// When, by the trace's clock.
    pub time: u64,
    /// On which CPU, if that is known.
    pub cpu: Option<u16>,
    /// Process and thread.
    pub task: (u32, u32),
    /// The stack.
    pub stack: StackId,
}

/// Frames that are inlined into each other at one place follow each other; so many are told apart.
const INLINED: u64 = 64;

impl Told {
    /// Writes a sample, and before it what its stack consists of.
    pub fn sample(&mut self, writer: Writer, taken: &Taken, places: &Places, out: &mut Message) {
        with_state(out, writer, taken.time, |packet| {
            if taken.stack != StackId::NONE && self.stacks.insert(taken.stack) {
                packet.message(12, |interned| self.tell(taken.stack, places, interned));
            }
            packet.message(66, |sample| {
                if let Some(cpu) = taken.cpu {
                    sample.number(1, cpu.into());
                }
                sample.number(2, taken.task.0.into());
                sample.number(3, taken.task.1.into());
                if taken.stack != StackId::NONE {
                    sample.number(4, taken.stack.0.into());
                }
            });
        });
    }

    fn tell(&mut self, stack: StackId, places: &Places, interned: &mut Message) {
        let mut numbers = Vec::new();
        for frame in places.trace.stacks.frames(stack) {
            let inlined = places.trace.names.locations(frame).count().clamp(1, INLINED as usize) as u64;
            if self.frames.insert(frame) {
                self.tell_frame(frame, places, interned);
            }
            numbers.extend((0..inlined).map(|depth| number(frame, depth)));
        }
        interned.message(7, |callstack| {
            callstack.number(1, stack.0.into());
            numbers.iter().rev().for_each(|&n| callstack.number(2, n));
        });
    }

    fn tell_frame(&mut self, id: FrameId, places: &Places, interned: &mut Message) {
        let Some(frame) = places.trace.stacks.frame(id) else { return };
        let (mapping, address) = self.mapping(frame, places, interned);
        let locations: Vec<_> = places.trace.names.locations(id).take(INLINED as usize).collect();
        for depth in 0..locations.len().max(1) {
            let location = locations.get(depth);
            let name = location.map_or(StringId::default(), |l| l.function);
            let file = location.map_or(StringId::default(), |l| l.file);
            self.string(5, name, places, interned);
            self.string(18, file, places, interned);
            interned.message(6, |message| {
                message.number(1, number(id, depth as u64));
                message.number(2, name.0.into());
                message.number(3, mapping);
                message.number(4, address);
                if file != StringId::default() {
                    message.number(5, file.0.into());
                    message.number(6, location.map_or(0, |l| l.line).into());
                }
                if frame.space == SpaceId::KERNEL {
                    message.number(7, KIND_KERNEL);
                }
            });
        }
    }

    /// The number of the mapping that holds a frame, and the frame's address in it.
    fn mapping(&mut self, frame: Frame, places: &Places, interned: &mut Message) -> (u64, u64) {
        if frame.space == SpaceId::KERNEL {
            self.special(KERNEL, "kernel", interned);
            return (KERNEL, frame.address);
        }
        let Some(at) = places.image(frame) else {
            self.special(NOWHERE, "[unknown]", interned);
            return (NOWHERE, frame.address);
        };
        let (image, number) = (&places.images[at], IMAGES + at as u64);
        if self.mappings.insert(number) {
            self.string(17, image.path, places, interned);
            let id = holdup_trace::decode_build_id(places.trace.text(image.build_id)).unwrap_or_default();
            interned.message(16, |entry| {
                entry.number(1, number);
                entry.text(2, &id);
            });
            interned.message(19, |mapping| {
                mapping.number(1, number);
                mapping.number(2, number);
                mapping.number(8, image.file_offset);
                mapping.number(4, image.start);
                mapping.number(5, image.end);
                mapping.number(7, image.path.0.into());
            });
        }
        (number, (frame.address - image.start).wrapping_add(image.file_offset))
    }

    /// A mapping without a place. Its path has a number that no string of the trace has.
    fn special(&mut self, number: u64, path: &str, interned: &mut Message) {
        if self.mappings.insert(number) {
            let string = u64::from(u32::MAX) + number;
            interned.message(17, |entry| {
                entry.number(1, string);
                entry.text(2, path);
            });
            interned.message(19, |mapping| {
                mapping.number(1, number);
                mapping.number(7, string);
            });
        }
    }

    fn string(&mut self, list: u32, id: StringId, places: &Places, interned: &mut Message) {
        if id != StringId::default() && self.strings.insert((list, id)) {
            interned.message(list, |entry| {
                entry.number(1, id.0.into());
                entry.text(2, places.trace.text(id));
            });
        }
    }
}

/// The number of a frame, and of what is inlined there.
fn number(frame: FrameId, depth: u64) -> u64 {
    u64::from(frame.0) * INLINED + depth + 1
}
