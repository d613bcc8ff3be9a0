//! What runs below a function of the program and is none of it: in the kernel, and in libraries.

use holdup_trace::{StackId, StringId, Syscall};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::place;
use crate::classify::is_kernel_module;

/// From this part of a function's time on, what it asks the kernel for is what costs.
const MOSTLY: f64 = 0.7;
/// From this part of a function's time on, one that it calls is worth naming.
const NOTABLE: f64 = 0.1;
/// Functions named.
const NAMED: usize = 3;
/// What the kernel may mostly do below a function: functions of its own that tell, and what to do about it.
const KNOWN: [(&[&str], &str); 7] = [
    // It gives a program memory that this touches for the first time.
    (
        &["exc_page_fault", "do_page_fault"],
        "Touch less fresh memory in {}: keep buffers and use them again, or take large pages.",
    ),
    (
        &["flush_tlb_mm_range", "arch_tlbbatch_flush"],
        "The kernel interrupts the CPUs of the process's other threads until they have forgotten what it unmaps (TLB shootdown): give memory back \
         less often in {}, or more of it at a time (munmap, mprotect, madvise, malloc_trim and a low M_TRIM_THRESHOLD do so), or share it with fewer \
         threads.",
    ),
    (
        &["dup_mmap", "dup_mm"],
        "Start programs in {} without a copy of its address space: fork copies the page tables of all memory that the process has (posix_spawn, \
         vfork, or a small helper that forks).",
    ),
    (
        &["ipt_do_table", "ip6t_do_table", "nft_do_chain", "ebt_do_table"],
        "Most of it goes through the rules of the packet filter (iptables, nftables): have fewer of them before those that match, or look addresses \
         and ports up in sets (ipset, nft's sets and maps) instead of in a rule for each.",
    ),
    (
        &["compact_zone", "compact_zone_order"],
        "The kernel moves memory about to make room for large pages: let it do that in the background \
         (/sys/kernel/mm/transparent_hugepage/defrag: defer), or ask for large pages where they serve alone (madvise).",
    ),
    (
        &["try_to_free_pages", "try_to_free_mem_cgroup_pages"],
        "Memory is short, and {} has to make room before it gets any: allow more, on the machine (free -m) or in the control group (memory.max, \
         memory.high), or let it need less at a time.",
    ),
    (
        &["__seccomp_filter", "__audit_syscall_entry", "__audit_syscall_exit", "audit_filter_syscall"],
        "Each call of {} is looked at by a filter (seccomp) or by audit: ask the kernel less often, or give the filter fewer rules (auditctl -l), the \
         most frequent calls first.",
    ),
];

/// The CPU time of some stacks, in nanoseconds, by whose code was run.
#[derive(Debug, Default)]
pub(super) struct Below {
    pub(super) all: f64,
    kernel: f64,
    /// Those parts of that that are known.
    known: [f64; KNOWN.len()],
    /// The kernel's part by the call that it serves.
    calls: FxHashMap<StringId, f64>,
    /// By function and module, where the innermost one is not the program's.
    others: FxHashMap<(StringId, StringId), f64>,
}

impl Below {
    /// Of all these stacks.
    pub(super) fn of<'a>(context: &Context, stacks: impl Iterator<Item = (&'a StackId, &'a f64)>) -> Below {
        let mut below = Below::default();
        stacks.for_each(|(stack, weight)| below.add(context, *stack, *weight));
        below
    }

    pub(super) fn add(&mut self, context: &Context, stack: StackId, weight: f64) {
        self.all += weight;
        let Some(leaf) = place::innermost(context, stack) else { return };
        if is_kernel_module(context.trace.text(leaf.module)) {
            self.kernel += weight;
            if let Some(call) = place::functions(context, stack).find(|f| call_of(context, *f).is_some()) {
                *self.calls.entry(call).or_default() += weight;
            }
            for (sum, (functions, _)) in self.known.iter_mut().zip(KNOWN) {
                let tells = place::has(context, stack, |name| functions.contains(&name));
                *sum += if tells { weight } else { 0.0 };
            }
        }
        let own = place::application(context, stack).or_else(|| place::any_user(context, stack));
        if own.is_some_and(|own| (own.function, own.module) != (leaf.function, leaf.module)) {
            *self.others.entry((leaf.function, leaf.module)).or_default() += weight;
        }
    }

    /// The kernel's part of the time.
    pub(super) fn kernel_share(&self) -> f64 {
        self.kernel / self.all.max(1.0)
    }

    /// Functions below with a notable part of the time: the most first.
    pub(super) fn functions(&self) -> Vec<(StringId, f64)> {
        let mut others: Vec<_> = self.others.iter().map(|(key, ns)| (*key, ns / self.all.max(1.0))).collect();
        others.retain(|(_, share)| *share >= NOTABLE);
        others.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        others.into_iter().take(NAMED).map(|((function, _), share)| (function, share)).collect()
    }

    /// What to do about time that is mostly the kernel's.
    pub(super) fn advice(&self, context: &Context, function: &str) -> Option<String> {
        self.known(function).or_else(|| self.of_any(context, function))
    }

    /// The same, where it is not known at what the kernel works.
    pub(super) fn of_any(&self, context: &Context, function: &str) -> Option<String> {
        if self.known(function).is_some() || self.kernel_share() < MOSTLY {
            return None;
        }
        let call = self.call(context).map_or(String::new(), |(call, _)| format!(" ({call})"));
        let function = named(function);
        Some(format!("Ask the kernel less often in {function}{call}: for more at a time, or keep what it gave."))
    }

    /// The call that has most of the kernel's part, with its share of the time, if one has. O(calls).
    fn call<'c>(&self, context: &Context<'c>) -> Option<(&'c str, f64)> {
        let (call, ns) = self.calls.iter().find(|(_, ns)| 2.0 * **ns > self.kernel)?;
        Some((call_of(context, *call)?, ns / self.all.max(1.0)))
    }

    /// The same, if it is known at what the kernel works.
    pub(super) fn known(&self, function: &str) -> Option<String> {
        let of = if self.kernel_share() >= MOSTLY { self.kernel } else { self.all };
        let (_, (_, advice)) = self.known.iter().zip(KNOWN).find(|(sum, _)| 2.0 * **sum > of)?;
        Some(advice.replace("{}", named(function)))
    }

    /// In which functions below the time goes, if a notable part of it does.
    pub(super) fn evidence(&self, context: &Context) -> Option<String> {
        let share = |share: f64| format!("{:.0} %", 100.0 * share);
        let named = self.functions().into_iter().map(|(f, part)| format!("{} {}", context.trace.text(f), share(part)));
        let named = named.collect::<Vec<_>>().join(", ");
        let call = self.call(context).map_or(String::new(), |(call, part)| format!(", {} in {call}", share(part)));
        match (self.kernel_share(), named.as_str()) {
            (kernel, "") if kernel < NOTABLE => None,
            (kernel, "") => Some(format!("{} of its time is the kernel's{call}", share(kernel))),
            (kernel, _) if kernel < NOTABLE => Some(format!("of its time it spends below, in {named}")),
            (kernel, _) => Some(format!("{} of its time is the kernel's{call}; below it ran {named}", share(kernel))),
        }
    }
}

fn named(function: &str) -> &str {
    if function.is_empty() { "this code" } else { function }
}

/// The call that a function of the kernel serves.
fn call_of<'c>(context: &Context<'c>, function: StringId) -> Option<&'c str> {
    Syscall::name_in_kernel(context.trace.text(function))
}
