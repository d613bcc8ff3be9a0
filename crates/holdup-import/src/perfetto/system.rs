//! What a trace says of its machine, of its recording, and of what was lost meanwhile.

use std::collections::BTreeMap;

use holdup_trace::Meta;

use super::wire::{Fields, Value, field};
use crate::bytes::text;
use crate::linux::state::StateBits;

/// States of kernels before 4.14, as their tracepoint prints them.
const STATES_BEFORE_4_14: &str = r#"{ 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "X" }, { 32, "Z" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }, { 1024, "N" }, { 2048, "n" } "+""#;
/// And of those before 4.8, which know one state less.
const STATES_BEFORE_4_8: &str = r#"{ 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "X" }, { 32, "Z" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }, { 1024, "N" } "+""#;

/// What a trace says of itself.
#[derive(Debug, Default)]
pub struct System {
    /// The kernel's version, if it is told.
    kernel: Option<(u32, u32)>,
    /// Events that ftrace overwrote or dropped, by CPU: when the recording began, and at its end.
    overwritten: BTreeMap<u32, (u64, u64)>,
    /// Packets for which the service had no room.
    pub packets_lost: u64,
    /// Whether the buffer was full and its oldest content was overwritten.
    pub wrapped: bool,
    /// Whether the buffer was full and what came later was left out.
    pub full: bool,
    /// ftrace's events that were asked for and not to be had.
    pub missing: Vec<String>,
    has_period: bool,
}

impl System {
    /// A `SystemInfo`.
    pub fn info(&mut self, message: &[u8], meta: &mut Meta) {
        for (number, value) in Fields::new(message) {
            match number {
                1 => self.uname(value.bytes(), meta),
                17 => meta.host.name = text(value.bytes()),
                9 if meta.host.cpu.is_empty() => meta.host.cpu = text(value.bytes()),
                8 => meta.cpus = meta.cpus.max(u16::try_from(value.number()).unwrap_or(0)),
                _ => {}
            }
        }
    }

    fn uname(&mut self, message: &[u8], meta: &mut Meta) {
        let string = |n| text(field(message, n).map_or(&[][..], Value::bytes));
        (meta.host.os, meta.host.arch) = (string(3), string(4));
        let mut parts = meta.host.os.split('.').map(|part| part.parse::<u32>().ok());
        self.kernel = parts.next().flatten().zip(parts.next().flatten());
    }

    /// What the bits of states mean in this kernel.
    pub fn states(&self) -> Option<StateBits> {
        match self.kernel? {
            version if version < (4, 8) => Some(StateBits::from_print_format(STATES_BEFORE_4_8)),
            version if version < (4, 14) => Some(StateBits::from_print_format(STATES_BEFORE_4_14)),
            _ => None,
        }
    }

    /// A `CpuInfo`.
    pub fn cpus(&mut self, message: &[u8], meta: &mut Meta) {
        let cpus: Vec<&[u8]> = Fields::new(message).filter(|&(n, _)| n == 1).map(|(_, cpu)| cpu.bytes()).collect();
        meta.cpus = meta.cpus.max(u16::try_from(cpus.len()).unwrap_or(0));
        if let Some(name) = cpus.first().and_then(|cpu| field(cpu, 1)).filter(|name| !name.bytes().is_empty()) {
            meta.host.cpu = text(name.bytes());
        }
    }

    /// A `TraceConfig`: were the ends of system calls asked for, too?
    pub fn asks_for_exits(message: &[u8]) -> bool {
        let each = |message, number| Fields::new(message).filter(move |&(n, _)| n == number).map(|(_, v)| v.bytes());
        each(message, 2)
            .flat_map(|source| each(source, 1))
            .flat_map(|config| each(config, 100))
            .flat_map(|ftrace| each(ftrace, 1))
            .any(|event| [&b"raw_syscalls/sys_exit"[..], b"raw_syscalls/*"].contains(&event))
    }

    /// An `FtraceStats`, at the recording's begin or end.
    pub fn ftrace_stats(&mut self, message: &[u8]) {
        const END: u64 = 2;
        let at_end = field(message, 1).is_some_and(|phase| phase.number() == END);
        for (number, value) in Fields::new(message) {
            match number {
                2 => {
                    let count = |n| field(value.bytes(), n).map_or(0, Value::number);
                    let gone = count(3).saturating_add(count(4)).saturating_add(count(8));
                    let entry = self.overwritten.entry(count(1) as u32).or_default();
                    if at_end { entry.1 = gone } else { entry.0 = gone }
                }
                6 | 7 => self.missing.push(text(value.bytes())),
                _ => {}
            }
        }
    }

    /// How many events of each CPU ftrace overwrote or dropped while the trace was recorded.
    pub fn overwritten(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.overwritten.iter().map(|(&cpu, &(begin, end))| (cpu, end.saturating_sub(begin))).filter(|&(_, n)| n > 0)
    }

    /// A `TraceStats`: the latest counts all that was lost so far.
    pub fn trace_stats(&mut self, message: &[u8]) {
        let mut lost = 0_u64;
        for (_, buffer) in Fields::new(message).filter(|&(n, _)| n == 1) {
            let count = |n| field(buffer.bytes(), n).map_or(0, Value::number);
            lost = lost.saturating_add(count(19));
            self.wrapped |= count(3) > 0;
            self.full |= count(18) > 0;
        }
        self.packets_lost = lost;
    }

    /// CPU samples are taken every `period` nanoseconds; 0 if that is not told.
    #[inline]
    pub fn sampled(&mut self, period: u64, meta: &mut Meta) {
        if !self.has_period && period > 0 {
            self.has_period = true;
            meta.sample_period_ns = period;
        }
    }
}
