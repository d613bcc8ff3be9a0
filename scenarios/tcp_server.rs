//! Six clients ask one server over loopback; one thread answers all of them, one after another.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn mix(mut x: u64, rounds: u64) -> u64 {
    for i in 0..rounds {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

#[inline(never)]
fn handle_request(request: u64, table: &mut [u64; 512]) -> u64 {
    for round in 0..6000 {
        for i in 1..512 {
            table[i] = table[i].rotate_left(9) ^ table[i - 1].wrapping_add(round ^ request);
        }
    }
    table[511]
}

/// Serves the connections in turn; ends when the first client has gone.
fn serve(listener: &TcpListener, clients: usize) {
    let mut table = [1_u64; 512];
    let mut connections: Vec<TcpStream> = (0..clients).map(|_| listener.accept().unwrap().0).collect();
    loop {
        for connection in &mut connections {
            let mut request = [0; 8];
            if connection.read_exact(&mut request).is_err() {
                return;
            }
            let reply = handle_request(u64::from_le_bytes(request), &mut table);
            if connection.write_all(&reply.to_le_bytes()).is_err() {
                return;
            }
        }
    }
}

fn ask(mut server: TcpStream, deadline: Instant) {
    let mut message = [7; 8];
    while Instant::now() < deadline {
        if server.write_all(&message).is_err() || server.read_exact(&mut message).is_err() {
            return;
        }
        message = mix(u64::from_le_bytes(message), 200_000).to_le_bytes();
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::Builder::new().name("tcp-server".to_owned());
    let mut threads = vec![server.spawn(move || serve(&listener, 6)).unwrap()];
    for id in 0..6 {
        let connection = TcpStream::connect(address).unwrap();
        let client = thread::Builder::new().name(format!("client-{id}"));
        threads.push(client.spawn(move || ask(connection, deadline)).unwrap());
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}
