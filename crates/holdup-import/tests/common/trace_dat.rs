//! Writes trace.dat files of versions 6 and 7, as trace-cmd does.

/// A tracepoint's description, with `fields` of (declaration, offset, size).
pub fn format(id: u16, name: &str, fields: &[(&str, usize, usize)]) -> String {
    let common = [("unsigned short common_type", 0, 2), ("unsigned char common_flags", 2, 1), ("int common_pid", 4, 4)];
    let fields = common.iter().chain(fields);
    let lines: String =
        fields.map(|(d, at, size)| format!("\tfield:{d};\toffset:{at};\tsize:{size};\tsigned:0;\n")).collect();
    format!("name: {name}\nID: {id}\nformat:\n{lines}\nprint fmt: \"\"\n")
}

pub const SWITCH: u16 = 10;
pub const WAKING: u16 = 11;
pub const STACK: u16 = 4;
pub const NEW: u16 = 12;
pub const FUTEX: u16 = 13;

fn formats() -> Vec<(&'static str, Vec<String>)> {
    let switch = [
        ("char prev_comm[16]", 8, 16),
        ("pid_t prev_pid", 24, 4),
        ("long prev_state", 32, 8),
        ("char next_comm[16]", 40, 16),
        ("pid_t next_pid", 56, 4),
    ];
    let waking = [("char comm[16]", 8, 16), ("pid_t pid", 24, 4), ("int target_cpu", 28, 4)];
    let futex = [("int __syscall_nr", 8, 4), ("u32 * uaddr", 16, 8), ("int op", 24, 8), ("u32 val", 32, 8)];
    let new = [("pid_t pid", 8, 4), ("char comm[16]", 12, 16), ("u64 clone_flags", 32, 8)];
    vec![
        ("ftrace", vec![format(STACK, "kernel_stack", &[("int size", 8, 4), ("unsigned long caller[8]", 16, 64)])]),
        ("sched", vec![format(SWITCH, "sched_switch", &switch), format(WAKING, "sched_waking", &waking)]),
        ("syscalls", vec![format(FUTEX, "sys_enter_futex", &futex)]),
        ("task", vec![format(NEW, "task_newtask", &new)]),
    ]
}

fn common(id: u16, tid: u32) -> Vec<u8> {
    let mut raw = id.to_le_bytes().to_vec();
    raw.extend([0, 0]);
    raw.extend(tid.to_le_bytes());
    raw
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

/// A switch from (tid, name, state) to (tid, name).
pub fn switch(prev: (u32, &str, u64), next: (u32, &str)) -> Vec<u8> {
    let mut raw = common(SWITCH, prev.0);
    raw.extend(name(prev.1));
    raw.extend(u64::from(prev.0).to_le_bytes());
    raw.extend(prev.2.to_le_bytes());
    raw.extend(name(next.1));
    raw.extend(u64::from(next.0).to_le_bytes());
    raw
}

/// `waker` wakes (tid, name) for `cpu`.
pub fn waking(waker: u32, wakee: (u32, &str), cpu: u32) -> Vec<u8> {
    let mut raw = common(WAKING, waker);
    raw.extend(name(wakee.1));
    raw.extend(wakee.0.to_le_bytes());
    raw.extend(cpu.to_le_bytes());
    raw
}

/// `tid` calls futex.
pub fn futex(tid: u32, address: u64, operation: u64) -> Vec<u8> {
    let mut raw = common(FUTEX, tid);
    raw.extend([202, address, operation, 2].iter().flat_map(|word: &u64| word.to_le_bytes()));
    raw
}

/// A stack of `tid` in the kernel.
pub fn stack(tid: u32, addresses: &[u64]) -> Vec<u8> {
    let mut raw = common(STACK, tid);
    raw.extend((addresses.len() as u64).to_le_bytes());
    raw.extend(addresses.iter().chain(&[u64::MAX]).flat_map(|a| a.to_le_bytes()));
    raw
}

/// `maker` makes the thread (tid, name), in its own process or as one.
pub fn new_task(maker: u32, task: (u32, &str), thread: bool) -> Vec<u8> {
    let mut raw = common(NEW, maker);
    raw.extend(task.0.to_le_bytes());
    raw.extend(name(task.1));
    raw.extend([0; 4]);
    raw.extend((u64::from(thread) * 0x1_0000).to_le_bytes());
    raw
}

/// A page of events, each with its time; `missed` before it.
pub fn page(events: &[(u64, Vec<u8>)], missed: Option<u64>) -> Vec<u8> {
    const SIZE: usize = 4096;
    let mut data = Vec::new();
    let start = events[0].0;
    let mut last = start;
    for (time, raw) in events {
        assert_eq!(raw.len() % 4, 0);
        let delta = (time - last) as u32;
        if raw.len() > 112 {
            data.extend((delta << 5).to_le_bytes());
            data.extend((raw.len() as u32 + 4).to_le_bytes());
        } else {
            data.extend(((delta << 5) | (raw.len() as u32 / 4)).to_le_bytes());
        }
        data.extend(raw);
        last = *time;
    }
    let flags = if missed.is_some() { 3_u64 << 30 } else { 0 };
    let mut page = start.to_le_bytes().to_vec();
    page.extend((data.len() as u64 | flags).to_le_bytes());
    page.extend(data);
    page.extend(missed.unwrap_or(0).to_le_bytes());
    page.resize(SIZE, 0);
    page
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const FUNCTIONS: &[u8] = b"ffffffff81000000 t leaf\nffffffff8100001f T caller\n";
const NAMES: &[u8] = b"7 seven\n8 eight\n";

fn head(version: &str) -> Vec<u8> {
    let mut file = b"\x17\x08\x44tracing".to_vec();
    file.extend(version.as_bytes());
    file.extend([0, 0, 8]);
    file.extend(4096_u32.to_le_bytes());
    file
}

fn sized(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

fn header_info() -> Vec<u8> {
    [b"header_page\0".to_vec(), sized(HEADER_PAGE.as_bytes()), b"header_event\0".to_vec(), sized(b"x")].concat()
}

fn counted(formats: &[String]) -> Vec<u8> {
    let mut bytes = (formats.len() as u32).to_le_bytes().to_vec();
    formats.iter().for_each(|f| bytes.extend(sized(f.as_bytes())));
    bytes
}

fn systems() -> (Vec<u8>, Vec<u8>) {
    let all = formats();
    let mut others = (all.len() as u32 - 1).to_le_bytes().to_vec();
    for (system, formats) in &all[1..] {
        others.extend(system.as_bytes());
        others.push(0);
        others.extend(counted(formats));
    }
    (counted(&all[0].1), others)
}

/// A file of version 6 with the pages of each CPU.
pub fn version6(cpus: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let (ftrace, others) = systems();
    let mut file = [head("6"), header_info(), ftrace, others].concat();
    file.extend((FUNCTIONS.len() as u32).to_le_bytes());
    file.extend(FUNCTIONS);
    file.extend([0; 4]); // no texts
    file.extend(sized(NAMES));
    file.extend((cpus.len() as u32).to_le_bytes());
    file.extend(b"options  \0");
    let stat = b"CPU: 0\nentries: 0\noverrun: 0\n\0";
    file.extend(2_u16.to_le_bytes());
    file.extend((stat.len() as u32).to_le_bytes());
    file.extend(stat);
    file.extend(0_u16.to_le_bytes());
    file.extend(b"flyrecord\0");
    let mut at = (file.len() + 16 * cpus.len()).next_multiple_of(4096);
    let first = at;
    for pages in cpus {
        let size = pages.len() * 4096;
        file.extend((at as u64).to_le_bytes());
        file.extend((size as u64).to_le_bytes());
        at += size;
    }
    file.resize(first, 0);
    cpus.iter().flatten().for_each(|page| file.extend(page));
    file
}

fn option(id: u16, bytes: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn section(id: u16, packed: bool, content: &[u8]) -> Vec<u8> {
    let content = if packed { pack(content) } else { content.to_vec() };
    let head = [&id.to_le_bytes()[..], &u16::from(packed).to_le_bytes(), &[0; 4]].concat();
    [head, sized(&content)].concat()
}

/// How the data of version 7 is packed here.
fn pack(plain: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(plain).expect("memory");
    let packed = zlib.finish().expect("memory");
    [&(packed.len() as u32).to_le_bytes()[..], &(plain.len() as u32).to_le_bytes(), &packed].concat()
}

/// A file of version 7 with the pages of each CPU.
pub fn version7(cpus: &[Vec<Vec<u8>>], packed: bool) -> Vec<u8> {
    let (ftrace, others) = systems();
    let mut file = head("7");
    file.extend(if packed { b"zlib\x001.2\x00".as_slice() } else { b"none\0\0" });
    let pointer = file.len();
    file.extend([0; 8]);
    let mut options = Vec::new();
    let functions = [&(FUNCTIONS.len() as u32).to_le_bytes()[..], FUNCTIONS].concat();
    let sections = [(16, header_info()), (17, ftrace), (18, others), (19, functions), (21, sized(NAMES))];
    for (id, content) in sections {
        options.extend(option(id, &(file.len() as u64).to_le_bytes()));
        file.extend(section(id, packed, &content));
    }
    options.extend(option(5, b"Linux box 6.1.0 #1 SMP x86_64\0"));
    let buffer_at = file.len() as u64;
    file.extend([3, 0, u8::from(packed), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut buffer = [&buffer_at.to_le_bytes()[..], b"\0mono\0"].concat();
    buffer.extend(4096_u32.to_le_bytes());
    buffer.extend((cpus.len() as u32).to_le_bytes());
    for (cpu, pages) in cpus.iter().enumerate() {
        let at = file.len();
        if packed {
            file.extend((pages.len() as u32).to_le_bytes());
            pages.iter().for_each(|page| file.extend(pack(page)));
        } else {
            pages.iter().for_each(|page| file.extend(page));
        }
        buffer.extend((cpu as u32).to_le_bytes());
        buffer.extend((at as u64).to_le_bytes());
        buffer.extend(((file.len() - at) as u64).to_le_bytes());
    }
    options.extend(option(3, &buffer));
    options.extend(option(0, &0_u64.to_le_bytes()));
    let at = file.len() as u64;
    file.extend(section(0, false, &options));
    file[pointer..pointer + 8].copy_from_slice(&at.to_le_bytes());
    file
}
