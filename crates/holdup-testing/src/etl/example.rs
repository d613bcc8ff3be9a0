//! A log with one of everything that matters.

use super::{Log, MS, Packing, reason, state};

/// Where the kernel of the example lies.
pub const KERNEL: u64 = 0xffff_f800_0010_0000;
const GUID: [u8; 16] = [0xb9, 0x4b, 0x84, 0x38, 0x17, 0x20, 0x67, 0x49, 0xbe, 0x7a, 0xa4, 0xa2, 0xc2, 0x04, 0x30, 0xfa];

impl Log {
    /// A thread waits for another one, with stacks at the switch and the wake-up, told in full or by keys.
    pub fn example(packing: Packing, by_keys: bool) -> Log {
        let waits = (state::WAITING, reason::USER_REQUEST);
        let mut log = Log::new(2);
        log.packing = packing;
        log.process(0, 3, 100, "app.exe");
        log.thread(0, 3, (100, 104), "", 4);
        log.thread(0, 3, (100, 108), "pool worker", 4);
        log.image(0, 3, 100, (0x40_0000, 0x1000), "\\Device\\HarddiskVolume2\\app\\app.exe");
        log.image(0, 3, 0, (KERNEL, 0x10_0000), "\\SystemRoot\\system32\\ntoskrnl.exe");
        log.pdb(9 * MS, 100, 0x40_0000, GUID, 2, "c:\\build\\app.pdb");
        log.switch(0, MS, 104, waits, 0);
        log.switch(1, MS, 0, (state::READY, 0), 108);
        log.ready(1, 3 * MS, 104, false);
        log.switch(0, 4 * MS, 0, (state::READY, 0), 104);
        log.sample(1, 4 * MS, 108, 0x40_0123);
        let (waker, waiter) = ([KERNEL + 1, KERNEL + 2], [KERNEL + 3, 0x40_0200, 0x40_0300]);
        if by_keys {
            log.stack_key(1, (3 * MS, 3 * MS + 2), (100, 108), true, 0xabc0);
            log.stack_key(0, (4 * MS, 4 * MS + 2), (100, 104), true, 0xabc8);
            log.stack_key(0, (4 * MS, 5 * MS), (100, 104), false, 0xabc0);
            // The key is used again: what it meant is told when it is forgotten.
            log.key(1, 4 * MS + 1, false, 0xabc0, &waker);
            log.key(0, 9 * MS, true, 0xabc0, &waiter[1..]);
            log.key(0, 9 * MS, true, 0xabc8, &waiter[..1]);
        } else {
            log.stack(1, (3 * MS, 3 * MS + 2), (100, 108), &waker);
            // The kernel's part at once, the other one when the thread returns there.
            log.stack(0, (4 * MS, 4 * MS + 2), (100, 104), &waiter[..1]);
            log.stack(0, (4 * MS, 5 * MS), (100, 104), &waiter[1..]);
        }
        log.thread_name(6 * MS, (100, 104), "named later");
        log
    }
}
