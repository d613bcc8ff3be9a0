//! The section for aarch64; the thread pointer is `tpidr_el0`.

use core::arch::asm;

use super::{CPU_ID, Cell, RSEQ_CS};

/// glibc's `__rseq_offset`, if it exists (2.35) and `__rseq_size` says that threads are registered.
pub fn registered() -> Option<isize> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: weak symbols have the address null where no library defines them; nothing is read through them here.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    // SAFETY: not null, hence glibc's constants of these types.
    unsafe { (!offset.is_null() && !size.is_null() && *size != 0).then(|| *offset) }
}

#[inline]
pub fn cpu_id(offset: isize) -> i32 {
    let cpu: i32;
    // SAFETY: reads the field `cpu_id` of this thread's own `struct rseq`.
    unsafe {
        asm!(
            "mrs {rseq}, tpidr_el0",
            "add {rseq}, {rseq}, {offset}",
            "ldr {cpu:w}, [{rseq}, #{CPU_ID}]",
            rseq = out(reg) _,
            offset = in(reg) offset,
            cpu = lateout(reg) cpu,
            CPU_ID = const CPU_ID,
            options(nostack, preserves_flags, readonly),
        );
    }
    cpu
}

/// Adds `n` to the cell of this CPU. `false`, with nothing added, if its number is not below `count`.
///
/// # Safety
/// `bank` has `count` cells that live as long as the call, and `offset` is what [`registered`] said.
#[inline]
pub unsafe fn add(bank: *mut Cell, count: u32, offset: isize, n: u64) -> bool {
    // SAFETY: writes only `rseq_cs` of this thread and, below the bound, a cell that the caller promised. The section
    // changes scratch registers and flags before its last instruction, so that it can be started again anywhere.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "3:",
            ".long 0, 0", // version, flags
            ".quad 4f, 5f - 4f, 6f",
            ".popsection",
            "mrs {rseq}, tpidr_el0",
            "add {rseq}, {rseq}, {offset}",
            "2:",
            "adrp {cell}, 3b",
            "add {cell}, {cell}, :lo12:3b",
            "str {cell}, [{rseq}, #{RSEQ_CS}]",
            "4:",
            "ldr {cpu:w}, [{rseq}, #{CPU_ID}]",
            "cmp {cpu:w}, {count:w}", // unsigned: a negative number, unregistered, is large
            "b.hs {outside}",
            "add {cell}, {bank}, {cpu}, lsl #7",
            "ldr {cpu}, [{cell}]",
            "add {cpu}, {cpu}, {n}",
            "str {cpu}, [{cell}]",
            "5:",
            ".pushsection .text.holdup_rseq_abort, \"ax\", %progbits",
            ".inst 0xd428bc00",
            "6:",
            "b 2b",
            ".popsection",
            rseq = out(reg) _,
            cell = out(reg) _,
            cpu = out(reg) _,
            offset = in(reg) offset,
            bank = in(reg) bank,
            count = in(reg) count,
            n = in(reg) n,
            outside = label { return false },
            RSEQ_CS = const RSEQ_CS,
            CPU_ID = const CPU_ID,
            options(nostack),
        );
    }
    true
}
