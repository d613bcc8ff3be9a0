//! `holdup explain --spans`: why the slow ones were slow, on a page.

use std::io::Write;

use holdup_analysis::chain::Who;
use holdup_analysis::label::{count, duration};
use holdup_analysis::report::Confidence;
use holdup_analysis::spans::{Cause, Done, Group, NamedSpans, OneSpan, Piece, SingleSpan, SpanReport};
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
    writeln!(out, "{}", paragraph("  ", &headline(answer)))?;
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
            clean(&sentence(cause))
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

/// `The slowest 1 % (32 of 3,214, 96–141 ms) waited 93 ms for …; the others 0.2 ms.`
fn headline(answer: &SpanReport) -> String {
    let (slow, typical) = (&answer.slow, &answer.typical);
    let all = slow.count + typical.count;
    let share = 100.0 * slow.count as f64 / all.max(1) as f64;
    let range = if slow.count == 1 {
        duration(slow.max_s)
    } else {
        format!("{} to {}", duration(slow.min_s), duration(slow.max_s))
    };
    let share = if share >= 0.95 { format!("{share:.0} %") } else { format!("{share:.2} %") };
    let who = format!("the slowest {share} ({} of {}, {range})", count(slow.count), count(all));
    match answer.causes.first() {
        Some(cause) if answer.confidence != Confidence::Low => {
            clean(&format!("{who} {}; the others {}", verb(cause), duration(cause.typical_s))).into_owned()
        }
        Some(cause) => {
            clean(&format!("{who}: no single cause stands out; most of the difference is that they {}", verb(cause)))
                .into_owned()
        }
        None => format!("{who}: nothing is known of their time"),
    }
}

/// `waited 93 ms for `redis-server` in `keysCommand``.
fn verb(cause: &Cause) -> String {
    let (time, place) = (duration(cause.slow_s), place(&cause.function, &cause.source));
    let who = &cause.process;
    let tid = if cause.tid == 0 { String::new() } else { format!(" ({})", cause.tid) };
    match cause.what {
        Done::Ran => format!("ran {time}{place}"),
        Done::WaitedFor => format!("waited {time} for `{who}`{tid}, which ran{place}"),
        Done::Behind if who.is_empty() => format!("were ready for {time} before a CPU took them"),
        Done::Behind => format!("had no CPU for {time}, which `{who}` had"),
        Done::Disk => format!("waited {time} for the disk, at which `{who}` was{place}"),
        Done::Timer => format!("waited {time} for `{who}`{tid}, which slept{place}"),
        Done::Outside => format!("waited {time} for input of `{who}`{tid} from outside{place}"),
        Done::Interrupt => format!("waited {time} for a device{place}"),
        Done::Nobody => format!("waited {time} in `{who}`, and nobody ended it{place}"),
        Done::Circle => format!("waited {time} for threads that wait for each other{place}"),
        Done::Unknown => format!("did for {time} what is not known"),
    }
}

fn place(function: &str, source: &str) -> String {
    match (function, source) {
        ("", _) => String::new(),
        (function, "") => format!(" in `{function}`"),
        (function, source) => format!(" in `{function}` ({source})"),
    }
}

/// A line of the table.
fn sentence(cause: &Cause) -> String {
    let place = place(&cause.function, &cause.source);
    let tid = if cause.tid == 0 { String::new() } else { format!(" ({})", cause.tid) };
    let thread = if cause.thread.is_empty() || cause.thread == cause.process { "" } else { &cause.thread };
    let who = if thread.is_empty() {
        format!("`{}`{tid}", cause.process)
    } else {
        format!("`{}`{tid} of `{}`", thread, cause.process)
    };
    match cause.what {
        Done::Ran => format!("it ran{place}"),
        Done::WaitedFor => format!("{who} ran{place}"),
        Done::Behind if cause.process.is_empty() => "ready, and nobody had the CPU".to_owned(),
        Done::Behind => format!("no CPU: {who} had it"),
        Done::Disk => format!("the disk, asked by {who}{place}"),
        Done::Timer => format!("{who} slept{place}"),
        Done::Outside => format!("input of {who} from outside{place}"),
        Done::Interrupt => format!("a device, asked by {who}{place}"),
        Done::Nobody => format!("a wait of {who} that nobody ended{place}"),
        Done::Circle => format!("{who} waited for one that waits for it{place}"),
        Done::Unknown => "not known".to_owned(),
    }
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
    let cause = Cause {
        what: piece.what,
        process: piece.who.process.clone(),
        thread: piece.who.thread.clone(),
        tid: piece.who.tid,
        waited_at: Vec::new(),
        function: piece.function.clone(),
        source: String::new(),
        slow_s: 0.0,
        typical_s: 0.0,
        in_slow: 0,
    };
    format!("{} {}", letter(piece.what), sentence(&cause))
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
