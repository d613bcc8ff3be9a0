//! `cargo xtask bench`: what recording, reading and generating load cost, beside others, side by side in one run.

mod groups;
mod job;
mod lab;
mod load;
mod pipe;
mod read;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::holdup::Holdup;
use crate::{take_number, take_option};

struct Bench {
    holdup: Holdup,
    rounds: usize,
    scratch: PathBuf,
    root: PathBuf,
    /// An idle server for generators that can't do without: `HOST:PORT`.
    cassandra: Option<String>,
    /// Of the servers only those whose name has this.
    load: Option<String>,
}

/// One bench.
type Run = fn(&Bench) -> Result<()>;

/// Runs the benches named in `args`, or all.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let holdup = Holdup::new(root, take_option(&mut args, "--holdup")?)?;
    let rounds = take_number(&mut args, "--rounds", 7)?;
    let cassandra = take_option(&mut args, "--cassandra")?;
    let load = take_option(&mut args, "--load")?;
    let scratch = root.join("target/bench");
    fs::create_dir_all(&scratch)?;
    let bench = Bench { holdup, rounds, scratch, root: root.to_owned(), cassandra, load };
    let known: [(&str, Run); 7] = [
        ("pipe", pipe::run),
        ("servers", servers::run),
        ("job", job::run),
        ("read", read::run),
        ("groups", groups::run),
        ("load", load::run),
        ("lab", lab::run),
    ];
    let unknown = args.iter().find(|a| !known.iter().any(|(name, _)| name == a));
    ensure!(unknown.is_none(), "no bench {}: pipe, servers, job, read, groups, load or lab", unknown.map_or("", |n| n));
    for (name, run) in known {
        if args.is_empty() || args.iter().any(|a| a == name) {
            run(&bench)?;
        }
    }
    Ok(true)
}

impl Bench {
    /// A file in the scratch folder, as text for command lines.
    fn file(&self, name: &str) -> String {
        self.scratch.join(name).to_str().expect("the repository's path is UTF-8").to_owned()
    }
}

/// The middle of `values`.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    f64::midpoint(middle(sorted.len().saturating_sub(1) / 2), middle(sorted.len() / 2))
}

/// The smallest of `values`.
fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
