//! What `holdup fleet` becomes.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    holdup::fleet()
}
