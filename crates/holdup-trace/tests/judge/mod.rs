//! Judges how damaged files are read: for tests of this crate and of what reads other files of holdup.

#![allow(dead_code, missing_docs)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use holdup_trace::*;

pub struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, kernel: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let module = if kernel { "[kernel]" } else { "/bin/x" }.to_owned();
        let location = |function: String| Location { function, module: module.clone(), line: 7, ..Location::default() };
        vec![location("inlined".into()), location(format!("f{}", address >> 4))]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], address: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((address & !15, vec![0x90; 16]))
    }

    fn lines(&mut self, _: &[Arc<Image>], start: u64, _: usize) -> Vec<SourceLine> {
        let line = |offset: u32| SourceLine { offset, line: start as u32 + offset, ..SourceLine::default() };
        vec![line(0), line(8)]
    }
}

/// Reads all there is, by the ids that are there.
pub fn walk(trace: &Trace) -> Result<()> {
    let losses = trace.losses()?;
    let mut sum = trace.row_counts().len() + losses.len();
    let see = |stack: StackId| {
        let frames = trace.stacks.frames(stack).take(1 << 20);
        frames.flat_map(|f| trace.names.locations(f)).map(|l| trace.text(l.function).len()).sum::<usize>()
    };
    macro_rules! tables {
        ($($table:ident: |$row:ident| $use:expr;)+) => {
            $(for $row in trace.$table.iter() {
                let $row = $row?;
                sum = sum.wrapping_add($use);
            })+
        };
    }
    let thread = |t: ThreadIdx| trace.thread(t).map_or(0, |t| trace.text(t.name).len());
    tables! {
        switches: |r| see(r.stack) + thread(r.prev) + thread(r.next);
        wakes: |r| see(r.stack) + thread(r.waker);
        waits: |r| see(r.stack) + see(r.waker_stack) + thread(r.thread);
        samples: |r| see(r.stack);
        futexes: |r| thread(r.owner);
        kernel_locks: |r| thread(r.owner);
        block_ios: |r| thread(r.thread);
        thread_names: |r| trace.text(r.name).len();
        images: |r| trace.text(r.path).len() + decode_build_id(trace.text(r.build_id)).map_or(0, |b| b.len());
        losses: |r| r.count as usize;
    }
    for row in trace.locks.rows() {
        sum = sum.wrapping_add(trace.text(row.name).len() + row.kind.name().len());
    }
    for i in 0..=trace.stacks.frame_count() {
        let frame = trace.stacks.frame(FrameId(i as u32));
        sum = sum.wrapping_add(frame.map_or(0, |f| f.space.index()));
    }
    if let Some(code) = trace.names.code(|_| true) {
        sum = sum.wrapping_add(trace.names.lines(&code).map(|l| trace.text(l.file).len()).sum::<usize>());
    }
    std::hint::black_box(sum);
    Ok(())
}

#[derive(Default)]
pub struct Count {
    pub opened: u32,
    pub refused: u32,
}

/// Runs `open` on a damaged file; fails the test on a panic, an empty or a wrong error.
pub fn judge(round: u32, count: &mut Count, bytes: &[u8], open: impl FnOnce() -> Result<Trace>) {
    let result = catch_unwind(AssertUnwindSafe(|| open().and_then(|trace| walk(&trace))));
    match result {
        Ok(Ok(())) => count.opened += 1,
        Ok(Err(Error::Input(text))) => {
            assert!(!text.is_empty() && !text.contains('\n') || text.len() > 40, "{text}");
            count.refused += 1;
        }
        Ok(Err(other)) => panic!("round {round}: {other:?}"),
        Err(payload) => {
            let what = payload.downcast_ref::<String>().cloned();
            let what = what.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default();
            let kept = std::env::temp_dir().join(format!("holdup-mutation-{round}"));
            let _ = std::fs::write(&kept, bytes);
            eprintln!("round {round} panicked: {what}; the file is {}", kept.display());
            panic!("round {round}: {what}");
        }
    }
}

/// The panics that are caught are not shown; those of failed assertions are.
pub fn silence() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.location().is_some_and(|l| l.file().contains("tests/")) {
                usual(info);
            }
        }));
    });
}
