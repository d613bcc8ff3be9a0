//! The kernel's functions as the file lists them (`/proc/kallsyms` of its machine): names for stacks.

use holdup_trace::{Location, TraceBuilder};
use rustc_hash::FxHashSet;

/// Functions by address.
#[derive(Debug, Default)]
pub struct Functions {
    text: String,
    /// Address, and where its name begins in `text`.
    starts: Vec<(u64, u32)>,
    named: FxHashSet<u64>,
}

impl Functions {
    /// From lines of address, kind, name and perhaps `[module]`. O(n log n).
    pub fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text).into_owned();
        let mut starts = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let mut words = line.splitn(3, ' ');
            if let (Some(address), Some("t" | "T" | "w" | "W"), Some(_)) = (words.next(), words.next(), words.next()) {
                // Who recorded without privilege sees no addresses.
                let address = u64::from_str_radix(address, 16).ok().filter(|&a| a != 0);
                let name = u32::try_from(at + line.find(' ').unwrap_or(0) + 3).ok();
                starts.extend(address.zip(name));
            }
            at += line.len();
        }
        starts.sort_unstable();
        Functions { text, starts, named: FxHashSet::default() }
    }

    /// Tells `to` the names of a stack's addresses, the leaf first; callers are return addresses.
    pub fn name(&mut self, stack: &[u64], to: &mut TraceBuilder) {
        for (i, &address) in stack.iter().enumerate() {
            // The builder moves a caller's address into its call, and that is where it has its name.
            let address = address.saturating_sub(u64::from(i > 0));
            if self.named.insert(address)
                && let Some(location) = self.find(address)
            {
                to.name(0, address, vec![location]);
            }
        }
    }

    /// How many frames at the leaf are the tracer's own: it takes stacks from inside of a tracepoint.
    pub fn of_tracer(&self, stack: &[u64]) -> usize {
        const TRACER: [&str; 3] = ["trace_event_", "__traceiter_", "__trace_"];
        let is_tracer = |&&address: &&u64| {
            self.find(address).is_some_and(|l| TRACER.iter().any(|begin| l.function.starts_with(begin)))
        };
        stack.iter().take_while(is_tracer).count()
    }

    fn find(&self, address: u64) -> Option<Location> {
        let behind = self.starts.partition_point(|&(start, _)| start <= address);
        let (start, name) = *self.starts.get(behind.checked_sub(1)?)?;
        let line = self.text.get(name as usize..)?.lines().next()?;
        let (function, module) = line.split_once(['\t', ' ']).unwrap_or((line, ""));
        let module = if module.is_empty() { "[kernel]" } else { module };
        let (function, module) = (function.to_owned(), module.trim().to_owned());
        Some(Location { function, module, offset: address - start, ..Location::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_of_the_function_before_it() {
        let f = Functions::parse(b"ffffffff81000020 T second\nffffffff81000010 t first\nffffffff81000018 d data\nffffffffc0000000 t of\t[module]\n");
        let name = |address| f.find(address).map(|l| (l.function, l.module, l.offset));
        let kernel = |function: &str, offset| Some((function.to_owned(), "[kernel]".to_owned(), offset));
        assert_eq!(name(0xffff_ffff_8100_0019), kernel("first", 9));
        assert_eq!(name(0xffff_ffff_8100_0020), kernel("second", 0));
        assert_eq!(name(0xffff_ffff_c000_0001), Some(("of".to_owned(), "[module]".to_owned(), 1)));
        assert_eq!(name(0xffff_ffff_8100_0000), None);
    }

    #[test]
    fn frames_of_the_tracer_are_told_from_those_of_the_kernel() {
        let f = Functions::parse(
            b"10 t trace_event_raw_event_sched_switch\n20 T __traceiter_sched_switch\n30 t __schedule\n",
        );
        assert_eq!([&[0x11, 0x21, 0x31][..], &[0x31, 0x11], &[]].map(|stack| f.of_tracer(stack)), [2, 0, 0]);
    }

    #[test]
    fn addresses_that_were_not_to_be_seen_name_nothing() {
        assert!(Functions::parse(b"0000000000000000 T hidden\n0000000000000000 T too\nnonsense").starts.is_empty());
    }
}
