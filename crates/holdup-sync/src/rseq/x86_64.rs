//! The section for x86-64; the thread pointer is `fs:0`.

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
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
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
            "mov {cpu:e}, dword ptr fs:[{offset} + {CPU_ID}]",
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
    // changes one scratch register and flags before its last instruction, so that it can be started again anywhere.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "3:",
            ".long 0, 0", // version, flags
            ".quad 4f, 5f - 4f, 6f",
            ".popsection",
            "2:",
            "lea {cell}, [rip + 3b]",
            "mov qword ptr fs:[{offset} + {RSEQ_CS}], {cell}",
            "4:",
            "mov {cell:e}, dword ptr fs:[{offset} + {CPU_ID}]",
            "cmp {cell:e}, {count:e}", // unsigned: a negative number, unregistered, is large
            "jae {outside}",
            "shl {cell}, 7",
            "add qword ptr [{bank} + {cell}], {n}",
            "5:",
            ".pushsection .text.holdup_rseq_abort, \"ax\", @progbits",
            ".byte 0x0f, 0xb9, 0x3d", // with the signature one ud1 instruction
            ".long 0x53053053",
            "6:",
            "jmp 2b",
            ".popsection",
            cell = out(reg) _,
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
