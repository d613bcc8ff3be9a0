//! Parquet files of a made trace, read by pyarrow, DuckDB and polars where they are.

#![allow(missing_docs)]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdup_export::parquet::{Folder, write};
use holdup_synth::{Shape, Spec, generate};
use holdup_testing::{Need, has};
use holdup_trace::{Destination, Table, Trace};
use serde_json::Value;

struct Into(PathBuf);

impl Folder for Into {
    fn file(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(BufWriter::new(File::create_new(self.0.join(name))?)))
    }
}

fn made(events: u64) -> Trace {
    let spec = Spec { shape: Shape::Lock, cpus: 4, threads: 24, events, seed: 7, losses: 1 };
    generate(&spec, &Destination::Memory).unwrap().trace
}

fn exported(trace: &Trace) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(trace, &mut Into(folder.path().to_owned())).unwrap();
    folder
}

/// What a script says of a folder, if its modules are on this machine.
#[track_caller]
fn python(modules: &str, script: &str, folder: &Path) -> Option<Value> {
    let is_here = Command::new("python3").args(["-c", &format!("import {modules}")]).output();
    let is_here = is_here.is_ok_and(|o| o.status.success());
    if !has(Need::Other { name: &format!("Python with {modules}"), is_here }) {
        return None;
    }
    let o = Command::new("python3").args(["-c", script]).arg(folder).output().unwrap();
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    Some(serde_json::from_slice(&o.stdout).unwrap())
}

/// What the columns of the switches come to, by the trace itself.
fn sums(trace: &Trace) -> [u64; 5] {
    let mut sums = [0; 5];
    for row in trace.switches.iter() {
        let row = row.unwrap();
        let all = [row.t.nanos(), row.cpu.0.into(), row.prev.0.into(), row.next.0.into(), u64::from(row.state.code())];
        sums.iter_mut().zip(all).for_each(|(sum, value)| *sum += value);
    }
    sums
}

#[test]
fn every_table_has_a_file() {
    let trace = Trace::default();
    let folder = exported(&trace);
    let mut names: Vec<String> = holdup_trace::table_docs().iter().map(|t| format!("{}.parquet", t.name)).collect();
    names.push("meta.json".into());
    names.sort();
    let mut there: Vec<String> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    assert_eq!(there, names);
    for name in names.iter().filter(|n| n.ends_with(".parquet")) {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }
}

#[test]
fn pyarrow_reads_every_row() {
    let trace = made(1_200_000);
    let folder = exported(&trace);
    let script = r#"
import sys, json, glob, os, pyarrow.parquet as pq, pyarrow.compute as pc
found = {}
for path in glob.glob(sys.argv[1] + "/*.parquet"):
    table = pq.read_table(path)
    table.validate(full=True)
    fields = {f.name: [str(f.type), f.metadata[b"unit"].decode(), f.metadata[b"doc"].decode()] for f in table.schema}
    found[os.path.basename(path)[:-8]] = {"rows": table.num_rows, "fields": fields, "groups": pq.ParquetFile(path).num_row_groups}
s = pq.read_table(sys.argv[1] + "/switch.parquet")
found["sums"] = [pc.sum(s[c]).as_py() for c in ["t", "cpu", "prev", "next", "state"]]
found["syscalls"] = sorted(set(s["syscall"].to_pylist()))
found["threads"] = pq.read_table(sys.argv[1] + "/thread.parquet").select(["id", "tid", "name", "end"]).to_pylist()
stats = pq.ParquetFile(sys.argv[1] + "/switch.parquet").metadata.row_group(0).column(0).statistics
found["first"] = [stats.min, stats.max]
print(json.dumps(found))
"#;
    let Some(found) = python("pyarrow.parquet", script, folder.path()) else { return };
    for (name, rows) in trace.row_counts() {
        assert_eq!(found[&name]["rows"], rows, "{name}");
    }
    assert_eq!(found["switch"]["groups"], trace.switches.rows().div_ceil(1 << 20));
    for doc in holdup_trace::table_docs() {
        for (column, of) in doc.columns.iter().zip(&doc.types) {
            let field = &found[doc.name]["fields"][column.name];
            let of = if column.unit == "string" { "string".to_owned() } else { of.to_lowercase() };
            assert_eq!(field, &serde_json::json!([of, column.unit, column.doc.trim()]), "{}.{}", doc.name, column.name);
        }
    }
    assert_eq!(found["sums"], serde_json::json!(sums(&trace)));
    let mut calls: Vec<i16> = trace.switches.iter().map(|row| row.unwrap().syscall).collect();
    calls.sort_unstable();
    calls.dedup();
    assert!(calls.contains(&-1));
    assert_eq!(found["syscalls"], serde_json::json!(calls));
    for (i, row) in trace.threads.rows().enumerate() {
        let there = serde_json::json!({"id": i, "tid": row.tid, "name": trace.text(row.name), "end": row.end.nanos()});
        assert_eq!(found["threads"][i], there);
    }
    let mut first = trace.switches.iter().take(1 << 20).map(|row| row.unwrap().t.nanos());
    let least = first.next().unwrap();
    assert_eq!(found["first"], serde_json::json!([least, first.max().unwrap()]));
}

#[test]
fn duckdb_and_polars_read_the_same() {
    let trace = made(100_000);
    let folder = exported(&trace);
    let duckdb = r#"
import sys, json, duckdb
at = sys.argv[1]
sums = duckdb.sql(f"select sum(t), sum(cpu), sum(prev), sum(next), sum(state) from '{at}/switch.parquet'").fetchall()[0]
by = duckdb.sql(f"select t.name, count(*) from '{at}/sample.parquet' s join '{at}/thread.parquet' t on s.thread = t.id group by 1 order by 2 desc, 1").fetchall()
print(json.dumps({"sums": [int(x) for x in sums], "by": by}))
"#;
    let polars = r#"
import sys, json, polars as pl
s = pl.read_parquet(sys.argv[1] + "/switch.parquet")
by = pl.read_parquet(sys.argv[1] + "/sample.parquet").join(pl.read_parquet(sys.argv[1] + "/thread.parquet"), left_on="thread", right_on="id")
by = by.group_by("name").len().sort(["len", "name"], descending=[True, False])
print(json.dumps({"sums": [int(s[c].cast(pl.UInt64).sum()) for c in ["t", "cpu", "prev", "next", "state"]], "by": by.rows()}))
"#;
    let mut meant: Vec<(&str, u64)> = Vec::new();
    for row in trace.samples.iter() {
        let name = trace.text(trace.thread(row.unwrap().thread).unwrap().name);
        match meant.iter_mut().find(|(n, _)| *n == name) {
            Some((_, count)) => *count += 1,
            None => meant.push((name, 1)),
        }
    }
    meant.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let meant = serde_json::json!({"sums": sums(&trace), "by": meant});
    for (module, script) in [("duckdb", duckdb), ("polars", polars)] {
        if let Some(found) = python(module, script, folder.path()) {
            assert_eq!(found, meant, "{module}");
        }
    }
}
