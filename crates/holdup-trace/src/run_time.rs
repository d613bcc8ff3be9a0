//! Code that a program makes, or interprets, while it runs: no file has it.

/// Where functions of interpreters lie, by their number: no processor has such addresses, so that they are told from code.
const INTERPRETED: u64 = 0xa000_0000_0000_0000;

/// The address of the frames of an interpreter's function, in any address space but the kernel's.
pub fn interpreted_address(function: u32) -> u64 {
    INTERPRETED | u64::from(function)
}

/// Whether a user address is that of an interpreter's function: there is no code of it.
pub fn is_interpreted(address: u64) -> bool {
    address >> 32 == INTERPRETED >> 32
}

/// The module of functions that were compiled while the program ran, and whose names are known.
pub const COMPILED: &str = "[jit]";

/// Whether code in memory of this name was written there by the process itself. Stack and heap, which hold none, keep their names.
///
/// The kernel tells of the same file by its path, as `/memfd:code`, and by its name alone.
pub fn is_made_at_run_time(path: &str) -> bool {
    ["//anon", "[anon", "/memfd:", "memfd:"].iter().any(|begin| path.starts_with(begin))
}
