//! Call chains: perf's list of addresses with markers, split into kernel and user part.

use holdup_trace::{ChainId, RawStack, TraceBuilder};
use std::hash::Hasher;

use super::plan::{Plan, Sample};
use super::recent::{Owner, Place, Recent};
use crate::linux::tracepoint::{At, Current};

const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;
/// Markers are the addresses from here on.
const CONTEXT_MAX: u64 = -4095_i64 as u64;

/// `PERF_RECORD_MISC_CPUMODE_MASK` and two of its values.
const MODE_MASK: u16 = 7;
const MODE_KERNEL: u16 = 1;
const MODE_USER: u16 = 2;

/// Splits chains, in buffers that are used over and over.
#[derive(Debug, Default)]
pub struct Splitter {
    kernel: Vec<u64>,
    user: Vec<u64>,
    recent: Recent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Kernel,
    User,
    /// A hypervisor's or a guest's frames, or a promise to deliver them later.
    Skipped,
}

impl Splitter {
    /// The chain of a sample in the builder's terms.
    #[inline]
    pub fn chain(&mut self, plan: &Plan, misc: u16, s: &Sample, at: At, to: &mut TraceBuilder) -> ChainId {
        let owner = Owner { pid: s.pid, mode: misc & MODE_MASK };
        // A copied stack says more than the chain that comes with it.
        if !s.stack.is_empty() {
            self.split(s.chain, owner.mode);
            let placed = !self.is_empty() || self.leaf(owner.mode, s.ip, at);
            return if placed { self.raw_chain(plan, s, to) } else { ChainId::NONE };
        }
        if s.chain.is_empty() && at != At::Sample {
            return ChainId::NONE;
        }
        match self.recent.find(s.tid.wrapping_mul(4) | at as u32, owner, s.chain) {
            Ok(chain) => chain,
            Err(place) => self.new_chain(place, owner, s, at, to),
        }
    }

    /// The chain with these entries, eight bytes each, of a source that has neither copied stacks nor modes.
    pub fn entries(&mut self, current: Current, entries: &[u8], at: At, to: &mut TraceBuilder) -> ChainId {
        let owner = Owner { pid: current.pid, mode: 0 };
        let sample = Sample { pid: current.pid, tid: current.tid, chain: entries, ..Sample::default() };
        if entries.is_empty() {
            return ChainId::NONE;
        }
        match self.recent.find(current.tid.wrapping_mul(4) | at as u32, owner, entries) {
            Ok(chain) => chain,
            Err(place) => self.new_chain(place, owner, &sample, at, to),
        }
    }

    #[inline(never)]
    fn new_chain(&mut self, place: Place, owner: Owner, s: &Sample, at: At, to: &mut TraceBuilder) -> ChainId {
        self.split(s.chain, owner.mode);
        let is_whole = !self.is_empty();
        if !is_whole && !self.leaf(owner.mode, s.ip, at) {
            return ChainId::NONE;
        }
        // A thread that has left its process has no addresses there any more.
        let chain = match s.pid {
            u32::MAX => to.chain(0, &self.kernel, &[]),
            pid => to.chain(pid, &self.kernel, &self.user),
        };
        // The instruction is no part of the entries.
        if is_whole {
            self.recent.keep(place, owner, s.chain, chain);
        }
        chain
    }

    fn is_empty(&self) -> bool {
        self.kernel.is_empty() && self.user.is_empty()
    }

    /// Takes the instruction in place of a chain that is missing. False if it cannot be told where it belongs.
    fn leaf(&mut self, mode: u16, ip: u64, at: At) -> bool {
        match mode {
            _ if at != At::Sample || ip == 0 => {}
            MODE_KERNEL => self.kernel.push(ip),
            MODE_USER => self.user.push(ip),
            _ => return false,
        }
        true
    }

    fn split(&mut self, entries: &[u8], mode: u16) {
        self.kernel.clear();
        self.user.clear();
        let mut part = match mode {
            MODE_KERNEL => Part::Kernel,
            MODE_USER => Part::User,
            _ => Part::Skipped,
        };
        let (entries, _) = entries.as_chunks::<8>();
        for entry in entries {
            let address = u64::from_le_bytes(*entry);
            if address >= CONTEXT_MAX {
                part = match address {
                    CONTEXT_KERNEL => Part::Kernel,
                    CONTEXT_USER => Part::User,
                    _ => Part::Skipped,
                };
                continue;
            }
            match part {
                Part::Kernel => self.kernel.push(address),
                Part::User => self.user.push(address),
                Part::Skipped => {}
            }
        }
        // Walking frame pointers often ends with a null.
        while self.user.last() == Some(&0) {
            self.user.pop();
        }
    }

    /// `perf record --call-graph dwarf`: registers and a copy of the stack, to be unwound later.
    fn raw_chain(&self, plan: &Plan, s: &Sample, to: &mut TraceBuilder) -> ChainId {
        let Some(registers) = Registers::of(plan, s, &to.meta_mut().host.arch) else {
            return to.chain(s.pid, &self.kernel, &self.user);
        };
        let Registers { ip, sp, bp, lr } = registers;
        let mut h = rustc_hash::FxHasher::default();
        h.write_u32(s.pid);
        [ip, sp, bp, lr].iter().chain(&self.kernel).for_each(|&word| h.write_u64(word));
        h.write(s.stack);
        let hash = h.finish().max(1);
        let bytes = s.stack.to_vec();
        let kernel = self.kernel.clone();
        to.define_raw_stack(hash, RawStack { pid: s.pid, kernel, ip, sp, bp, lr, bytes, ..RawStack::default() });
        to.raw_chain(hash)
    }
}

/// The registers that an unwinder starts from.
struct Registers {
    ip: u64,
    sp: u64,
    bp: u64,
    lr: u64,
}

impl Registers {
    /// `None` unless instruction and stack pointer were recorded.
    fn of(plan: &Plan, s: &Sample, arch: &str) -> Option<Self> {
        // Numbers of `enum perf_event_x86_regs` and `perf_event_arm_regs`.
        let (ip, sp, bp, lr) = if arch == "aarch64" { (32, 31, 29, Some(30)) } else { (8, 7, 6, None) };
        let mask = plan.register_mask();
        let register = |number: u32| {
            let below = (mask & ((1_u64 << number) - 1)).count_ones() as usize;
            let present = mask >> number & 1 == 1;
            present.then(|| crate::bytes::u64_at(s.registers, below * 8))?
        };
        Some(Registers {
            ip: register(ip)?,
            sp: register(sp)?,
            bp: register(bp).unwrap_or(0),
            lr: lr.and_then(register).unwrap_or(0),
        })
    }
}
