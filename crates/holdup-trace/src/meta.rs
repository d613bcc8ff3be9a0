//! What is true of a trace as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{LossKind, Nanos, Note};

/// The machine that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel release or operating system version.
    pub os: String,
    /// `x86_64`, `aarch64`, …
    pub arch: String,
    /// CPU model.
    pub cpu: String,
}

/// What recording cost the machine, and how it was kept to its budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RecorderCost {
    /// The share of the machine's CPU time that it was to cost at most; 0 if that is not known.
    pub budget: f64,
    /// CPU seconds of the process that wrote the recording.
    pub reader_s: f64,
    /// How many of these it took to begin and to end, however long the recording: the look at what runs already, and what was left in
    /// the buffers.
    pub ends_s: f64,
    /// CPU seconds of the kernel's programs at switches, wake-ups and whatever else is not below.
    pub switches_s: f64,
    /// CPU seconds of samples.
    pub samples_s: f64,
    /// CPU seconds of the stacks of waits and wake-ups.
    pub stacks_s: f64,
    /// Stacks of waits and wake-ups that were put together.
    pub looks: u64,
    /// Stacks that were known by their site.
    pub sights: u64,
    /// Stacks that were left out to keep to the budget.
    pub left_out: u64,
    /// Samples whose stacks were left out: they tell their instruction alone.
    pub bare_samples: u64,
    /// Seconds of the waits that have a stack, added up; of each 10 ms at most.
    pub seen_s: f64,
    /// The same of the waits whose stack was left out.
    pub unseen_s: f64,
}

impl RecorderCost {
    /// The share of the time of waits, of those long enough for a stack, whose stacks were left out.
    pub fn unseen_share(&self) -> f64 {
        self.unseen_s / (self.seen_s + self.unseen_s).max(1e-9)
    }

    /// That of a part of the recording, by its share of the time.
    pub(crate) fn share(self, share: f64) -> Self {
        let RecorderCost { reader_s, ends_s, switches_s, samples_s, stacks_s, .. } = self;
        let [reader_s, ends_s, switches_s, samples_s, stacks_s] =
            [reader_s, ends_s, switches_s, samples_s, stacks_s].map(|s| s * share);
        RecorderCost { reader_s, ends_s, switches_s, samples_s, stacks_s, ..self }
    }

    /// CPU seconds in all.
    pub fn cpu_s(&self) -> f64 {
        self.reader_s + self.switches_s + self.samples_s + self.stacks_s
    }
}

/// Facts about a trace, stored as `meta.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Meta {
    /// Version of the `.holdup` file.
    pub version: u32,
    /// Where the events came from: `holdup`, `perf.data`, …
    pub format: String,
    /// The clock's reading at the trace's start, in nanoseconds of the source's clock.
    pub start_ns: u64,
    /// Length of the trace in nanoseconds.
    pub duration_ns: u64,
    /// How far the time of day (nanoseconds since 1970) was ahead of the trace's clock when it began; none if the source does not tell.
    #[serde(default)]
    pub time_of_day_ns: Option<u64>,
    /// Number of CPUs that could run threads.
    pub cpus: u16,
    /// The machine.
    pub host: Host,
    /// The command that was recorded.
    pub command: Vec<String>,
    /// Exit code of that command.
    pub exit_code: Option<i32>,
    /// The root processes of the focus; empty for the whole machine.
    pub focus_pids: Vec<u32>,
    /// Waits shorter than this have no stack, in nanoseconds.
    pub min_wait_ns: u64,
    /// The sampling period in nanoseconds; 0 if there are no samples.
    pub sample_period_ns: u64,
    /// CPU seconds that recording used: the recorder itself, and its programs in the kernel.
    pub recorder_cpu_s: f64,
    /// The recorder's process; 0 if that is not known.
    pub recorder_pid: u32,
    /// For what.
    pub recorder: RecorderCost,
    /// CPU seconds that the host took from this virtual machine meanwhile; `None` if that is not known.
    pub stolen_cpu_s: Option<f64>,
    /// By which hooks the trace was recorded.
    pub hooks: Vec<String>,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// The source's own records by its own names, whether used or not.
    pub native_events: BTreeMap<String, u64>,
    /// Waits long enough for a stack, and how many of their user stacks reached the outermost function.
    pub user_stacks: (u64, u64),
    /// Whether kernel addresses are numbers in their stead: who owns the file may not see them.
    pub kernel_addresses_hidden: bool,
    /// Of which recording this is a window; `None` if it is the whole of it.
    pub part: Option<Part>,
    /// Whether command lines, paths and the host's name were taken out.
    pub redacted: bool,
    /// What the reader noticed and the user should know.
    pub notes: Vec<Note>,
}

/// What a window was cut out of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// Where in the recording it begins, in nanoseconds.
    pub from_ns: u64,
    /// How long the recording is, in nanoseconds.
    pub of_ns: u64,
}

impl Meta {
    /// How long the trace is.
    pub fn duration(&self) -> Nanos {
        Nanos(self.duration_ns)
    }

    /// The CPU time that there was, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.duration().seconds() * f64::from(self.cpus)
    }
}

/// Records that are missing from a trace.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Loss {
    /// What kind of thing.
    pub kind: LossKind,
    /// What was lost, in words.
    pub what: String,
    /// On which CPU; `None` for all.
    pub cpu: Option<u16>,
    /// From when, in seconds.
    pub from_s: f64,
    /// Until when, in seconds.
    pub to_s: f64,
    /// How many.
    pub count: u64,
}
