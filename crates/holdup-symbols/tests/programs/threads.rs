// Threads of the Rust standard library that wait.
use std::sync::{Arc, Condvar, Mutex, mpsc};

#[inline(never)]
fn wait_for_lock(m: &Mutex<u32>) -> u32 {
    std::hint::black_box(*m.lock().unwrap())
}

#[inline(never)]
fn wait_for_signal(m: &Mutex<bool>, c: &Condvar) -> bool {
    let mut done = m.lock().unwrap();
    while !*done {
        done = c.wait(done).unwrap();
    }
    std::hint::black_box(*done)
}

struct Receiver<T>(mpsc::Receiver<T>);

impl<T> Receiver<T> {
    #[inline(never)]
    fn next_item(&self) -> Option<T> {
        std::hint::black_box(self.0.recv().ok())
    }
}

fn named<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::Builder::new().name(name.into()).spawn(f).unwrap()
}

fn main() {
    let held = Arc::new(Mutex::new(1));
    let guard = held.lock().unwrap();
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let (sender, receiver) = mpsc::channel::<u64>();
    let receiver = Receiver(receiver);
    let other = held.clone();
    let lock = named("lock", move || wait_for_lock(&other));
    let _cond = named("cond", move || wait_for_signal(&pair.0, &pair.1));
    let _recv = named("recv", move || receiver.next_item());
    println!("ready");
    lock.join().unwrap();
    drop((guard, sender));
}
