//! Four workers get their work through channels from one router, which is slower than all of them.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

fn mix(mut x: u64, rounds: u64) -> u64 {
    for i in 0..rounds {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

#[inline(never)]
fn route_message(seed: u64, table: &mut [u64; 512]) -> u64 {
    for round in 0..4000 {
        for i in 1..512 {
            table[i] = table[i].rotate_left(9) ^ table[i - 1].wrapping_add(round ^ seed);
        }
    }
    table[511]
}

#[inline(never)]
fn handle_message(message: u64) -> u64 {
    mix(message, 100_000)
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let mut senders = Vec::new();
    let mut threads = Vec::new();
    for id in 0..4 {
        let (sender, messages) = channel::<u64>();
        senders.push(sender);
        let handle = move || {
            for message in messages {
                std::hint::black_box(handle_message(message));
            }
        };
        threads.push(thread::Builder::new().name(format!("handler-{id}")).spawn(handle).unwrap());
    }
    let route = move || {
        let (mut table, mut next) = ([1_u64; 512], 0);
        while Instant::now() < deadline {
            next = route_message(next, &mut table);
            senders[(next % 4) as usize].send(next).unwrap();
        }
    };
    threads.push(thread::Builder::new().name("router".to_owned()).spawn(route).unwrap());
    threads.into_iter().for_each(|t| t.join().unwrap());
}
