//! `holdup explain --spans`: why the slow ones were slow, on a page.

use std::io::Write;

use holdup_analysis::chain::Who;
use holdup_analysis::label::{count, duration};
use holdup_analysis::spans::{self, Cause, Done, Group, NamedSpans, OneSpan, Piece, SingleSpan, SpanReport};
use holdup_base::text::clean;

use super::screen::{self, AnsiColor, Style};
use super::wrap::paragraph;

const BOLD: Style = Style::BOLD;
const HOT: Style = Style::color(AnsiColor::Red).bold();
/// Lines of the table.
const ROWS: usize = 8;
/// Below this share of what a slow span takes a line tells nothing.
const SMALLEST: f64 = 0.005;
/// Columns of the line of time.
const WIDTH: usize = 60;

/// Prints the page on standard output.
pub fn print(answer: &SpanReport) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let (slow, typical) = (&answer.slow, &answer.typical);
    let t = &answer.trace;
    let seen: u64 = slow.count + typical.count;
    writeln!(out, "{BOLD}{}{BOLD:#}: {}, {} spans", clean(&t.path), clean(&answer.name), count(seen))?;
    writeln!(out, "{}", paragraph("  ", &clean(&spans::headline(answer))))?;
    writeln!(out, "{}", paragraph("  ", &account("slow", slow)))?;
    if typical.followed > 0 {
        writeln!(out, "{}", paragraph("  ", &account("others", typical)))?;
    }
    writeln!(out, "\n  {:>10} {:>10}  what the time of each was", "slow", "others")?;
    let told = |c: &&Cause| c.slow_s.max(c.typical_s) >= SMALLEST * slow.mean_s;
    for cause in answer.causes.iter().filter(told).take(ROWS) {
        writeln!(
            out,
            "  {:>10} {:>10}  {}",
            duration(cause.slow_s),
            duration(cause.typical_s),
            clean(&spans::of_cause(cause))
        )?;
    }
    if let Some(first) = answer.causes.first().filter(|c| c.waited_at.len() > 1) {
        let at = first.waited_at.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(" ← ");
        writeln!(out, "\n{}", paragraph("  It waited in  ", &clean(&at)))?;
    }
    let doubt = if answer.doubt.is_empty() { String::new() } else { format!(": {}", answer.doubt) };
    writeln!(out, "\n{}", paragraph("  Sure?  ", &clean(&format!("{}{doubt}", answer.confidence.name()))))?;
    writeln!(out, "\n  The longest")?;
    answer.worst.iter().try_for_each(|span| one(&mut out, span))?;
    others(&mut out, answer)?;
    Ok(())
}

/// Prints one span on standard output.
pub fn print_one(answer: &SingleSpan) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let (path, name) = (clean(&answer.trace.path), clean(&answer.name));
    writeln!(out, "{BOLD}{path}{BOLD:#}: {name}, span {}, {}", answer.span.id, answer.outcome)?;
    one(&mut out, &answer.span)
}

fn account(name: &str, group: &Group) -> String {
    let a = &group.account;
    let mut parts = vec![format!("ran {}", duration(a.ran_s)), format!("waited {}", duration(a.waited_s))];
    if a.ready_s > 0.0 {
        parts.push(format!("ready without a CPU {}", duration(a.ready_s)));
    }
    if a.unknown_s > 0.0 {
        parts.push(format!("not known {}", duration(a.unknown_s)));
    }
    let followed = if group.followed < group.count {
        format!(" ({} of them followed)", count(group.followed))
    } else {
        String::new()
    };
    let moved =
        if group.moved == 0 { String::new() } else { format!("; {} ended on another thread", count(group.moved)) };
    format!("{name}: {} each{followed}: {}{moved}", duration(group.mean_s), parts.join(", "))
}

fn one(out: &mut impl Write, span: &OneSpan) -> anyhow::Result<()> {
    let argument =
        if span.argument.is_empty() { String::new() } else { format!("  {}", clean(&shortened(&span.argument))) };
    writeln!(
        out,
        "\n  {HOT}{}{HOT:#} at {:.6} s, {}{argument}",
        duration(span.length_s),
        span.start_s,
        clean(&named(&span.who))
    )?;
    writeln!(out, "  {}", line_of_time(span))?;
    for piece in &span.pieces {
        let text =
            format!("+{:<10} {:>10}  {}", duration(piece.from_s), duration(piece.length_s), clean(&piece_text(piece)));
        writeln!(out, "{}", paragraph("    ", &text))?;
    }
    if span.rest_s > 0.0 {
        writeln!(out, "     {:<10} {:>10}  shorter pieces", "", duration(span.rest_s))?;
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}

/// One letter for each column: what most of its time was.
fn line_of_time(span: &OneSpan) -> String {
    let mut line = vec!['·'; WIDTH];
    for piece in &span.pieces {
        let at = |s: f64| ((s / span.length_s.max(f64::MIN_POSITIVE)) * WIDTH as f64).round() as usize;
        let (from, to) = (at(piece.from_s).min(WIDTH - 1), at(piece.from_s + piece.length_s).min(WIDTH));
        line[from..to.max(from + 1)].fill(letter(piece.what));
    }
    line.into_iter().collect()
}

fn letter(what: Done) -> char {
    match what {
        Done::Ran => '█',
        Done::WaitedFor => '╳',
        Done::Behind => '▒',
        Done::Disk => '◍',
        Done::Timer => '~',
        Done::Outside => '⇠',
        _ => '?',
    }
}

fn piece_text(piece: &Piece) -> String {
    format!("{} {}", letter(piece.what), spans::of_piece(piece))
}

fn named(who: &Who) -> String {
    match who.thread == who.process {
        true => format!("`{}` ({})", who.process, who.tid),
        false => format!("`{}` ({}) of `{}`", who.thread, who.tid, who.process),
    }
}

fn others(out: &mut impl Write, answer: &SpanReport) -> anyhow::Result<()> {
    let other: Vec<&NamedSpans> = answer.names.iter().filter(|n| n.name != answer.name).collect();
    let own = answer.names.iter().find(|n| n.name == answer.name);
    if let Some(open) = own.map(|n| n.open).filter(|&open| open > 0) {
        writeln!(out, "\n{}", paragraph("  note: ", &format!("{} more were not seen from begin to end", count(open))))?;
    }
    if !other.is_empty() {
        let names: Vec<String> =
            other.iter().take(6).map(|n| format!("{} ({})", clean(&n.name), count(n.count))).collect();
        writeln!(out, "\n{}", paragraph("  Other spans: ", &names.join(", ")))?;
    }
    Ok(())
}
