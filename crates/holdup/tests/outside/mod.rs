//! The built binary, as one who types its name has it, without settings.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub fn holdup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.stdin(Stdio::null()).env("XDG_CONFIG_HOME", "/nowhere");
    command
}

pub fn run(args: &[&str]) -> Output {
    holdup().args(args).output().expect("the binary starts")
}

pub fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

pub fn code(o: &Output) -> i32 {
    assert!(!err(o).contains("panicked"), "{}", err(o));
    o.status.code().expect("no signal")
}

pub fn json(o: &Output) -> Value {
    assert_eq!(code(o), 0, "{}", err(o));
    serde_json::from_slice(&o.stdout).expect("json")
}
