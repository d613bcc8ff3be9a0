//! What must not be in a trace, and who may read it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use holdup_trace::{
    BlockedEvent, ChainId, Cpu, Destination, Image, KernelLockEvent, Location, LockId, LockKey, LockKind, MapEvent,
    NameEvent, Note, RawStack, SampleEvent, SpaceId, Symbolizer, Trace, TraceBuilder, Unwinder, file,
};

const KERNEL_CODE: u64 = 0xffff_ffff_9a20_1000;
const MODULE_CODE: u64 = 0xffff_ffff_c0f3_2040;
const UNNAMED_CODE: u64 = 0xffff_ffff_a000_1110;
const KERNEL_DATA: u64 = 0xffff_8881_0bad_c0d0;
const FUTEX: u64 = 0x7f00_dead_beef;
const USER_CODE: u64 = 0x40_1000;
/// On a stack: eight letters, and five with zeros behind them, which could pass for an address.
const SECRETS: [u64; 2] = [u64::from_le_bytes(*b"hunter22"), u64::from_le_bytes(*b"swordfi\0") & 0xff_ffff_ffff];

/// Names kernel code but `UNNAMED_CODE`, and gives its bytes.
struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, kernel: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let at = |function: &str, offset| {
            vec![Location { function: function.into(), module: "[kernel]".into(), offset, ..Location::default() }]
        };
        match address & !0xff {
            _ if !kernel => at("main", 0),
            a if a == KERNEL_CODE & !0xff => at("schedule", address - (KERNEL_CODE - 0x30)),
            a if a == MODULE_CODE & !0xff => at("ext4_write", address - (MODULE_CODE - 0x10)),
            _ => Vec::new(),
        }
    }

    fn code(&mut self, kernel: bool, _: &[Arc<Image>], address: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        let mut bytes = vec![0x48, 0xb8];
        bytes.extend(if kernel { KERNEL_DATA } else { 0 }.to_le_bytes());
        Some((address, bytes))
    }
}

fn trace(hidden: bool) -> Trace {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
    if hidden {
        builder.hide_kernel_addresses();
    }
    let image = builder.image(Image { start: KERNEL_CODE, end: KERNEL_CODE + 1, ..Image::default() });
    builder.push(1, MapEvent { pid: 0, image });
    for (t, kernel) in [(10, &[KERNEL_CODE, UNNAMED_CODE][..]), (20, &[KERNEL_CODE + 4]), (30, &[MODULE_CODE])] {
        let chain = builder.chain(7, kernel, &[USER_CODE]);
        builder.push(t, SampleEvent { cpu: Cpu(0), tid: 7, ip: kernel[0], bp: 0, chain });
    }
    builder.push(40, SampleEvent { cpu: Cpu(0), tid: 7, ip: UNNAMED_CODE, bp: 0, chain: ChainId::NONE });
    builder.push(41, SampleEvent { cpu: Cpu(0), tid: 7, ip: USER_CODE, bp: 0, chain: ChainId::NONE });
    for (t, kind, address) in [
        (50, LockKind::KernelMutex, KERNEL_DATA),
        (51, LockKind::KernelMutex, KERNEL_DATA | 1),
        (52, LockKind::Futex, FUTEX),
    ] {
        let lock = builder.lock(LockKey { kind, pid: 0, address });
        builder.push(t, KernelLockEvent { cpu: Cpu(0), tid: 7, lock, begin: true, owner: 0 });
    }
    let mut trace = builder.finish(Some(&mut Names)).expect("trace");
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup");
    file::write(&trace, &path).expect("write");
    trace = file::read(&path).expect("read");
    trace
}

/// Every address in the trace, and the words that its texts spell in hexadecimal.
fn addresses(trace: &Trace) -> Vec<u64> {
    let mut found: Vec<u64> = trace.locks.address.clone();
    found.extend(trace.samples.load().expect("samples").ip);
    found.extend(trace.images.load().expect("images").start);
    found.extend((0..).map_while(|i| trace.stacks.frame(holdup_trace::FrameId(i))).map(|f| f.address));
    for text in trace.strings.iter() {
        let bytes: Vec<u8> =
            (0..text.len() / 2).filter_map(|i| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()).collect();
        found.extend(bytes.windows(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight"))));
    }
    found
}

#[test]
fn hidden_kernel_addresses_are_nowhere_and_names_stay() {
    let is_kernel = |a: &u64| *a >> 47 == 0x1ffff;
    assert!(addresses(&trace(false)).iter().filter(|a| is_kernel(a)).count() >= 10, "without hiding they are there");
    let trace = trace(true);
    let all = addresses(&trace);
    assert!(!all.iter().any(is_kernel), "{all:x?}");
    assert!(trace.meta.kernel_addresses_hidden);
    let samples = trace.samples.load().expect("samples");
    let mut starts = Vec::new();
    for i in 0..3 {
        let frame = trace.stacks.frames(samples.stack[i]).next().expect("a leaf");
        let leaf = trace.stacks.frame(frame).expect("frame");
        assert_eq!((leaf.space, leaf.address), (SpaceId::KERNEL, samples.ip[i]), "a sample's address is its leaf's");
        let location = trace.names.locations(frame).last().expect("a name");
        starts.push((trace.text(location.function).to_owned(), leaf.address - location.offset));
    }
    assert_eq!(starts[0], starts[1], "one function begins at one place");
    assert_eq!((starts[0].0.as_str(), starts[2].0.as_str()), ("schedule", "ext4_write"));
    assert_ne!(starts[0].1, starts[2].1);
    assert_eq!(samples.ip[4], USER_CODE);
    assert_eq!(trace.locks.address[2], trace.locks.address[1] | 1, "flags in the low bits stay");
    assert_eq!(trace.locks.address[3], FUTEX);
}

/// Believes whatever lies on the stack.
struct Naive;

impl Unwinder for Naive {
    fn unwind(&mut self, _: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
        let words = raw.bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w));
        ([raw.ip].into_iter().chain(words).collect(), true)
    }

    fn notes(&self) -> Vec<Note> {
        vec!["half of it was left out".into()]
    }
}

#[test]
fn words_of_a_stack_are_no_frames() {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
    builder.set_unwinder(Box::new(Naive));
    let image =
        builder.image(Image { start: USER_CODE, end: USER_CODE + 0x1000, path: "/x".into(), ..Image::default() });
    builder.push(1, MapEvent { pid: 7, image });
    let words = [USER_CODE + 8, SECRETS[0], USER_CODE + 16, SECRETS[1]];
    for (hash, words) in [(5, &words[..]), (6, &[SECRETS[1]]), (7, &words[..1])] {
        let bytes = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        builder.define_raw_stack(hash, RawStack { pid: 7, ip: USER_CODE, bytes, ..RawStack::default() });
        let chain = builder.raw_chain(hash);
        builder.push(10 + hash, BlockedEvent { tid: 7, chain, lock: LockId::NONE });
    }
    builder.push(2, NameEvent { pid: 7, tid: 7, name: Default::default() });
    let trace = builder.finish(None).expect("trace");
    assert_eq!(trace.meta.notes, [Note::from("half of it was left out")]);
    let frames: Vec<u64> =
        (0..).map_while(|i| trace.stacks.frame(holdup_trace::FrameId(i))).map(|f| f.address).collect();
    assert!(frames.contains(&(USER_CODE + 7)), "{frames:x?}");
    assert!(frames.iter().all(|f| !SECRETS.contains(f) && !SECRETS.contains(&(f + 1))), "{frames:x?}");
    assert_eq!(trace.meta.user_stacks, (3, 1), "those are cut, and said to be");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777
}

#[test]
fn traces_are_for_their_owner_alone() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("a.holdup");
    std::fs::write(&file, "older").expect("write");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("mode");
    file::write(&trace(false), &file).expect("write");
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_result_is_checked_before_and_kept_if_nothing_new_comes() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup");
    std::fs::write(&path, "older").expect("write");
    drop(file::create(&path).expect("prepared"));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "older");
    for (path, why) in [
        (dir.path().to_owned(), "it is a folder"),
        (dir.path().join("none/a.holdup"), "no folder"),
        ("/dev/null".into(), "is no file"),
        ("/dev/stdout".into(), "is no file"),
    ] {
        let error = file::create(&path).expect_err("unusable").to_string();
        assert!(error.contains(why) && error.contains(&path.display().to_string()), "{error}");
    }
}
