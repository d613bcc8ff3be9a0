//! ETW logs that are written here: what the real ones lack, and what none should have.

mod common;

use common::{import_bytes, native};
use holdup_testing::damage::{Random, mutate};
use holdup_testing::etl::{Header, IMAGE_ID, KERNEL, Log, MS, Packing, reason, state};
use holdup_trace::{PdbId, SpaceId, StackId, SwitchState, Syscall, ThreadIdx, Trace, WakeContext};

const WAITS: (u8, u8) = (state::WAITING, reason::USER_REQUEST);

fn addresses(trace: &Trace, stack: StackId) -> Vec<u64> {
    trace.stacks.frames(stack).map(|frame| trace.stacks.frame(frame).expect("a frame").address).collect()
}

#[test]
fn stacks_of_waits_and_wakers() {
    for packing in [Packing::Plain, Packing::Lz77, Packing::Huffman] {
        for by_keys in [false, true] {
            let trace = import_bytes(Log::example(packing, by_keys).finish()).expect("it can be read");
            let wake = trace.wakes.iter().next().expect("a wake-up").expect("a row");
            let tid = |thread: ThreadIdx| trace.threads.tid[thread.index()];
            assert_eq!((tid(wake.waker), tid(wake.wakee), wake.context), (108, 104, WakeContext::Task));
            // Callers are return addresses: the instruction before them was called.
            assert_eq!(addresses(&trace, wake.stack), [KERNEL + 1, KERNEL + 1], "{packing:?} {by_keys}");
            let wait = trace.waits.iter().next().expect("a wait").expect("a row");
            assert_eq!((tid(wait.thread), tid(wait.waker)), (104, 108));
            assert_eq!(addresses(&trace, wait.stack), [KERNEL + 3, 0x40_0200, 0x40_02ff], "{packing:?} {by_keys}");
            assert_eq!((wait.start.nanos(), wait.woken.nanos(), wait.t.nanos()), (1_000_000, 3_000_000, 4_000_000));
        }
    }
}

#[test]
fn names_and_images() {
    let trace = import_bytes(Log::example(Packing::Plain, false).finish()).expect("it can be read");
    let threads = &trace.threads;
    let thread = |tid| threads.tid.iter().position(|&t| t == tid).expect("it is there");
    let names = [104, 108].map(|tid| (trace.text(threads.name[thread(tid)]), trace.text(threads.process[thread(tid)])));
    assert_eq!(names, [("named later", "app.exe"), ("pool worker", "app.exe")]);
    let images: Vec<_> = trace.images.iter().map(|image| image.expect("a row")).collect();
    let app = images.iter().find(|image| image.start == 0x40_0000).expect("it is mapped");
    let id = holdup_trace::decode_build_id(trace.text(app.build_id)).expect("digits");
    let pdb = PdbId::from_build_id(&id).expect("a PDB's");
    assert_eq!((pdb.key().as_str(), pdb.name.as_str()), ("38844BB920174967BE7AA4A2C20430FA2", "app.pdb"));
    let kernel = images.iter().find(|image| image.start == KERNEL).expect("it is mapped");
    assert_eq!((kernel.space, trace.text(kernel.path)), (SpaceId::KERNEL, "\\SystemRoot\\system32\\ntoskrnl.exe"));
    assert_eq!(native(&trace, "ImageId/DbgID_RSDS"), 1);
}

#[test]
fn thirty_two_bits() {
    let mut log = Log::new(1);
    log.wide = false;
    log.process(0, 3, 100, "app.exe");
    log.thread(0, 3, (100, 104), "", 4);
    log.image(0, 3, 100, (0x40_0000, 0x1000), "app.exe");
    log.image(0, 3, 0, (0x8200_0000, 0x1000), "ntoskrnl.exe");
    log.switch(0, MS, 0, (state::READY, 0), 104);
    log.sample(0, 2 * MS, 104, 0x40_0010);
    log.stack(0, (2 * MS, 2 * MS + 1), (100, 104), &[0x8200_0010, 0x40_0020]);
    let trace = import_bytes(log.finish()).expect("it can be read");
    let sample = trace.samples.iter().next().expect("a sample").expect("a row");
    assert_eq!((sample.ip, addresses(&trace, sample.stack)), (0x40_0010, vec![0x8200_0010, 0x40_0020]));
    assert_eq!(trace.meta.host.os, "Windows 10.0.19045");
}

#[test]
fn states_and_reasons() {
    let mut log = Log::new(1);
    let left = [
        (WAITS, SwitchState::Sleeping, Some("UserRequest")),
        ((state::WAITING, reason::PAGE_IN), SwitchState::Uninterruptible, Some("WrPageIn")),
        ((state::READY, reason::PREEMPTED), SwitchState::Runnable, None),
        ((state::TERMINATED, 0), SwitchState::Dead, None),
    ];
    for (at, (why, ..)) in (0..).zip(&left) {
        log.switch(0, at * MS, 104, *why, 0);
        log.switch(0, at * MS + 10, 0, (state::READY, 0), 104);
    }
    let trace = import_bytes(log.finish()).expect("it can be read");
    let rows: Vec<_> = trace.switches.iter().map(|row| row.expect("a row")).collect();
    let found: Vec<_> = rows.iter().step_by(2).map(|row| (row.state, Syscall::wait_reason(row.syscall))).collect();
    assert_eq!(found, left.map(|(_, state, reason)| (state, reason)));
    assert!(rows[2].io_wait && !rows[0].io_wait);
}

#[test]
fn who_wakes_from_interrupts() {
    let mut log = Log::new(1);
    let ndis = KERNEL + 0x20_0000;
    log.image(0, 3, 0, (ndis, 0x1000), "\\SystemRoot\\System32\\drivers\\ndis.sys");
    log.switch(0, 0, 0, (state::READY, 0), 108);
    for (at, kind) in [(1, 0x45), (2, 0x44), (3, 0x43)] {
        log.ready(0, at * MS, 104, true);
        log.interrupt(0, (at * MS - 5, at * MS + 5), kind, ndis + 8);
    }
    log.ready(0, 4 * MS, 104, true);
    log.ready(0, 5 * MS, 104, false);
    let trace = import_bytes(log.finish()).expect("it can be read");
    let found: Vec<_> =
        trace.wakes.iter().map(|row| row.expect("a row")).map(|row| (row.context, row.source)).collect();
    let wanted = [
        (WakeContext::Timer, 0),
        (WakeContext::SoftIrq, 3),
        (WakeContext::HardIrq, 0x91),
        // From the level of DPCs and none of them: a time-out.
        (WakeContext::Timer, 0),
        (WakeContext::Task, 0),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn threads_and_processes_that_use_a_number_again() {
    let mut log = Log::example(Packing::Plain, false);
    log.thread(6 * MS, 2, (100, 104), "", 104);
    log.process(7 * MS, 1, 100, "other.exe");
    log.thread(7 * MS, 1, (100, 104), "", 108);
    log.switch(0, 8 * MS, 0, (state::READY, 0), 104);
    let trace = import_bytes(log.finish()).expect("it can be read");
    let threads = &trace.threads;
    let of_104: Vec<_> = (0..threads.tid.len()).filter(|&i| threads.tid[i] == 104).collect();
    let processes: Vec<_> = of_104.iter().map(|&i| trace.text(threads.process[i])).collect();
    assert_eq!(processes, ["app.exe", "other.exe"]);
    assert!(threads.end[of_104[0]] < threads.start[of_104[1]]);
}

#[test]
fn who_was_there_before_a_rings_end_is_told_at_the_end() {
    let mut log = Log::new(1);
    log.switch(0, MS, 0, (state::READY, 0), 104);
    log.sample(0, 2 * MS, 104, 0x40_0010);
    log.process(9 * MS, 4, 100, "app.exe");
    log.thread(9 * MS, 4, (100, 104), "", 4);
    log.image(9 * MS, 4, 100, (0x40_0000, 0x1000), "app.exe");
    let trace = import_bytes(log.finish()).expect("it can be read");
    let sample = trace.samples.iter().next().expect("a sample").expect("a row");
    assert_eq!(trace.text(trace.threads.process[sample.thread.index()]), "app.exe");
    assert_eq!(trace.images.iter().next().expect("an image").expect("a row").t.nanos(), 0);
}

#[test]
fn disks_have_a_beginning_and_an_end() {
    let mut log = Log::example(Packing::Plain, false);
    log.disk_read(0, 8 * MS, 3 * MS, (1 << 20, 4096), 104);
    let trace = import_bytes(log.finish()).expect("it can be read");
    let rows: Vec<_> = trace.block_ios.iter().map(|row| row.expect("a row")).collect();
    let found: Vec<_> = rows.iter().map(|row| (row.t.nanos(), row.issue, row.sector, row.bytes)).collect();
    assert_eq!(found, [(5_000_000, true, 2048, 4096), (8_000_000, false, 2048, 4096)]);
}

#[test]
fn headers_that_are_not_read_are_counted() {
    let mut log = Log::example(Packing::Plain, false);
    log.add(0, MS, Header::Event { guid: IMAGE_ID, id: 7 }, (0, 1), b"12345");
    log.add(0, MS, Header::Compact { tid: 104 }, (0x0f99, 2), &[0; 3]);
    for kind in [0x0b, 0x0d, 0x0f, 0x15] {
        log.add_raw(0, 2 * MS, &[24, 0, kind, 0x90, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
    let trace = import_bytes(log.finish()).expect("it can be read");
    let names = [
        "b3e675d7-2554-4f18-830b-2762732560de/7",
        "0x0F99",
        "header 0x0b",
        "header 0x0d",
        "header 0x0f",
        "header 0x15",
    ];
    assert_eq!(names.map(|name| native(&trace, name)), [1; 6], "{:?}", trace.meta.native_events);
    assert_eq!((trace.switches.rows(), trace.losses.rows()), (3, 0), "{:?}", trace.meta.notes);
}

fn notes(trace: &Trace) -> String {
    trace.meta.notes.iter().map(|note| format!("{note}\n")).collect()
}

#[test]
fn what_is_damaged_is_skipped_and_told() {
    let mut log = Log::example(Packing::Plain, false);
    log.add_raw(1, 3 * MS - 1, &[7; 64]);
    let trace = import_bytes(log.finish()).expect("it can be read");
    assert!(notes(&trace).contains("what stands there is no record"), "{}", notes(&trace));
    assert_eq!((trace.wakes.rows(), trace.switches.rows()), (0, 3), "the other CPU is whole");
    let loss = trace.losses.iter().next().expect("a loss").expect("a row");
    assert_eq!((loss.cpu.0, loss.from.nanos()), (1, 1_000_000));
}

#[test]
fn packed_buffers_cannot_grow_beyond_what_they_say() {
    let mut log = Log::example(Packing::Lz77, false);
    log.buffer_size = 512;
    let sound = log.clone().finish();
    // The last buffer says that it has 16 MB, of which there is nothing.
    let last = last_buffer(&sound);
    for used in [16_u32 << 20, (16 << 20) + 1, u32::MAX] {
        let mut bytes = sound.clone();
        bytes[last + 0x30..last + 0x34].copy_from_slice(&used.to_le_bytes());
        let trace = import_bytes(bytes).expect("the rest can be read");
        assert!(notes(&trace).contains("were skipped"), "{}", notes(&trace));
        assert!(trace.switches.rows() + trace.samples.rows() > 0);
    }
}

fn last_buffer(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let size = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        if at + size >= bytes.len() {
            return at;
        }
        at += size;
    }
}

#[test]
fn lost_events_are_told() {
    let mut log = Log::example(Packing::Plain, false);
    log.lost_events = 7;
    let trace = import_bytes(log.finish()).expect("it can be read");
    assert!(notes(&trace).contains("Windows lost 7 events"), "{}", notes(&trace));
    assert_eq!(trace.losses.iter().next().expect("a loss").expect("a row").count, 7);
}

#[test]
fn without_wakers_it_says_how_to_record_them() {
    let mut log = Log::new(1);
    log.switch(0, MS, 0, (state::READY, 0), 104);
    let trace = import_bytes(log.finish()).expect("it can be read");
    assert!(notes(&trace).contains("-stackwalk Profile+CSwitch+ReadyThread"), "{}", notes(&trace));
}

#[test]
fn cut_anywhere_it_is_read_up_to_there() {
    let whole = Log::example(Packing::Lz77, true).finish();
    for len in (0..whole.len()).step_by(7) {
        match import_bytes(whole[..len].to_vec()) {
            Ok(_) => {}
            Err(e) => assert!(e.to_string().len() > 20, "{e}"),
        }
    }
}

#[test]
fn mutations() {
    for (seed, packing) in [(1, Packing::Plain), (2, Packing::Lz77), (3, Packing::Huffman)] {
        let mut log = Log::example(packing, seed == 2);
        log.buffer_size = 700;
        log.disk_read(0, 8 * MS, 3 * MS, (1 << 20, 4096), 104);
        log.interrupt(1, (2 * MS, 3 * MS + 5), 0x45, KERNEL);
        let original = log.finish();
        let mut random = Random::new(seed);
        let mut readable = 0;
        for _ in 0..800 {
            let mut bytes = original.clone();
            for _ in 0..=random.below(4) {
                mutate(&mut bytes, &mut random, true);
            }
            match import_bytes(bytes) {
                Ok(_) => readable += 1,
                Err(e) => assert!(e.to_string().len() > 20, "{e}"),
            }
        }
        assert!(readable > 80, "{packing:?}: only {readable}");
    }
}
