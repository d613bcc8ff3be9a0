//! ELF files by hand, so that they can be as hostile as one likes.
#![allow(dead_code)] // each test uses another part

/// Where `.text` lies, in the file and in memory.
pub const TEXT: u64 = 0x1000;

/// A section: name, type, flags, address, what it links to, contents.
pub struct Section {
    pub name: String,
    pub kind: u32,
    pub flags: u64,
    pub addr: u64,
    pub link: u32,
    pub data: Vec<u8>,
}

pub fn section(name: &str, data: Vec<u8>) -> Section {
    Section { name: name.into(), kind: 1, flags: 0, addr: 0, link: 0, data }
}

/// A 64-bit library with `code` bytes of `.text`, and the sections. The one segment maps the whole file as it is.
pub fn elf(code: usize, sections: Vec<Section>) -> Vec<u8> {
    let text = Section { flags: 6, addr: TEXT, ..section(".text", vec![0x90; code]) };
    let all: Vec<Section> = std::iter::once(text).chain(sections).collect();
    let mut file = vec![0; TEXT as usize];
    let (mut headers, mut names) = (vec![0; 64], vec![0]);
    for s in &all {
        let name = names.len() as u32;
        names.extend(s.name.bytes().chain([0]));
        headers.extend(header(name, s.kind, s.flags, (s.addr, file.len(), s.data.len()), s.link));
        file.extend(&s.data);
    }
    headers.extend(header(0, 3, 0, (0, file.len(), names.len()), 0));
    file.extend(&names);
    let table = file.len() as u64;
    file.extend(&headers);
    let count = (all.len() + 2) as u16;
    let mut begin = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    for word in [0, 64, table] {
        begin.extend(u64::to_le_bytes(word));
    }
    begin.extend([0; 4]);
    for half in [64, 56, 1, 64, count, count - 1] {
        begin.extend(u16::to_le_bytes(half));
    }
    begin.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let size = file.len() as u64;
    for word in [0, 0, 0, size, size, 0x1000] {
        begin.extend(u64::to_le_bytes(word));
    }
    file[..begin.len()].copy_from_slice(&begin);
    file
}

fn header(name: u32, kind: u32, flags: u64, (addr, offset, size): (u64, usize, usize), link: u32) -> Vec<u8> {
    let mut h = [name.to_le_bytes(), kind.to_le_bytes()].concat();
    for word in [flags, addr, offset as u64, size as u64] {
        h.extend(word.to_le_bytes());
    }
    h.extend(link.to_le_bytes());
    h.extend([0; 20]);
    h
}

/// A symbol table with a function of 16 bytes for each name, from the start of `.text` on.
pub fn symbols(names: &[String]) -> Vec<Section> {
    let (mut table, mut text) = (vec![0; 24], vec![0]);
    for (i, name) in names.iter().enumerate() {
        table.extend((text.len() as u32).to_le_bytes());
        table.extend([0x12, 0, 1, 0]);
        table.extend((TEXT + 16 * i as u64).to_le_bytes());
        table.extend(16u64.to_le_bytes());
        text.extend(name.bytes().chain([0]));
    }
    vec![Section { kind: 2, link: 3, ..section(".symtab", table) }, Section { kind: 3, ..section(".strtab", text) }]
}

/// Names of a few hundred bytes at most that stand for gigabytes, or cost minutes.
pub fn costly_names() -> Vec<String> {
    let mut names = vec![
        // Each failure is tried again on every level.
        format!("_Z1fI{}", "SaI".repeat(60)),
        format!("_Z1fIX{}E", "dl".repeat(60)),
        format!("_Z{}", "CI1".repeat(20)),
        format!("_ZN1AI{}?", "fL1aI".repeat(20)),
        // Well-formed, and every level is read twice.
        format!("_ZN1AcvT_I{}i{}EIiEEv", "T_I".repeat(30), "EIiE".repeat(30)),
    ];
    // A<int, int>, then A of twice the one before.
    let mut cpp = "_Z1fI1AIiiE".to_owned();
    (1..30).for_each(|i| cpp += &format!("S0_IS{0}_S{0}_E", base(i, 36).to_uppercase()));
    names.push(cpp + "EvT_");
    // Tuples of twice the one before.
    let mut rust = "_RINvC1a1f".to_owned();
    let mut last = rust.len() - 2;
    rust += "TmmE";
    for _ in 1..40 {
        let place = rust.len() - 2;
        let reference = if last == 0 { "B_".into() } else { format!("B{}_", base(last - 1, 62)) };
        rust += &format!("T{reference}{reference}E");
        last = place;
    }
    names.push(rust + "E");
    names
}

fn base(mut n: usize, base: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % base]);
        n /= base;
        if n == 0 {
            digits.reverse();
            return String::from_utf8(digits).unwrap();
        }
    }
}

/// `depth` functions inlined in each other in one function at `.text`, in DWARF 4.
pub fn inlined(depth: usize, code: u64) -> Vec<Section> {
    // 1: unit, 2: function, 3: inlined function, each with low_pc, high_pc and children.
    let abbreviations = [1, 0x11, 2, 0x2e, 3, 0x1d].chunks(2).flat_map(|c| {
        let [code, tag] = c else { unreachable!("pairs") };
        [*code, *tag, 1, 0x11, 1, 0x12, 7, 0, 0]
    });
    let mut range = TEXT.to_le_bytes().to_vec();
    range.extend(code.to_le_bytes());
    let mut entries: Vec<u8> = [&[1], &range[..], &[2], &range[..]].concat();
    (0..depth).for_each(|_| entries.extend([&[3], &range[..]].concat()));
    entries.extend(vec![0; depth + 2]);
    vec![section(".debug_abbrev", abbreviations.chain([0]).collect()), section(".debug_info", unit(&entries))]
}

/// A unit of DWARF 4 with the abbreviations from 0 on.
pub fn unit(entries: &[u8]) -> Vec<u8> {
    let mut unit = (entries.len() as u32 + 7).to_le_bytes().to_vec();
    unit.extend([4, 0, 0, 0, 0, 0, 8]);
    unit.extend(entries);
    unit
}

/// `units` units of 16 bytes of code each, which all have the same line table of `rows` rows.
pub fn shared_lines(units: u64, rows: usize) -> Vec<Section> {
    let abbreviations = vec![1, 0x11, 0, 0x11, 1, 0x12, 7, 0x10, 0x17, 0, 0, 0];
    let mut info = Vec::new();
    for i in 0..units {
        let entries = [&[1][..], &(TEXT + 16 * i).to_le_bytes(), &16u64.to_le_bytes(), &[0; 4]].concat();
        info.extend(unit(&entries));
    }
    // Version 4, header of 20 bytes; special opcode 0x20: the address goes on by one.
    let header = [1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0];
    let mut program = [&[0, 9, 2][..], &TEXT.to_le_bytes()].concat();
    program.extend(vec![0x20; rows]);
    program.extend([0, 1, 1]);
    let length = (2 + 4 + header.len() + program.len()) as u32;
    let mut line = [&length.to_le_bytes()[..], &[4, 0], &(header.len() as u32).to_le_bytes(), &header].concat();
    line.extend(program);
    vec![section(".debug_abbrev", abbreviations), section(".debug_info", info), section(".debug_line", line)]
}

/// A section of `size` zeros, packed by zstd: four bytes for 128 KiB.
pub fn packed_zeros(name: &str, size: u64) -> Section {
    let block = 128 << 10;
    let mut data = [&2u32.to_le_bytes()[..], &[0; 4], &size.to_le_bytes(), &1u64.to_le_bytes()].concat();
    data.extend([0x28, 0xb5, 0x2f, 0xfd, 0, 0x50]);
    let blocks = size / block;
    for i in 0..blocks {
        let header = u64::from(i + 1 == blocks) | 1 << 1 | block << 3;
        data.extend([&header.to_le_bytes()[..3], &[0]].concat());
    }
    Section { flags: 0x800, ..section(name, data) }
}

/// Call frame information for `code` bytes of `.text`: one entry, with as many instructions as given, all of which count
/// for every address.
pub fn long_frame_program(code: u64, instructions: usize) -> Section {
    let sized = |mut body: Vec<u8>| {
        body.resize(body.len().next_multiple_of(8) + 4, 0);
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    };
    // CFA = rsp + 8, the return address below it.
    let common = sized([&0u32.to_le_bytes()[..], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]].concat());
    let mut entry = (common.len() as u32 + 4).to_le_bytes().to_vec();
    entry.extend([TEXT.to_le_bytes(), code.to_le_bytes()].concat());
    (0..instructions).for_each(|_| entry.extend([0x0e, 8]));
    section(".eh_frame", [common, sized(entry), vec![0; 4]].concat())
}
