//! `holdup fleet`: questions to a data set of many traces.

use std::process::ExitCode;

use holdup_fleet::{Chosen, Different, Engine, Manner, Place, Question, Rows, Shipped, Wanted, changes, ship};
use holdup_trace::Error;

use crate::cli::{Fleet, FleetDays, FleetDiff, FleetExample, FleetReport, FleetShip};
use crate::documents::fleet as documents;
use crate::text;
use crate::text::progress::Progress;
use crate::text::screen::say;

/// Runs the command.
pub fn run(command: &Fleet) -> anyhow::Result<ExitCode> {
    match command {
        Fleet::Report(args) => report(args),
        Fleet::Diff(args) => diff(args),
        Fleet::Example(args) => example(args),
        Fleet::Ship(args) => carry(args),
    }
}

fn report(FleetReport { days }: &FleetReport) -> anyhow::Result<ExitCode> {
    let found = asked(days, |engine, chosen| {
        engine.choose(chosen)?;
        engine.keep()?;
        let hosts = engine.ask(Question::Hosts)?;
        let seconds = |column| hosts.rows.iter().map(|row| hosts.get(row, column).number()).sum::<i64>() as f64 / 1e9;
        let table = |question: &Question| {
            let mut rows = engine.ask(*question)?;
            let of = rows.rows.len();
            rows.rows.truncate(days.top);
            Ok(documents::Table { name: question.name(), of, rows })
        };
        let mut different = Different::find(&hosts, &engine.ask(Question::HostCauses)?);
        different.truncate(days.top);
        Ok(documents::FleetReport {
            schema: "holdup.fleet-report/1",
            of: traces(engine)?,
            cpu_seconds: seconds("total_ns"),
            held_up: seconds("held_up_ns"),
            tables: Question::REPORT.iter().map(table).collect::<holdup_fleet::Result<_>>()?,
            different,
            days: engine.ask(Question::Days)?,
            course: engine.ask(Question::Course)?,
            hosts,
        })
    })?;
    show(days, &found, text::fleet::report)
}

fn diff(FleetDiff { days, at }: &FleetDiff) -> anyhow::Result<ExitCode> {
    let found = asked(days, |engine, chosen| {
        engine.choose(chosen)?;
        let of = traces(engine)?;
        let since = changes(engine, chosen, at.as_deref())?;
        let mut changes = since.changes.changes;
        changes.truncate(days.top);
        Ok(documents::FleetDiff {
            schema: "holdup.fleet-diff/1",
            of,
            at: since.day.unwrap_or_default(),
            tried: since.tried,
            hosts: since.changes.hosts,
            too_few: since.changes.too_few,
            changes,
        })
    })?;
    show(days, &found, text::fleet::diff)
}

fn example(args: &FleetExample) -> anyhow::Result<ExitCode> {
    let FleetExample { days, process, function, kind } = args;
    let wanted = Wanted { process: process.clone(), function: function.clone(), kind: kind.clone() };
    let found = asked(days, |engine, chosen| {
        engine.choose(chosen)?;
        engine.want(&wanted)?;
        let Rows { columns, mut rows } = engine.ask(Question::Example)?;
        rows.truncate(days.top);
        let of = traces(engine)?;
        Ok(documents::FleetExample { schema: "holdup.fleet-example/1", of, rows: Rows { columns, rows } })
    })?;
    show(days, &found, text::fleet::example)
}

fn carry(FleetShip { from, to, remove, patience }: &FleetShip) -> anyhow::Result<ExitCode> {
    let manner = Manner { remove: *remove, patience: *patience };
    let done = ship(from, to, manner).map_err(|e| told(e, to))?;
    let Some(Shipped { traces, bytes, incomplete, retries }) = done else {
        say!("holdup: another process is carrying from {} already", from.display());
        return Ok(ExitCode::SUCCESS);
    };
    let again = if retries > 0 { format!(", asked again {retries} times") } else { String::new() };
    say!("holdup: {traces} traces, {:.1} MB → {to}{again}", bytes as f64 / 1e6);
    if incomplete > 0 {
        say!(
            "note: {incomplete} traces are not complete and stay: somebody is writing them, or was killed; add them again"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the data set and asks it.
fn asked<T>(days: &FleetDays, ask: impl FnOnce(&Engine, &Chosen) -> holdup_fleet::Result<T>) -> anyhow::Result<T> {
    let all = Chosen::default();
    let chosen = Chosen {
        since: days.since.clone().unwrap_or(all.since),
        until: days.until.clone().unwrap_or(all.until),
        cut: all.cut,
    };
    let _progress = Progress::of_step("asking");
    let answer = Place::find(&days.dataset).and_then(Engine::open).and_then(|engine| ask(&engine, &chosen));
    answer.map_err(|e| told(e, &days.dataset))
}

fn traces(engine: &Engine) -> holdup_fleet::Result<documents::Traces> {
    let (since, until, hosts, traces) = engine.days()?.unwrap_or_default();
    Ok(documents::Traces { dataset: engine.name().to_owned(), since, until, hosts, traces })
}

fn told(error: holdup_fleet::Error, dataset: &str) -> anyhow::Error {
    match error {
        holdup_fleet::Error::Input(what) => Error::Input(what).into(),
        other => Error::Input(format!("{dataset}: {other}")).into(),
    }
}

fn show<T: serde::Serialize>(
    days: &FleetDays,
    found: &T,
    print: impl FnOnce(&T) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    if days.json {
        text::print_json(found)?;
    } else {
        print(found)?;
    }
    Ok(ExitCode::SUCCESS)
}
