//! The cost of one level of groups: count and sum of a column of 10 million rows, beside DuckDB on the same table.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use holdup_analysis::explore::Stop;
use holdup_analysis::explore::group::{Keys, tally};
use holdup_analysis::explore::relation::{Column, Data, Rows, Text, Unit};
use nix::sys::resource::{UsageWho, getrusage};

use super::{Bench, least};
use crate::table;

const ROWS: usize = 10_000_000;
const GROUPS: [u64; 3] = [100, 5_000, 25_000];

/// Prints lines of engine, groups and CPU seconds of the process, all threads together.
const DUCKDB: &str = "\
import sys, time, duckdb
csv, parquet, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = duckdb.connect()
db.execute(f\"create table t as select * from read_csv('{csv}', header=true, columns={{'k':'UINTEGER','v':'UBIGINT'}})\")
db.execute(f\"copy t to '{parquet}' (format parquet)\")
for threads in (1, 2):
    db.execute(f'set threads={threads}')
    for name, source in (('in memory', 't'), ('Parquet', f\"'{parquet}'\")):
        best = None
        for _ in range(rounds):
            start = time.process_time()
            rows = db.execute(f'select k, count(*), sum(v) from {source} group by k').fetchall()
            used = time.process_time() - start
            best = used if best is None else min(best, used)
        print(f'DuckDB {duckdb.__version__}, {name}, {threads} threads;{len(rows)};{best}')
";

pub fn run(bench: &Bench) -> Result<()> {
    let mut rows = Vec::new();
    for groups in GROUPS {
        eprintln!("groups: {groups}");
        let (ids, values) = data(groups);
        let (found, seconds) = ours(groups, &ids, &values, bench.rounds)?;
        rows.push(row("holdup", found, seconds));
        rows.extend(duckdb(bench, &ids, &values)?);
    }
    println!("\ngroup by one column of {ROWS} rows, count and sum, least of {} rounds", bench.rounds);
    table::print(&["engine", "groups", "CPU ms"], &rows);
    Ok(())
}

fn row(engine: &str, groups: usize, seconds: f64) -> Vec<String> {
    vec![engine.to_owned(), groups.to_string(), format!("{:.1}", seconds * 1e3)]
}

/// Keys of which few are frequent and many are rare, as functions are, and lengths of up to 16 ms.
fn data(groups: u64) -> (Vec<u32>, Vec<u64>) {
    let mut state = 1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let keys = (0..ROWS).map(|_| {
        let spread = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        (spread * spread * groups as f64) as u32
    });
    let ids: Vec<u32> = keys.collect();
    let values = (0..ROWS).map(|_| random() >> 40).collect();
    (ids, values)
}

fn cpu_seconds() -> Result<f64> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(used.user_time()) + seconds(used.system_time()))
}

/// Groups found, and CPU seconds.
fn ours(groups: u64, ids: &[u32], values: &[u64], rounds: usize) -> Result<(usize, f64)> {
    let values_of_keys: Vec<Arc<str>> = (0..groups).map(|g| format!("function_{g}").into()).collect();
    let data = Data::Text(Text { ids: ids.to_vec(), values: Arc::new(values_of_keys) });
    let column = Column { name: "function".to_owned(), unit: Unit::Text, doc: "", data };
    let (rows, stop) = (Rows::All(ROWS), Stop::default());
    let (mut found, mut seconds) = (0, Vec::new());
    for _ in 0..rounds {
        let start = cpu_seconds()?;
        let keys = Keys::of(&[&column], rows, &stop)?;
        let cells = tally(&keys, Some(values), rows, &stop)?;
        let present = cells.iter().filter(|c| c.rows > 0).count();
        let first = keys.first_rows(rows, present);
        seconds.push(cpu_seconds()? - start);
        found = cells.iter().zip(&first).filter(|(c, f)| c.rows > 0 && **f != u32::MAX).count();
    }
    Ok((found, least(&seconds)))
}

fn duckdb(bench: &Bench, ids: &[u32], values: &[u64]) -> Result<Vec<Vec<String>>> {
    let (csv, parquet) = (bench.file("groups.csv"), bench.file("groups.parquet"));
    let installed = Command::new("python3").args(["-c", "import duckdb"]).output().is_ok_and(|o| o.status.success());
    if !installed {
        println!("DuckDB: skipped, python3 has no module duckdb (pip install duckdb)");
        return Ok(Vec::new());
    }
    let mut out = BufWriter::new(File::create(&csv)?);
    writeln!(out, "k,v")?;
    ids.iter().zip(values).try_for_each(|(k, v)| writeln!(out, "{k},{v}"))?;
    out.flush()?;
    let output = Command::new("python3").args(["-c", DUCKDB, &csv, &parquet, &bench.rounds.to_string()]).output()?;
    anyhow::ensure!(output.status.success(), "DuckDB: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.split(';');
        Some(row(parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    Ok(lines.collect())
}
