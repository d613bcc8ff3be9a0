//! One file for each command.

pub mod agent;
pub mod beside;
pub mod chain;
pub mod check;
pub mod cut;
pub mod demo;
pub mod diff;
pub mod disasm;
pub mod explain;
pub mod export;
mod flame;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod flight;
pub mod info;
pub mod lab;
pub mod load;
pub mod mcp;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod scale;
pub mod schema;
pub mod shell;
mod ship;
pub mod spans;
pub mod table;
pub mod threads;
pub mod top;
pub mod view;

/// The command line contradicts itself in a way that only the command can tell.
#[derive(Debug)]
pub struct Usage(pub String);

impl Usage {
    /// A command that `program`, which does some of the workbench's, does not do.
    pub fn of_the_workbench(program: &str) -> Self {
        Usage(format!("{program} is a part of holdup: run `holdup` instead"))
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
