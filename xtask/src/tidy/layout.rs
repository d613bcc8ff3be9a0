//! What the programs in the kernel write has the layout that user space reads.
//!
//! The header of the programs is compared with the Rust sources that mirror it: constants by name, structs by the offsets that
//! a C compiler gives their fields.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

mod c;
mod rust;

const HEADER: &str = "crates/holdup-record/bpf/recorder.h";
const RECORDS: &str = "crates/holdup-spool/src/records.rs";
const LAYOUT: &str = "crates/holdup-record/src/layout.rs";
const EVENT: &str = "crates/holdup-trace/src/event.rs";

/// Constants by name.
type Numbers = BTreeMap<String, u64>;

/// The sources that have to agree.
struct Sources {
    header: String,
    records: String,
    layout: String,
    event: String,
}

pub fn check(root: &Path) -> Result<Vec<String>> {
    let read = |file: &str| fs::read_to_string(root.join(file)).with_context(|| file.to_owned());
    let sources =
        Sources { header: read(HEADER)?, records: read(RECORDS)?, layout: read(LAYOUT)?, event: read(EVENT)? };
    complaints(&sources)
}

fn complaints(sources: &Sources) -> Result<Vec<String>> {
    let header = c::Header::parse(&sources.header)?;
    let mut found = Found::default();
    let kinds = rust::constants(rust::block(&sources.records, "mod kind")?);
    found.same("enum kind", &header.constants("kind", "K_")?, RECORDS, &kinds);
    let bits = rust::constants(rust::block(&sources.records, "mod bit")?);
    found.same("enum bit", &header.constants("bit", "BIT_")?, RECORDS, &bits);
    // The kernel's programs know fewer contexts than importers do.
    let contexts = rust::codes(rust::block(&sources.event, "WakeContext")?);
    found.within("enum context", &header.constants("context", "CTX_")?, EVENT, &contexts);
    let rounds = rust::codes(rust::block(&sources.layout, "enum Round")?);
    found.within("enum round", &header.constants("round", "ROUND_")?, LAYOUT, &rounds);

    let mut defined = rust::constants(rust::outside_of_blocks(&sources.layout).as_str());
    let records = rust::constants(rust::outside_of_blocks(&sources.records).as_str());
    defined.extend(records.into_iter().filter_map(|(name, value)| match name.as_str() {
        "SIZE" => Some(("RECORD".to_owned(), value)),
        "TID_MASK" => Some((name, value)),
        _ => None,
    }));
    found.within("what Rust defines", &defined, HEADER, &header.defines);

    let words = rust::constants(rust::block(&sources.layout, "mod word")?);
    let words = words.into_iter().map(|(name, index)| (name, index * 8)).collect();
    found.within("mod word", &words, HEADER, &header.fields("ring", Some(8))?);
    let stack = rust::constants(rust::block(&sources.layout, "mod raw_stack")?);
    found.within("mod raw_stack", &stack, HEADER, &header.fields("raw_stack", None)?);
    let config = rust::fields(rust::block(&sources.layout, "struct Config")?);
    if header.declared("config")? != config {
        found
            .0
            .push(format!("{HEADER}: the fields of struct config are not those of {LAYOUT}, in their order and width"));
    }
    Ok(found.0)
}

/// The complaints.
#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    /// `left`, which is in the header, and `right` are the same.
    fn same(&mut self, what: &str, left: &Numbers, file: &str, right: &Numbers) {
        self.within(what, left, file, right);
        for name in right.keys().filter(|name| !left.contains_key(*name)) {
            self.0.push(format!("{HEADER}: {what} has no {name}, which {file} has"));
        }
    }

    /// Each of `left` is in `right`, with the same value.
    fn within(&mut self, what: &str, left: &Numbers, file: &str, right: &Numbers) {
        if left.is_empty() {
            self.0.push(format!("{what}: nothing was found that could be compared with {file}"));
        }
        for (name, value) in left {
            match right.get(name) {
                Some(other) if other == value => {}
                Some(other) => self.0.push(format!("{what}: {name} is {value}, and {other} in {file}")),
                None => self.0.push(format!("{what}: {name} is not in {file}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
        Sources { header: read(HEADER), records: read(RECORDS), layout: read(LAYOUT), event: read(EVENT) }
    }

    /// What is said after `old` has become `new` in one of the sources.
    fn after(of: fn(&mut Sources) -> &mut String, old: &str, new: &str) -> String {
        let mut sources = sources();
        let text = of(&mut sources);
        assert!(text.contains(old), "{old} is not there any more");
        *text = text.replace(old, new);
        complaints(&sources).unwrap().join("; ")
    }

    #[test]
    fn the_halves_agree() {
        assert_eq!(complaints(&sources()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_planted_difference_in_the_header_is_found() {
        let after = |old, new| after(|s| &mut s.header, old, new);
        assert!(after("K_BLOCKED = 6,", "K_BLOCKED = 16,").contains("BLOCKED is 16, and 6"));
        assert!(after("K_EXIT = 13,", "").contains("enum kind has no EXIT"));
        assert!(after("BIT_IO_WAIT = 40,", "BIT_IO_WAIT = 41,").contains("IO_WAIT is 41, and 40"));
        assert!(after("CTX_TIMER = 3", "CTX_TIMER = 4").contains("TIMER is 4, and 3"));
        assert!(after("#define CHUNK 1024", "#define CHUNK 2048").contains("CHUNK is 1024, and 2048"));
        assert!(after("#define RECORD 24", "#define RECORD 32").contains("RECORD is 24, and 32"));
        assert!(after("\tu64 spin_lock;", "\tu64 spin_lock; u64 more;").contains("SIDE_HEAD"));
        assert!(after("\tu32 filled;", "\tu64 filled;").contains("raw_stack: FILLED is 52, and 56"));
        assert!(after("\tu64 lost;", "\tu32 lost; u32 gap;").contains("mod word: LOST is not in"), "of another width");
        assert!(after("\tu64 min_wait;", "\tu32 min_wait;").contains("struct config"));
        assert!(after("\tu64 slot_mask;", "\tu64 first; u64 slot_mask;").contains("struct config"));
    }

    #[test]
    fn a_planted_difference_in_rust_is_found() {
        let layout = |old, new| after(|s| &mut s.layout, old, new);
        assert!(layout("LOST_STACKS: usize = 2", "LOST_STACKS: usize = 3").contains("LOST_STACKS is 24, and 16"));
        assert!(layout("BP: usize = 24", "BP: usize = 32").contains("BP is 32, and 24"));
        assert!(layout("SLOTS_AT: usize = 24576", "SLOTS_AT: usize = 24580").contains("SLOTS_AT"));
        assert!(layout("        side_mask: u64,\n", "").contains("struct config"));
        assert!(layout("    End = 2,", "    End = 3,").contains("END is 2, and 3"));
        let records = |old, new| after(|s| &mut s.records, old, new);
        assert!(records("SAMPLE: u8 = 7", "SAMPLE: u8 = 17").contains("SAMPLE is 7, and 17"));
        assert!(records("TIMED: u32 = 57", "TIMED: u32 = 58").contains("TIMED is 57, and 58"));
        assert!(records("SIZE: usize = 24", "SIZE: usize = 25").contains("RECORD is 25, and 24"));
        assert!(after(|s| &mut s.event, "SoftIrq = 2", "SoftIrq = 6").contains("SOFTIRQ is 2, and 6"));
    }
}
