//! `cargo xtask faults`: what is left of a recording when something goes wrong. Writes the table of docs/faults.md.

mod kills;
mod machine;
mod scene;
mod storms;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use scene::Scene;

/// What came of a fault.
pub struct Row {
    /// What was injected.
    what: &'static str,
    /// How often.
    times: usize,
    /// What was lost, in words.
    lost: String,
    /// How many of the results open, with `info` and with `explain`.
    open: usize,
    /// How many results there should be.
    results: usize,
    /// Whether nothing was lost that should not be.
    is_good: bool,
}

type Fault = fn(&Scene, usize) -> Result<Row>;

/// All faults, by the word that chooses them, and how often each is injected unless `--times` says it.
const FAULTS: [(&str, Fault, usize); 16] = [
    ("kill", kills::kill, 12),
    ("kill-ring", kills::kill_ring, 8),
    ("kill-converting", kills::kill_converting, 6),
    ("left-behind", kills::left_behind, 2),
    ("disk-full", machine::disk_full, 3),
    ("disk-full-ring", machine::disk_full_ring, 2),
    ("stopped", machine::stopped, 2),
    ("cpu-offline", machine::cpu_offline, 3),
    ("two", machine::two_recorders, 2),
    ("same-file", machine::same_file, 2),
    ("storm", storms::processes, 1),
    ("threads", storms::threads, 1),
    ("unlinked", storms::unlinked, 2),
    ("jit", storms::jit, 1),
    ("pid-reuse", storms::pid_reuse, 1),
    ("exec", storms::exec_chain, 1),
];

/// Runs those that `args` names, or all. Whether each was good.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let times: usize = crate::take_number(&mut args, "--times", 0)?;
    let table = crate::take_option(&mut args, "--table")?.map(PathBuf::from);
    let holdup =
        crate::take_option(&mut args, "--holdup")?.map_or_else(|| root.join("target/release/holdup"), PathBuf::from);
    for name in &args {
        ensure!(FAULTS.iter().any(|(word, ..)| word == name), "there is no fault {name}");
    }
    let scene = Scene::new(&holdup, &root.join("target/faults"))?;
    let mut rows = Vec::new();
    for (word, fault, usual) in FAULTS {
        if !args.is_empty() && !args.iter().any(|name| name == word) {
            continue;
        }
        eprintln!("{word} …");
        match fault(&scene, if times > 0 { times } else { usual }) {
            Ok(row) => {
                eprintln!("{}", line(&row));
                rows.push(row);
            }
            Err(e) => {
                eprintln!("{word}: {e:#}");
                rows.push(Row {
                    what: word,
                    times: 0,
                    lost: format!("not injected: {e:#}"),
                    open: 0,
                    results: 0,
                    is_good: false,
                });
            }
        }
    }
    let text = page(&rows);
    match table {
        Some(path) => fs::write(path, text)?,
        None => print!("{text}"),
    }
    Ok(rows.iter().all(|row| row.is_good && row.open == row.results))
}

fn line(row: &Row) -> String {
    let verdict = if row.is_good && row.open == row.results { "" } else { " **falls short**" };
    format!("| {} | {} | {}{verdict} | {} of {} |", row.what, row.times, row.lost, row.open, row.results)
}

fn page(rows: &[Row]) -> String {
    let mut text = String::from(
        "# Faults\n\nWhat is left of a recording when something goes wrong, as `cargo xtask faults --table docs/faults.md` found it on one machine. \
         The\npromise: what was recorded before is there, but at most the last round of the buffers (20 ms and what the machine is \
         late); what found\nno room is counted; and the result opens with `holdup info` and `holdup explain`.\n\n\
         | Injected | times | lost | opens |\n|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
    text
}
