//! Damaged spools, most of them with checksums made right again: an error, or a trace that can be walked; no panic.

#[path = "../../holdup-trace/tests/judge/mod.rs"]
mod judge;
mod spools;

use std::path::Path;

use holdup_testing::damage::{Random, mutate};
use holdup_trace::*;
use judge::{Count, Namer, judge, silence};
use spools::{mend_checksums, records, write_spool};

/// Unoptimized code takes milliseconds for each; `cargo test --release` runs them all.
const ROUNDS: u32 = if cfg!(debug_assertions) { 2_400 } else { 15_000 };

fn open_spool(path: &Path) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    holdup_spool::read(path, &mut builder)?;
    builder.finish(Some(&mut Namer))
}

#[test]
fn damaged_spools_are_refused_or_read() {
    silence();
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("small.spool");
    let stacks = spools::stacks();
    write_spool(&path, &records(), &stacks);
    let whole = std::fs::read(&path).expect("read");
    let mut random = Random::new(0xd1b5_4a32_d192_ed03);
    let mut count = Count::default();
    judge(0, &mut count, &whole, || open_spool(&path));
    assert_eq!(count.opened, 1, "the spool itself is sound");
    for round in 1..=ROUNDS {
        if round % 2 == 0 {
            // What the kernel wrote, damaged before it is packed.
            let (mut damaged, mut stacks) = (records(), stacks.clone());
            (0..1 + random.below(4)).for_each(|_| mutate(&mut damaged, &mut random, true));
            mutate(&mut stacks, &mut random, true);
            write_spool(&path, &damaged, &stacks);
            judge(round, &mut count, &[], || open_spool(&path));
            continue;
        }
        let mut bytes = whole.clone();
        (0..1 + random.below(3)).for_each(|_| mutate(&mut bytes, &mut random, round % 4 == 1));
        if round % 8 != 1 {
            mend_checksums(&mut bytes);
        }
        std::fs::write(&path, &bytes).expect("write");
        judge(round, &mut count, &bytes, || open_spool(&path));
    }
    eprintln!("{} opened, {} refused", count.opened, count.refused);
    assert!(count.opened > ROUNDS / 2, "the mutations reach the records");
}
