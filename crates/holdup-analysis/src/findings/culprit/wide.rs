//! Which functions lie on how much of what ran.

use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId};
use rustc_hash::FxHashMap;

/// The functions that lie on at least the share `least` of the weight, the innermost first, where `frames_of` picks frames.
pub(super) fn wide(
    samples: &FxHashMap<StackId, f64>,
    least: f64,
    frames_of: impl Fn(StackId) -> Vec<(FrameId, LocationRow)>,
) -> Vec<Function> {
    let mut functions: FxHashMap<StringId, Function> = FxHashMap::default();
    let mut total = 0.0;
    let mut ordered: Vec<_> = samples.iter().collect();
    ordered.sort_by_key(|(stack, _)| **stack);
    for (&stack, &weight) in ordered {
        let frames = frames_of(stack);
        if frames.is_empty() {
            continue;
        }
        total += weight;
        let depth = frames.len();
        for (i, (_, location)) in frames.into_iter().enumerate() {
            let function = functions.entry(location.function).or_default();
            (function.name, function.module) = (location.function, location.module);
            function.add(stack, weight, (depth - i) as f64, location);
            function.own += if i == 0 { weight } else { 0.0 };
        }
    }
    let mut wide: Vec<Function> = functions.into_values().filter(|f| f.weight >= least * total).collect();
    wide.sort_by(|a, b| b.depth().total_cmp(&a.depth()).then(b.weight.total_cmp(&a.weight)).then(a.name.cmp(&b.name)));
    wide
}

/// What lies on some of the weight.
#[derive(Default)]
pub(super) struct Function {
    pub(super) name: StringId,
    pub(super) module: StringId,
    pub(super) weight: f64,
    /// The part in which it is the innermost.
    pub(super) own: f64,
    depths: f64,
    last: StackId,
    lines: FxHashMap<(StringId, u32), (f64, Option<LocationRow>)>,
}

impl Function {
    fn add(&mut self, stack: StackId, weight: f64, depth: f64, location: LocationRow) {
        // A recursive function counts once in a stack.
        if self.last == stack && stack != StackId::NONE {
            return;
        }
        self.last = stack;
        self.weight += weight;
        self.depths += weight * depth;
        let line = self.lines.entry((location.file, location.line)).or_insert((0.0, None));
        line.0 += weight;
        line.1 = Some(location);
    }

    /// How far it is from where its threads begin, on average.
    pub(super) fn depth(&self) -> f64 {
        self.depths / self.weight.max(f64::MIN_POSITIVE)
    }

    /// Where most of its weight is.
    pub(super) fn hottest_line(self) -> LocationRow {
        let most = self.lines.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0)));
        most.and_then(|(_, (_, location))| location).expect("a function was added with a location")
    }
}
