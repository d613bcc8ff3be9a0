//! For `holdup scale`: N threads hash a fixed number of blocks and share nothing on the way. Arguments: the threads, the
//! blocks. Prints the blocks.

use std::hint::black_box;
use std::thread;

#[inline(never)]
fn hash_block(seed: u64) -> u64 {
    let mut x = seed | 1;
    for i in 0..200_000 {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

fn main() {
    let argument = |n, default| std::env::args().nth(n).and_then(|s| s.parse().ok()).unwrap_or(default);
    let (threads, blocks): (u64, u64) = (argument(1, 2), argument(2, 6000));
    let hashed: u64 = thread::scope(|scope| {
        let spawn = |id| {
            let mine = blocks / threads + u64::from(id < blocks % threads);
            let hash = move || (0..mine).fold(0, |n, i| n + u64::from(black_box(hash_block(i)) != 0));
            thread::Builder::new().name(format!("hasher-{id}")).spawn_scoped(scope, hash).unwrap()
        };
        let all: Vec<_> = (0..threads).map(spawn).collect();
        all.into_iter().map(|t| t.join().unwrap()).sum()
    });
    println!("blocks: {hashed}");
}
