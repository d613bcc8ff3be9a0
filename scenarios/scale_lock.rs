//! For `holdup scale`: N threads parse a fixed number of records and merge each into one table under a mutex; merging
//! is three fifths of the work. Arguments: the threads, the records. Prints the records.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::thread;

/// About `rounds` nanoseconds of arithmetic.
fn mix(mut x: u64, rounds: u64) -> u64 {
    for i in 0..rounds {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

#[inline(never)]
fn parse_record(seed: u64) -> u64 {
    black_box(mix(seed, 200_000))
}

#[inline(never)]
fn merge_record(table: &mut [u64], record: u64) {
    table[(record & 0x3ff) as usize] ^= black_box(mix(record, 300_000));
}

fn work(left: &AtomicI64, table: &Mutex<Vec<u64>>, done: &AtomicU64) {
    let mut record = 1;
    while left.fetch_sub(1, Relaxed) > 0 {
        record = parse_record(record);
        merge_record(&mut table.lock().unwrap(), record);
        done.fetch_add(1, Relaxed);
    }
}

fn main() {
    let argument = |n, default| std::env::args().nth(n).and_then(|s| s.parse().ok()).unwrap_or(default);
    let (threads, records) = (argument(1, 2), argument(2, 2000));
    let (left, done) = (AtomicI64::new(records), AtomicU64::new(0));
    let table = Mutex::new(vec![0; 1024]);
    thread::scope(|scope| {
        for id in 0..threads {
            let name = thread::Builder::new().name(format!("worker-{id}"));
            name.spawn_scoped(scope, || work(&left, &table, &done)).unwrap();
        }
    });
    println!("records: {}", done.load(Relaxed));
}
