//! What `holdup load` and `holdup lab` become.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    holdup::generator()
}
