//! The program `holdup`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    holdup::workbench()
}
