//! `holdup info`: what is inside a trace.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use holdup_base::text::clean;
use holdup_trace::{Meta, RecorderCost, Table, Trace};
use serde_json::json;

use crate::cli::Info;
use crate::text::screen::{self, show};
use crate::{open, text};

/// Runs the command.
pub fn run(args: &Info) -> anyhow::Result<ExitCode> {
    if args.schema {
        print_schema(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.trace.as_deref().expect("clap requires a trace");
    let trace = open::open(path)?;
    if args.json {
        text::print_json(&summary(&trace, path)?)?;
    } else {
        print(&trace, &path.display().to_string())?;
        if open::is_spool(path) {
            show!(
                "note         this is a spool: it holds copies of stack memory, passwords too; holdup explain --keep makes a file without them"
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn processes(trace: &Trace) -> usize {
    let mut pids: Vec<u32> = trace.threads.pid.iter().copied().filter(|&p| p != 0).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.len()
}

fn summary(trace: &Trace, path: &Path) -> anyhow::Result<serde_json::Value> {
    let meta = &trace.meta;
    Ok(json!({
        "schema": "holdup.info/1",
        "format": meta.format,
        "start_ns": meta.start_ns,
        "duration_s": meta.duration().seconds(),
        "cpus": meta.cpus,
        "host": meta.host,
        "events": trace.row_counts(),
        "native_events": meta.native_events,
        "threads": trace.threads.len().saturating_sub(1),
        "processes": processes(trace),
        "command": meta.command,
        "exit_code": meta.exit_code,
        "hooks": meta.hooks,
        "recorder_cpu_s": meta.recorder_cpu_s,
        "recorder": meta.recorder,
        "stolen_cpu_s": meta.stolen_cpu_s,
        "min_wait_ns": meta.min_wait_ns,
        "sample_period_ns": meta.sample_period_ns,
        "user_stacks": {"taken": meta.user_stacks.0, "complete": meta.user_stacks.1},
        "kernel_addresses_hidden": meta.kernel_addresses_hidden,
        "holds_stack_memory": open::is_spool(path),
        "notes": meta.notes.iter().map(|note| &note.text).collect::<Vec<_>>(),
        "losses": trace.losses()?,
    }))
}

fn print(trace: &Trace, path: &str) -> anyhow::Result<()> {
    let meta = &trace.meta;
    let mut out = screen::stdout();
    let host = &meta.host;
    writeln!(out, "{path}: {}, {:.3} s on {} CPUs", clean(&meta.format), meta.duration().seconds(), meta.cpus)?;
    writeln!(out, "  host       {}", clean(&[&*host.name, &*host.os, &*host.arch, &*host.cpu].join(" ")))?;
    if !meta.command.is_empty() {
        let code = meta.exit_code.map_or(String::new(), |c| format!(" (exit code {c})"));
        writeln!(out, "  command    {}{code}", clean(&meta.command.join(" ")))?;
    }
    writeln!(out, "  threads    {} in {} processes", trace.threads.len().saturating_sub(1), processes(trace))?;
    for (name, rows) in trace.row_counts().iter().filter(|(_, n)| **n > 0) {
        writeln!(out, "  {name:<16} {rows:>12}")?;
    }
    if !meta.native_events.is_empty() {
        writeln!(out, "the source's own records:")?;
        for (name, count) in &meta.native_events {
            writeln!(out, "  {:<32} {count:>12}", clean(name))?;
        }
    }
    if meta.user_stacks.0 > 0 {
        let (taken, complete) = meta.user_stacks;
        writeln!(out, "stacks       {taken} taken, {:.1} % complete", 100.0 * complete as f64 / taken as f64)?;
    }
    if meta.recorder_cpu_s > 0.0 {
        print_cost(&mut out, meta)?;
    }
    if let Some(stolen) = meta.stolen_cpu_s.filter(|s| *s > 0.0) {
        let share = 100.0 * stolen / meta.cpu_seconds().max(1e-9);
        writeln!(out, "stolen       {stolen:.2} CPU s by the host, {share:.1} % of the machine")?;
    }
    if !meta.hooks.is_empty() {
        writeln!(out, "hooks        {}", clean(&meta.hooks.join(", ")))?;
    }
    if meta.kernel_addresses_hidden {
        writeln!(out, "kernel       names without addresses: the file's owner may not see them")?;
    }
    meta.notes.iter().try_for_each(|n| writeln!(out, "note         {}", clean(&n.text)))?;
    for l in trace.losses()? {
        let cpu = l.cpu.map_or("all CPUs".to_owned(), |c| format!("CPU {c}"));
        writeln!(out, "lost         {} {} on {cpu}, {:.6}..{:.6} s", l.count, clean(&l.what), l.from_s, l.to_s)?;
    }
    Ok(())
}

/// What recording cost, for what, and what was left out for that.
fn print_cost(out: &mut impl Write, meta: &Meta) -> std::io::Result<()> {
    let share = 100.0 * meta.recorder_cpu_s / meta.cpu_seconds().max(1e-9);
    let RecorderCost {
        budget,
        reader_s,
        ends_s,
        switches_s,
        samples_s,
        stacks_s,
        looks,
        sights,
        left_out,
        bare_samples,
        ..
    } = meta.recorder;
    write!(out, "recorder     {:.3} CPU s, {share:.2} % of the machine", meta.recorder_cpu_s)?;
    if budget <= 0.0 {
        return writeln!(out);
    }
    writeln!(out, ", of a budget of {} %", 100.0 * budget)?;
    let parts = [
        ("switches", switches_s),
        ("stacks of waits", stacks_s),
        ("samples", samples_s),
        ("writing", reader_s - ends_s),
        ("once, to begin and to end,", ends_s),
    ];
    let parts: Vec<String> = parts.iter().map(|(what, s)| format!("{what} {s:.3} s")).collect();
    writeln!(out, "             {}", parts.join(", "))?;
    writeln!(
        out,
        "             stacks of waits and wake-ups: {looks} taken, {sights} known by their site, {left_out} left out to keep to the budget ({:.1} % of their time)",
        100.0 * meta.recorder.unseen_share()
    )?;
    writeln!(out, "             samples without callers, for the same reason: {bare_samples}")
}

fn print_schema(as_json: bool) -> anyhow::Result<()> {
    let all = holdup_trace::table_docs();
    if as_json {
        let tables: Vec<_> = all
            .iter()
            .map(|table| {
                let columns: Vec<_> = table
                    .columns
                    .iter()
                    .zip(&table.types)
                    .map(|(c, t)| json!({"name": c.name, "type": t, "unit": c.unit, "doc": c.doc.trim()}))
                    .collect();
                json!({"name": table.name, "doc": table.doc, "columns": columns})
            })
            .collect();
        return text::print_json(&json!({"schema": "holdup.schema/1", "tables": tables}));
    }
    let mut out = screen::stdout();
    for table in all {
        writeln!(out, "{}: {}", table.name, table.doc)?;
        for (c, t) in table.columns.iter().zip(table.types) {
            writeln!(out, "  {:<14} {t:<8} {:<16} {}", c.name, c.unit, c.doc.trim())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
