//! tokio and rayon, used as they should not be. `blocking`: a request calls a slow function on one of two worker threads,
//! and other tasks wait; `rayon`: most of the work lies in one piece, `rayon-even`: in none. Prints what the others waited.
use std::time::{Duration, Instant};

fn hash(rounds: u64) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    for i in 0..std::hint::black_box(rounds) {
        h = (h ^ i).wrapping_mul(0x0100_0000_01b3).rotate_left(7);
    }
    h
}

#[inline(never)]
fn render_report() -> u64 {
    hash(60_000_000)
}

#[inline(never)]
fn read_legacy() {
    std::thread::sleep(Duration::from_millis(80));
}

async fn ticks(end: Instant) -> Duration {
    let mut late = Duration::ZERO;
    while Instant::now() < end {
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(5)).await;
        late += begun.elapsed().saturating_sub(Duration::from_millis(6));
    }
    late
}

async fn report(end: Instant, kind: String) {
    while Instant::now() < end {
        if kind == "sleeping" { read_legacy() } else { std::hint::black_box(render_report()); }
        tokio::task::yield_now().await;
    }
}

fn asynchronous(kind: &str) {
    let threads = if kind == "blocking" { 1 } else { 2 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    let end = Instant::now() + Duration::from_secs(4);
    let late = runtime.block_on(async {
        let reports: Vec<_> = (0..threads).map(|_| tokio::spawn(report(end, kind.to_owned()))).collect();
        let tasks: Vec<_> = (0..8).map(|_| tokio::spawn(ticks(end))).collect();
        let mut late = Duration::ZERO;
        for task in tasks { late += task.await.unwrap(); }
        for task in reports { task.await.unwrap(); }
        late
    });
    println!("8 tasks were late by {:.2} s in all", late.as_secs_f64());
}

#[inline(never)]
fn fold_piece(piece: u64, even: bool) -> u64 {
    let (long, short) = (150_000_000, 3_000_000);
    hash(if even { (long + 7 * short) / 8 } else if piece == 0 { long } else { short })
}

fn rayon_pieces(even: bool) {
    use rayon::prelude::*;
    let begun = Instant::now();
    let mut alone = Duration::ZERO;
    for _ in 0..12 {
        let all: Vec<(usize, Duration)> = (0..8u64)
            .into_par_iter()
            .map(|piece| {
                let begun = Instant::now();
                std::hint::black_box(fold_piece(piece, even));
                (rayon::current_thread_index().unwrap(), begun.elapsed())
            })
            .collect();
        let longest = all.iter().map(|p| p.1).max().unwrap();
        alone += longest.saturating_sub(all.iter().map(|p| p.1).sum::<Duration>() - longest);
    }
    println!("one piece alone for {:.2} of {:.2} s", alone.as_secs_f64(), begun.elapsed().as_secs_f64());
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("rayon") => rayon_pieces(false),
        Some("rayon-even") => rayon_pieces(true),
        kind => asynchronous(kind.unwrap_or("blocking")),
    }
}
