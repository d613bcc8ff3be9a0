//! A function with a loop, instruction by instruction.

mod common;

use std::sync::Arc;

use holdup_analysis::annotate::{Annotated, annotate};
use holdup_analysis::{CodeLoop, Decoded, Disassembler, Disassembly, Idiom, IdiomKind};
use holdup_trace::{
    Cpu, Destination, Image, Location, MapEvent, SampleEvent, SourceLine, Symbolizer, Trace, TraceBuilder,
};

/// Two functions of 16 bytes; in each, bytes 4 to 8 are inlined from `cpu_relax`.
struct Namer {
    code: bool,
}

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let offset = address & 15;
        let outer = if address & 16 == 0 { "pool::worker::spin" } else { "pool::other::spinner" };
        let location = |function: &str, line| Location {
            function: function.into(),
            module: "/bin/x".into(),
            file: "/src/x.c".into(),
            line,
            offset,
        };
        let mut found = vec![location(outer, 10 + offset as u32)];
        if (4..8).contains(&offset) {
            found.insert(0, location("cpu_relax", 3));
        }
        found
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], address: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        self.code.then(|| (address & !15, vec![0x90; 16]))
    }

    fn lines(&mut self, _: &[Arc<Image>], _: u64, _: usize) -> Vec<SourceLine> {
        let line =
            |offset, inlined: &str, line| SourceLine { offset, inlined: inlined.into(), file: "/src/x.c".into(), line };
        vec![line(0, "", 10), line(4, "cpu_relax", 3), line(8, "", 12)]
    }
}

/// Instructions of 4 bytes: mov, pause, cmp, jne to the first.
struct Four;

impl Disassembler for Four {
    fn disassemble(&self, _: &str, code: &[u8], start: u64) -> Disassembly {
        assert_eq!(code.len(), 16);
        let one = |i: u64| Decoded { address: start + 4 * i, pause: i == 1, ..Decoded::default() };
        let around = CodeLoop {
            instructions: (0..4).map(|i| start + 4 * i).collect(),
            has_pause: true,
            pauses: true,
            load_only: true,
            ..CodeLoop::default()
        };
        Disassembly { instructions: (0..4).map(one).collect(), loops: vec![around] }
    }

    fn text(&self, _: &str, code: &[u8], _: u64) -> String {
        let texts = ["jne", "cmp %eax,%ebx", "pause", "mov (%rdi),%eax"];
        texts[code.len() / 4 - 1].to_owned()
    }
}

/// Two processes run the program at different addresses: 6 + 3 samples behind the pause, 1 on it, 2 in the other.
fn trace(code: bool) -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).unwrap();
    b.meta_mut().cpus = 1;
    let mut t = 0;
    for (pid, samples) in [(10u32, [(0x8, 6), (0x4, 1), (0x18, 2)]), (11, [(0x8, 3), (0x4, 0), (0x18, 0)])] {
        let start = u64::from(pid) << 12;
        let image = b.image(Image { start, end: start + 4096, path: "/bin/x".into(), pid, ..Image::default() });
        b.push(t, MapEvent { pid, image });
        for (ip, n) in samples.map(|(offset, n)| (start + offset, n)) {
            for _ in 0..n {
                t += 1;
                let chain = b.chain(pid, &[], &[ip]);
                b.push(t, SampleEvent { cpu: Cpu(0), tid: pid, ip, bp: 0, chain });
            }
        }
    }
    b.finish(Some(&mut Namer { code })).unwrap()
}

fn ask(trace: &Trace, wanted: &str) -> Result<Annotated, String> {
    annotate(trace, "t", wanted, &Four).map_err(|e| e.to_string())
}

#[test]
fn processes_are_added_up_and_loops_named() {
    let found = ask(&trace(true), "pool::worker::spin").unwrap();
    assert_eq!((found.samples, found.samples_total, found.has_code), (10, 12, true));
    let samples: Vec<u64> = found.instructions.iter().map(|i| i.samples).collect();
    assert_eq!(samples, [0, 1, 9, 0]);
    let sources: Vec<&str> = found.instructions.iter().map(|i| i.source.as_str()).collect();
    assert_eq!(sources, ["x.c:10", "x.c:3", "x.c:12", "x.c:12"], "those without samples have lines, too");
    assert_eq!(found.instructions[1].inlined, "cpu_relax");
    assert_eq!(found.loops.len(), 1);
    assert!(found.loops[0].spins && found.loops[0].text.contains("`pause` in a loop of 4"), "{}", found.loops[0].text);
    assert!((found.loops[0].share - 1.0).abs() < 1e-9);
    assert!(found.notes.iter().any(|n| n.contains("90 %") && n.contains("`pause` before it")), "{:?}", found.notes);
}

/// The same code, of which the disassembler knows what else it does.
struct Scanning;

impl Disassembler for Scanning {
    fn disassemble(&self, arch: &str, code: &[u8], start: u64) -> Disassembly {
        let mut found = Four.disassemble(arch, code, start);
        let instructions = found.loops.remove(0).instructions;
        let idiom = Some(Idiom::Scans { bytes: 4 });
        found.loops.push(CodeLoop { instructions, load_only: true, idiom, ..CodeLoop::default() });
        found
    }

    fn text(&self, arch: &str, code: &[u8], address: u64) -> String {
        Four.text(arch, code, address)
    }
}

#[test]
fn what_a_loop_does_is_told_with_what_it_could_be() {
    let found = annotate(&trace(true), "t", "pool::worker::spin", &Scanning).unwrap();
    assert_eq!(found.loops[0].idiom, Some(IdiomKind::Scan));
    let text = &found.loops[0].text;
    assert!(
        text.starts_with("a loop of 4 instructions that only reads memory: it looks at one element of 4 bytes"),
        "{text}"
    );
}

#[test]
fn without_code_addresses_are_listed() {
    let found = ask(&trace(false), "pool::worker::spin").unwrap();
    assert!(!found.has_code && found.loops.is_empty());
    let rows: Vec<(u64, u64, &str)> =
        found.instructions.iter().map(|i| (i.offset, i.samples, i.inlined.as_str())).collect();
    assert_eq!(rows, [(4, 1, "cpu_relax"), (8, 9, "")]);
    assert!(found.notes[0].contains("not in the trace"));
}

#[test]
fn functions_are_found_from_strict_to_loose() {
    let trace = trace(true);
    let name = |wanted: &str| ask(&trace, wanted).map(|f| f.function);
    assert_eq!(name("spin").unwrap(), "pool::worker::spin", "a path's last part, not a part of a name");
    assert_eq!(name("other").unwrap(), "pool::other::spinner");
    assert_eq!(name("^pool::.*ner$").unwrap(), "pool::other::spinner");
    let both = ask(&trace, "pool").unwrap();
    assert_eq!((both.function.as_str(), both.others.len(), both.others[0].samples), ("pool::worker::spin", 1, 2));
    // An inlined function is shown inside the one that holds it.
    assert_eq!(name("cpu_relax").unwrap(), "pool::worker::spin");
    let error = name("spiner").expect_err("a typing error");
    assert!(error.contains("near it are `pool::other::spinner`"), "{error}");
    assert!(name("xyzzy").expect_err("nothing").contains("most samples are in `pool::worker::spin`"));
}

#[test]
fn no_samples_are_said() {
    let none = common::Schedule::new(1, 10.0).thread(10, "a").finish();
    assert!(ask(&none, "x").expect_err("nothing").contains("no CPU samples"));
}
