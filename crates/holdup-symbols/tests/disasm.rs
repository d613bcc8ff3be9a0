//! Instructions, what they do, and loops: x86-64 from a real compiler, AArch64 from encodings.

mod common;

use std::sync::Arc;

use common::{BASE, compile, flat_image, symbol};
use holdup_disasm::{Arch, Atomic, Instruction, Kind, Loop, Operation, Register, disassemble, loops, text};
use holdup_symbols::{Kernel, Symbols};
use holdup_trace::Symbolizer;

fn one(arch: Arch, code: &[u8]) -> Instruction {
    let all = disassemble(arch, code, 0x1000);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

#[test]
fn x86_text_and_kind() {
    let text = |code: &[u8]| text(Arch::X86_64, code, 0x1000);
    assert_eq!(text(&[0xf0, 0x0f, 0xb1, 0x0a]), "lock cmpxchg %ecx,(%rdx)");
    assert_eq!(text(&[0x48, 0x89, 0x44, 0x24, 0x08]), "mov %rax,8(%rsp)");
    assert_eq!(text(&[0xf3, 0x90]), "pause");
    let kind = |code: &[u8]| one(Arch::X86_64, code).kind;
    assert_eq!(kind(&[0xf3, 0x90]), Kind::Pause);
    assert_eq!(kind(&[0xeb, 0xfe]), Kind::Branch { target: Some(0x1000), conditional: false });
    assert_eq!(kind(&[0x75, 0x10]), Kind::Branch { target: Some(0x1012), conditional: true });
    assert_eq!(kind(&[0xe8, 0xfb, 0xff, 0xff, 0xff]), Kind::Call { target: Some(0x1000) });
    assert_eq!(kind(&[0xff, 0xd0]), Kind::Call { target: None });
    assert_eq!(kind(&[0xff, 0xe0]), Kind::Branch { target: None, conditional: false });
    assert_eq!(kind(&[0xc3]), Kind::Return);
    assert_eq!(kind(&[0x0f, 0x0b]), Kind::Trap);
    assert_eq!(kind(&[0x0f, 0x05]), Kind::Plain, "a system call comes back");
}

#[test]
fn x86_memory() {
    let access = |code: &[u8]| {
        let i = one(Arch::X86_64, code);
        (i.load, i.store, i.atomic)
    };
    assert_eq!(access(&[0xf0, 0x0f, 0xb1, 0x0a]), (true, true, Some(Atomic::CompareExchange)));
    assert_eq!(access(&[0xf0, 0x0f, 0xc1, 0x02]), (true, true, Some(Atomic::ReadModifyWrite)));
    assert_eq!(access(&[0x87, 0x07]), (true, true, Some(Atomic::ReadModifyWrite)), "xchg locks by itself");
    assert_eq!(access(&[0x87, 0xc3]), (false, false, None), "xchg of registers does not");
    assert_eq!(access(&[0x8b, 0x07]), (true, false, None));
    assert_eq!(access(&[0x89, 0x07]), (false, true, None));
    assert_eq!(access(&[0x48, 0x8d, 0x47, 0x08]), (false, false, None), "lea touches no memory");
    let operand = |code: &[u8]| one(Arch::X86_64, code).memory.unwrap();
    let m = operand(&[0xf0, 0x48, 0xff, 0x44, 0xcf, 0xf8]); // lock incq -8(%rdi,%rcx,8)
    assert_eq!((m.base, m.index), (Some(Register::General(7)), Some(Register::General(1))));
    assert_eq!((m.scale, m.displacement, m.thread_local), (8, -8, false));
    let m = operand(&[0x8b, 0x05, 0x10, 0, 0, 0]); // mov 16(%rip),%eax
    assert_eq!((m.base, m.displacement), (Some(Register::InstructionPointer), 0x1016));
    assert!(operand(&[0x64, 0x8b, 0x00]).thread_local);
}

#[test]
fn aarch64_text_and_kind() {
    let word = |w: u32| one(Arch::Aarch64, &w.to_le_bytes());
    assert_eq!(word(0xd503_203f).kind, Kind::Pause, "yield");
    assert_eq!(word(0xd503_3fdf).kind, Kind::Pause, "isb");
    assert_eq!(word(0x17ff_ffff).kind, Kind::Branch { target: Some(0xffc), conditional: false });
    assert_eq!(text(Arch::Aarch64, &0x17ff_ffffu32.to_le_bytes(), 0x1000), "b 0xffc");
    assert_eq!(word(0x54ff_ffe1).kind, Kind::Branch { target: Some(0xffc), conditional: true }, "b.ne");
    assert_eq!(word(0xb400_0040).kind, Kind::Branch { target: Some(0x1008), conditional: true }, "cbz x0");
    assert_eq!(word(0x3607_ffe0).kind, Kind::Branch { target: Some(0xffc), conditional: true }, "tbz");
    assert_eq!(word(0x9400_0001).kind, Kind::Call { target: Some(0x1004) });
    assert_eq!(word(0xd63f_0000).kind, Kind::Call { target: None }, "blr x0");
    assert_eq!(word(0xd61f_0000).kind, Kind::Branch { target: None, conditional: false }, "br x0");
    assert_eq!(word(0xd65f_03c0).kind, Kind::Return);
    assert_eq!(word(0xd420_0000).kind, Kind::Trap, "brk");
    assert_eq!(word(0).kind, Kind::Trap);
    assert_eq!(word(0x9100_0400).kind, Kind::Plain, "add x0, x0, 1");
}

#[test]
fn aarch64_memory() {
    let access = |w: u32| {
        let i = one(Arch::Aarch64, &w.to_le_bytes());
        (i.load, i.store, i.atomic)
    };
    assert_eq!(access(0xc85f_fc20), (true, false, Some(Atomic::Exclusive)), "ldaxr x0, [x1]");
    assert_eq!(access(0xc800_fc22), (false, true, Some(Atomic::Exclusive)), "stlxr w0, x2, [x1]");
    assert_eq!(access(0xc8e0_fc22), (true, true, Some(Atomic::CompareExchange)), "casal x0, x2, [x1]");
    assert_eq!(access(0xf8e0_0022), (true, true, Some(Atomic::ReadModifyWrite)), "ldaddal x0, x2, [x1]");
    assert_eq!(access(0xf8e0_8022), (true, true, Some(Atomic::ReadModifyWrite)), "swpal");
    assert_eq!(access(0xc8df_fc20), (true, false, None), "ldar x0, [x1]");
    assert_eq!(access(0xc89f_fc20), (false, true, None), "stlr x0, [x1]");
    assert_eq!(access(0xf8bf_c020), (true, false, None), "ldapr x0, [x1]");
    assert_eq!(access(0xf940_0420), (true, false, None), "ldr x0, [x1, 8]");
    assert_eq!(access(0xf900_0420), (false, true, None), "str x0, [x1, 8]");
    assert_eq!(access(0xa9bf_7bfd), (false, true, None), "stp x29, x30, [sp, -16]!");
    assert_eq!(access(0xa8c1_7bfd), (true, false, None), "ldp x29, x30, [sp], 16");
    assert_eq!(access(0x5800_0040), (true, false, None), "ldr x0, literal");
    assert_eq!(access(0xf980_0020), (false, false, None), "prfm");
    assert_eq!(access(0x9100_0400), (false, false, None));
    let m = one(Arch::Aarch64, &0xf940_0420u32.to_le_bytes()).memory.unwrap();
    assert_eq!((m.base, m.displacement), (Some(Register::General(1)), 8));
}

#[test]
fn a_pause_moved_out_of_the_way_belongs_to_the_loop() {
    // 0: mov (%rdi),%eax; 2: test %eax,%eax; 4: jne 9; 6: ret; 7: nop; 8: nop; 9: pause; b: jmp 0
    let code = [0x8b, 0x07, 0x85, 0xc0, 0x75, 0x03, 0xc3, 0x90, 0x90, 0xf3, 0x90, 0xeb, 0xf3];
    let found = loops(&disassemble(Arch::X86_64, &code, 0));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].instructions, [0, 2, 4, 9, 11]);
    assert!(found[0].has_pause && found[0].load_only && !found[0].contains(6));
}

#[test]
fn spin_loops_of_a_compiler() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spin");
    if !cfg!(target_arch = "x86_64") || compile("gcc", &["-O2"], &["spin.c"], &path).is_none() {
        return;
    }
    let image = flat_image(&path);
    let mut symbols = Symbols::new(Kernel::None);
    let mut of = |name: &str| {
        let images = [Arc::clone(&image)];
        let (start, code) = symbols.code(false, &images, BASE + symbol(&path, name), 4096).unwrap();
        loops(&disassemble(Arch::X86_64, &code, start))
    };
    let wait = of("spin_wait");
    assert_eq!(wait.len(), 1, "{wait:?}");
    assert!(wait[0].has_pause && wait[0].load_only && !wait[0].has_atomic);
    assert!(of("spin_bare").iter().all(|l| l.load_only && !l.has_pause && l.instructions.len() <= 4));
    let lock = of("spin_lock");
    assert!(lock.iter().any(|l| l.has_atomic && l.has_pause && l.has_compare_exchange), "{lock:?}");
    let sum = of("summing");
    assert!(sum.iter().all(|l| !l.has_pause && !l.has_atomic), "{sum:?}");
    assert!(of("filling").iter().all(|l| !l.load_only));
    // The loop around the waiting one is another loop.
    let nested = of("nested");
    assert!(nested.iter().any(|l| l.has_pause && l.load_only), "{nested:#?}");
    assert!(nested.iter().any(|l| l.has_call || !l.load_only), "{nested:#?}");
}

fn waits(l: &Loop) -> bool {
    l.pauses || l.looks || l.acquires
}

/// Whoever waits reads one place again and again; whoever works goes from place to place, or makes something.
#[test]
fn loops_that_wait_are_told_from_loops_that_work() {
    let dir = tempfile::tempdir().unwrap();
    for optimised in ["-O1", "-O2", "-O3"] {
        let path = dir.path().join(optimised);
        if !cfg!(target_arch = "x86_64") || compile("gcc", &[optimised], &["spin_shapes.c"], &path).is_none() {
            return;
        }
        let image = flat_image(&path);
        let mut symbols = Symbols::new(Kernel::None);
        let mut of = |name: &str| {
            let images = [Arc::clone(&image)];
            let (start, code) = symbols.code(false, &images, BASE + symbol(&path, name), 4096).unwrap();
            loops(&disassemble(Arch::X86_64, &code, start))
        };
        for name in ["look", "bit", "limited", "ticket", "exchange", "compare", "pausing"] {
            let found = of(&format!("waits_{name}"));
            assert!(!found.is_empty() && found.iter().all(waits), "{name} {optimised}: {found:#x?}");
        }
        let work =
            ["strlen", "list", "bitmap", "hash", "compare", "search", "adding", "pushing", "counting", "until", "sum"];
        for name in work {
            let found = of(&format!("works_{name}"));
            assert!(!found.iter().any(waits), "{name} {optimised}: {found:#x?}");
        }
    }
}

#[test]
fn aarch64_loops_are_judged_the_same_way() {
    let judge = |words: &[u32]| {
        let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let found = loops(&disassemble(Arch::Aarch64, &code, 0x1000));
        assert_eq!(found.len(), 1, "{found:#x?}");
        (found[0].looks, found[0].acquires)
    };
    // ldr w1, [x0]; cbz w1, back
    assert_eq!(judge(&[0xb940_0001, 0x34ff_ffe1]), (true, false));
    // ldar w1, [x0]; cmp w1, w2; b.ne back
    assert_eq!(judge(&[0x88df_fc01, 0x6b02_003f, 0x54ff_ffc1]), (true, false));
    // ldr x0, [x0]; cbnz x0, back: a list
    assert_eq!(judge(&[0xf940_0000, 0xb5ff_ffe0]), (false, false));
    // ldrb w1, [x0], #1; cbnz w1, back: strlen
    assert_eq!(judge(&[0x3840_1401, 0x35ff_ffe1]), (false, false));
    // ldaxr w1, [x0]; cbnz w1, back; stxr w3, w2, [x0]; cbnz w3, back
    let code: Vec<u8> =
        [0x885f_fc01_u32, 0x35ff_ffe1, 0x8803_7c02, 0x35ff_ffa3].iter().flat_map(|w| w.to_le_bytes()).collect();
    let found = loops(&disassemble(Arch::Aarch64, &code, 0x1000));
    assert!(found.iter().any(|l| l.acquires), "{found:#x?}");
    // ldxr w1, [x0]; add w1, w1, #1; stxr w3, w1, [x0]; cbnz w3, back: an atomic addition
    assert_eq!(judge(&[0x885f_7c01, 0x1100_0421, 0x8803_7c01, 0x35ff_ffa3]), (false, false));
}

#[test]
fn any_bytes_can_be_disassembled() {
    let mut state = 1u32;
    let bytes: Vec<u8> = (0..1 << 16)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let all = disassemble(arch, &bytes, u64::MAX - 0x8000);
        assert_eq!(all.iter().map(|i| usize::from(i.len)).sum::<usize>(), bytes.len());
        loops(&all);
        for (i, at) in all.iter().scan(0, |at, i| Some((i, std::mem::replace(at, *at + usize::from(i.len))))) {
            assert!(!text(arch, &bytes[at..], i.address).is_empty());
        }
    }
}

#[test]
fn what_loops_are_judged_by() {
    let x86 = |code: &[u8]| one(Arch::X86_64, code).operation;
    assert_eq!(x86(&[0x48, 0xf7, 0xf1]), Operation::Divide, "div %rcx");
    assert_eq!(x86(&[0x0f, 0xb6, 0x07]), Operation::Move, "movzbl (%rdi),%eax");
    assert_eq!(x86(&[0x48, 0x0f, 0x45, 0xc1]), Operation::Move, "cmovne %rcx,%rax");
    assert_eq!(x86(&[0x66, 0x0f, 0x1f, 0x44, 0, 0]), Operation::Nothing, "nopw");
    assert_eq!(x86(&[0xf0, 0x0f, 0xba, 0x2f, 0]), Operation::SetBit, "lock btsl $0,(%rdi)");
    assert_eq!(x86(&[0x48, 0x8d, 0x47, 0xff]), Operation::Address, "lea -1(%rdi),%rax");
    let arm = |word: u32| one(Arch::Aarch64, &word.to_le_bytes()).operation;
    let text = |word: u32| text(Arch::Aarch64, &word.to_le_bytes(), 0x1000);
    for (word, name, operation) in [
        (0x9ac1_0800, "udiv ", Operation::Divide),
        (0x1ac1_0c00, "sdiv ", Operation::Divide),
        (0xaa01_03e0, "mov ", Operation::Move),
        (0xf940_0420, "ldr ", Operation::Move),
        (0xf8e0_8022, "swpal ", Operation::Exchange),
        (0x9100_0400, "add ", Operation::Add),
        (0xd503_201f, "nop", Operation::Nothing),
        (0x9b01_7c00, "mul ", Operation::Other),
    ] {
        assert_eq!(arm(word), operation, "{}", text(word));
        assert!(text(word).starts_with(name), "{}", text(word));
    }
    assert!(one(Arch::X86_64, &[0x48, 0x89, 0x44, 0x24, 0x08]).on_stack, "mov %rax,8(%rsp)");
    assert!(!one(Arch::X86_64, &[0x48, 0x89, 0x07]).on_stack, "mov %rax,(%rdi)");
}
