//! A dozen "compilers" write through one lock, and for 0.7 s a background thread does not let go of it.
//!
//! It is the first true story in small: cores stand still because the owner of one lock scans a bitmap.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const COMPILERS: usize = 12;
/// When the scan begins, and how long it lasts.
const SCAN_AT: Duration = Duration::from_millis(600);
const SCAN_FOR: Duration = Duration::from_millis(700);
const END: Duration = Duration::from_millis(2000);

/// What the lock protects.
struct Volume {
    bitmap: Vec<u64>,
    written: Vec<u64>,
}

/// Runs the program, for two seconds.
pub fn run() {
    let volume = Mutex::new(Volume { bitmap: vec![u64::MAX; 1 << 15], written: Vec::new() });
    let done = AtomicBool::new(false);
    let start = Instant::now();
    thread::scope(|scope| {
        for i in 0..COMPILERS {
            let spawned = thread::Builder::new().name(format!("compiler-{i:02}"));
            spawned.spawn_scoped(scope, || compile_all(&volume, &done)).expect("a thread can be started");
        }
        let scanner = thread::Builder::new().name("bitmap-scan".into());
        scanner.spawn_scoped(scope, || reserve_space(&volume, start)).expect("a thread can be started");
        thread::sleep(END);
        done.store(true, Ordering::Relaxed);
    });
    let volume = volume.into_inner().expect("no thread panicked");
    black_box(volume.written);
}

fn compile_all(volume: &Mutex<Volume>, done: &AtomicBool) {
    let mut unit = 0u64;
    while !done.load(Ordering::Relaxed) {
        let object = compile(unit);
        write_object(volume, object);
        unit += 1;
        // Read the next source file.
        thread::sleep(Duration::from_millis(2));
    }
}

/// About a millisecond of work.
#[inline(never)]
fn compile(unit: u64) -> u64 {
    (0..400_000).fold(unit, |hash, i| black_box(hash.rotate_left(5) ^ i))
}

#[inline(never)]
fn write_object(volume: &Mutex<Volume>, object: u64) {
    volume.lock().expect("no thread panicked").written.push(object);
}

/// Looks for free blocks while it holds the lock, far too long.
#[inline(never)]
fn reserve_space(volume: &Mutex<Volume>, start: Instant) {
    thread::sleep(SCAN_AT);
    let volume = volume.lock().expect("no thread panicked");
    let until = start + SCAN_AT + SCAN_FOR;
    while Instant::now() < until {
        black_box(find_free_block(&volume.bitmap));
    }
}

/// The loop: one word at a time until a bit is clear.
#[inline(never)]
fn find_free_block(bitmap: &[u64]) -> Option<usize> {
    let mut at = 0;
    while at < bitmap.len() {
        if black_box(bitmap[at]) != u64::MAX {
            return Some(at);
        }
        at += 1;
    }
    None
}
