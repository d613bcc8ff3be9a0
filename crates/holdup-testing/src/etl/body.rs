//! The kernel's events, from the published layouts.

use super::{Header, Log};

/// What a thread waits for (`KWAIT_REASON`), or why it leaves although it could run on.
pub mod reason {
    /// A driver or the kernel waits.
    pub const EXECUTIVE: u8 = 0;
    /// Sleep.
    pub const DELAY: u8 = 4;
    /// WaitForSingleObject and its kin.
    pub const USER_REQUEST: u8 = 6;
    /// A page that comes from a disk.
    pub const PAGE_IN: u8 = 9;
    /// A completion port or a pool's queue.
    pub const QUEUE: u8 = 15;
    /// Preempted.
    pub const PREEMPTED: u8 = 32;
    /// SRW locks, critical sections and condition variables.
    pub const ALERT_BY_THREAD_ID: u8 = 37;
}

/// In which state a thread leaves (`KTHREAD_STATE`).
pub mod state {
    /// It could run on.
    pub const READY: u8 = 1;
    /// It is over.
    pub const TERMINATED: u8 = 4;
    /// It waits.
    pub const WAITING: u8 = 5;
}

/// GUID of the images' PDBs, as it lies in a file.
pub const IMAGE_ID: [u8; 16] =
    [0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde];

impl Log {
    fn pointer(&self, address: u64, to: &mut Vec<u8>) {
        match self.wide {
            true => to.extend(address.to_le_bytes()),
            false => to.extend((address as u32).to_le_bytes()),
        }
    }

    /// `CSwitch`, version 2: `next` comes, and `prev` leaves in a state and for a reason.
    pub fn switch(&mut self, cpu: u16, ticks: u64, prev: u32, (state, reason): (u8, u8), next: u32) {
        let words = [next, prev].map(u32::to_le_bytes).concat();
        let body = [&words[..], &[8, 8, 0, 0, reason, 1, state, 0], &[0; 8]].concat();
        self.add(cpu, ticks, Header::PerfInfo, (0x0524, 2), &body);
    }

    /// `ReadyThread`: who runs on `cpu` makes `tid` runnable, or a DPC there does.
    pub fn ready(&mut self, cpu: u16, ticks: u64, tid: u32, by_dpc: bool) {
        let body = [&tid.to_le_bytes()[..], &[1, 2, by_dpc.into(), 0]].concat();
        self.add(cpu, ticks, Header::PerfInfo, (0x0532, 2), &body);
    }

    /// `SampledProfile`.
    pub fn sample(&mut self, cpu: u16, ticks: u64, tid: u32, address: u64) {
        let mut body = Vec::new();
        self.pointer(address, &mut body);
        body.extend([tid, 1].map(u32::to_le_bytes).concat());
        self.add(cpu, ticks, Header::PerfInfo, (0x0f2e, 2), &body);
    }

    /// `StackWalk` of the event at `of`, logged at `ticks`.
    pub fn stack(&mut self, cpu: u16, (of, ticks): (u64, u64), (pid, tid): (u32, u32), frames: &[u64]) {
        let mut body = [&(super::START + of).to_le_bytes()[..], &[pid, tid].map(u32::to_le_bytes).concat()].concat();
        frames.iter().for_each(|&frame| self.pointer(frame, &mut body));
        self.add(cpu, ticks, Header::PerfInfo, (0x1820, 2), &body);
    }

    /// A stack by its key: of the kernel's part, or of user space's.
    pub fn stack_key(&mut self, cpu: u16, (of, ticks): (u64, u64), (pid, tid): (u32, u32), kernel: bool, key: u64) {
        let mut body = [&(super::START + of).to_le_bytes()[..], &[pid, tid].map(u32::to_le_bytes).concat()].concat();
        self.pointer(key, &mut body);
        self.add(cpu, ticks, Header::PerfInfo, (if kernel { 0x1825 } else { 0x1826 }, 2), &body);
    }

    /// What a key meant until now; `last` at the log's end.
    pub fn key(&mut self, cpu: u16, ticks: u64, last: bool, key: u64, frames: &[u64]) {
        let mut body = Vec::new();
        [key].iter().chain(frames).for_each(|&address| self.pointer(address, &mut body));
        self.add(cpu, ticks, Header::PerfInfo, (if last { 0x1824 } else { 0x1823 }, 2), &body);
    }

    /// A DPC (0x44), timer DPC (0x45), threaded DPC (0x42) or service routine (0x43) ran from `began` to `ticks`.
    pub fn interrupt(&mut self, cpu: u16, (began, ticks): (u64, u64), kind: u8, routine: u64) {
        let mut body = (super::START + began).to_le_bytes().to_vec();
        self.pointer(routine, &mut body);
        if kind == 0x43 {
            body.extend([1, 0x91, 0, 0]);
        }
        self.add(cpu, ticks, Header::PerfInfo, (0x0f00 | u16::from(kind), 2), &body);
    }

    /// A process begins (1), ends (2), or is there when the log begins (3) or ends (4).
    pub fn process(&mut self, ticks: u64, kind: u8, pid: u32, name: &str) {
        let mut body = Vec::new();
        self.pointer(0xffff_8000, &mut body);
        body.extend([pid, 4, 1, 0].map(u32::to_le_bytes).concat());
        self.pointer(0, &mut body);
        body.extend([0; 4]);
        // A security identifier with two authorities, behind two pointers.
        self.pointer(1, &mut body);
        self.pointer(0, &mut body);
        body.extend([1, 2, 0, 0, 0, 0, 0, 5]);
        body.extend([0; 8]);
        body.extend(name.as_bytes());
        body.extend([0; 3]);
        self.add(0, ticks, Header::System { tid: 4, pid: 4 }, (0x0300 | u16::from(kind), 4), &body);
    }

    /// A thread begins, ends or is there, by the same kinds; `by` is the thread that logs it.
    pub fn thread(&mut self, ticks: u64, kind: u8, (pid, tid): (u32, u32), name: &str, by: u32) {
        let mut body = [pid, tid].map(u32::to_le_bytes).concat();
        (0..7).for_each(|_| self.pointer(0, &mut body));
        body.extend([0; 8]);
        body.extend(wide_text(name));
        self.add(0, ticks, Header::System { tid: by, pid }, (0x0500 | u16::from(kind), 4), &body);
    }

    /// A thread gets a name.
    pub fn thread_name(&mut self, ticks: u64, (pid, tid): (u32, u32), name: &str) {
        let body = [[pid, tid].map(u32::to_le_bytes).concat(), wide_text(name)].concat();
        self.add(0, ticks, Header::Compact { tid }, (0x0548, 2), &body);
    }

    /// An image is loaded (10), unloaded (2), or is there (3, 4).
    pub fn image(&mut self, ticks: u64, kind: u8, pid: u32, (base, size): (u64, u64), path: &str) {
        let mut body = Vec::new();
        self.pointer(base, &mut body);
        self.pointer(size, &mut body);
        body.extend([pid, 0, 0, 0].map(u32::to_le_bytes).concat());
        self.pointer(base, &mut body);
        body.extend([0; 16]);
        body.extend(wide_text(path));
        self.add(0, ticks, Header::PerfInfo, (0x1400 | u16::from(kind), 3), &body);
    }

    /// Which PDB belongs to the image at `base`.
    pub fn pdb(&mut self, ticks: u64, pid: u32, base: u64, guid: [u8; 16], age: u32, name: &str) {
        let mut body = Vec::new();
        self.pointer(base, &mut body);
        body.extend(pid.to_le_bytes());
        body.extend(guid);
        body.extend(age.to_le_bytes());
        body.extend(name.as_bytes());
        body.push(0);
        self.add(0, ticks, Header::Full { guid: IMAGE_ID, opcode: 36 }, (0, 2), &body);
    }

    /// A disk has read, and took so many ticks.
    pub fn disk_read(&mut self, cpu: u16, ticks: u64, took: u64, (offset, bytes): (u64, u32), tid: u32) {
        let mut body = [0, 0, bytes, 0].map(u32::to_le_bytes).concat();
        body.extend(offset.to_le_bytes());
        self.pointer(0, &mut body);
        self.pointer(0, &mut body);
        body.extend(took.to_le_bytes());
        body.extend(tid.to_le_bytes());
        self.add(cpu, ticks, Header::PerfInfo, (0x010a, 3), &body);
    }
}

fn wide_text(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
