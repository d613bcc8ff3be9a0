//! Prints the user stacks of the blocked threads of a process: `stacks PID`.
#[path = "../tests/common/mod.rs"]
mod common;

use holdup_symbols::{Kernel, StackUnwinder, Symbols};

fn main() {
    let pid: u32 = std::env::args().nth(1).expect("a process id").parse().expect("a number");
    let (mut unwinder, mut symbols) = (StackUnwinder::new(), Symbols::new(Kernel::Live));
    let images = common::images(pid);
    for thread in common::threads(pid).into_iter().filter(|t| t.blocked.is_some()) {
        let raw = common::stack(pid, &thread, 64 << 10);
        let (names, complete) = common::names(&mut unwinder, &mut symbols, &images, &raw);
        println!("{} {} complete={complete}\n  {}", thread.tid, thread.name, names.join("\n  "));
    }
    println!("{:?}", symbols.notes());
}
