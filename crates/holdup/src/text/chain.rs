//! The hops of `holdup chain`, and the hand-over list.

use std::io::Write;

use holdup_analysis::chain::{Chain, Did, Edge, EndKind, Handoff, Handoffs, Hop, Share, WaitFacts, Who};
use holdup_analysis::label::duration;
use holdup_analysis::report::LockFacts;
use holdup_base::text::clean;

use super::detail::stack;
use super::screen::{self, AnsiColor, Style};
use super::wrap::{cut, paragraph};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
const HOT: Style = Style::color(AnsiColor::Red).bold();

/// Prints a chain on standard output, at most `top` of its hops.
pub fn print(chain: &Chain, top: usize) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    head(&mut out, chain)?;
    let last = chain.hops.len().saturating_sub(1);
    let shown = |i: usize| i + 1 < top || i == last || i == chain.end.main_hop;
    let mut left_out = Vec::new();
    for (i, hop) in chain.hops.iter().enumerate() {
        if !shown(i) {
            left_out.push(hop);
            continue;
        }
        gap(&mut out, &mut left_out)?;
        writeln!(out)?;
        print_hop(&mut out, chain, i, hop)?;
    }
    end(&mut out, chain)?;
    shares(&mut out, chain)?;
    if let Some(handoffs) = &chain.handoffs {
        writeln!(out)?;
        list(&mut out, handoffs, chain)?;
    }
    Ok(())
}

fn head(out: &mut impl Write, chain: &Chain) -> std::io::Result<()> {
    let t = &chain.trace;
    let focus = if t.focus.is_empty() { "whole machine".to_owned() } else { format!("focus: {}", clean(&t.focus)) };
    writeln!(out, "{BOLD}{}{BOLD:#}  {:.3} s on {} CPUs, {focus}", t.path, t.duration_s, t.cpus)?;
    let mut facts = Vec::new();
    if let Some(at) = chain.at_s {
        facts.push(format!("at {at:.6} s; {} of the focus waited then, too", threads(chain.also_waiting)));
    }
    if !chain.note.is_empty() {
        facts.push(chain.note.clone());
    }
    if facts.is_empty() { Ok(()) } else { writeln!(out, "{}", paragraph("  ", &facts.join("; "))) }
}

fn threads(n: usize) -> String {
    if n == 1 { "1 other thread".to_owned() } else { format!("{n} other threads") }
}

/// One line for the hops that are not shown.
fn gap(out: &mut impl Write, hops: &mut Vec<&Hop>) -> std::io::Result<()> {
    if !hops.is_empty() {
        let seconds: f64 = hops.iter().map(|h| h.part_s + h.alone_s).sum();
        writeln!(
            out,
            "\n{DIM}  … {} more hops, {} of the first wait (--top shows them){DIM:#}",
            hops.len(),
            duration(seconds)
        )?;
        hops.clear();
    }
    Ok(())
}

fn print_hop(out: &mut impl Write, chain: &Chain, i: usize, hop: &Hop) -> std::io::Result<()> {
    let style = if i == chain.end.main_hop { HOT } else { BOLD };
    let indent = format!("{}. ", i + 1);
    writeln!(out, "{style}{}{style:#}", paragraph(&indent, &title(chain, i, hop)))?;
    if let Some(wait) = &hop.wait {
        print_wait(out, wait, i == 0, chain.hops.get(i + 1))?;
    }
    if hop.alone_s > 0.0 {
        let text = format!("no thread ended that wait: {}", share(chain, hop.alone_s));
        writeln!(out, "{}", paragraph("   alone      ", &text))?;
    }
    if let Some(hot) = hop.did.instruction.as_ref().filter(|h| !h.text.is_empty() && i == chain.end.main_hop) {
        let share = 100.0 * hot.share;
        writeln!(
            out,
            "   hottest    {} `{}` ({share:.0} % of {} samples)",
            hot.address,
            clean(&hot.text),
            hop.did.samples
        )?;
    }
    Ok(())
}

fn title(chain: &Chain, i: usize, hop: &Hop) -> String {
    if i == 0 {
        let wait = hop.wait.as_ref().map_or(String::new(), waited);
        return format!("{} {wait}", name(&hop.who));
    }
    let verb = match hop.by {
        Edge::Owner => "held the lock; it",
        Edge::Before => "before that",
        Edge::Creator => "created it;",
        Edge::Start | Edge::Waker => "readied it;",
    };
    let share = share(chain, hop.part_s);
    let mark = if hop.at { " ◂ at the time asked for" } else { "" };
    format!("{} {verb} {}: {share}{mark}", name(&hop.who), activity(&hop.did))
}

fn share(chain: &Chain, part: f64) -> String {
    let whole = chain.hops.first().and_then(|h| h.wait.as_ref()).map_or(0.0, |w| w.waited_s);
    if whole > 0.0 {
        format!("{:.1} % of the first wait", (100.0 * part / whole).min(100.0))
    } else {
        "no time".to_owned()
    }
}

fn activity(did: &Did) -> String {
    let mut parts = Vec::new();
    if did.ran_s > 0.0 || did.ready_s + did.waited_s <= 0.0 {
        let place = place(&did.function, &did.source);
        parts.push(format!("ran {}{place}", duration(did.ran_s)));
    }
    if did.ready_s > 0.0 {
        parts.push(format!("was ready for {}{}", duration(did.ready_s), behind(did)));
    }
    if did.waited_s > 0.0 {
        parts.push(format!("waited {}", duration(did.waited_s)));
    }
    parts.join(", ")
}

fn behind(did: &Did) -> String {
    match did.behind.first() {
        Some(b) => format!(" behind `{}` ({})", b.who.thread, b.who.tid),
        None => String::new(),
    }
}

fn place(function: &str, source: &str) -> String {
    match (function, source) {
        ("", _) => String::new(),
        (function, "") => format!(" in `{function}`"),
        (function, source) => format!(" in `{function}` ({source})"),
    }
}

/// `waited 693.1 ms for the futex 0x7ffc…`
fn waited(wait: &WaitFacts) -> String {
    let what = match &wait.lock {
        Some(lock) => format!("for the {}", lock_name(lock)),
        None => format!("({})", wait.kind),
    };
    let place = if wait.function.is_empty() { String::new() } else { format!(" in `{}`", wait.function) };
    format!("waited {} {what}{place}", duration(wait.waited_s))
}

fn lock_name(lock: &LockFacts) -> String {
    if lock.name.is_empty() {
        format!("{} {}", lock.kind.name(), lock.address)
    } else {
        format!("lock `{}`", lock.name)
    }
}

fn print_wait(out: &mut impl Write, wait: &WaitFacts, first: bool, next: Option<&Hop>) -> std::io::Result<()> {
    let until = if wait.open { "the end of the trace".to_owned() } else { format!("{:.6} s", wait.woken_s) };
    let what = if first { String::new() } else { format!("{}; ", waited(wait)) };
    let span = format!("{what}from {:.6} s to {until}{}", wait.start_s, number(wait));
    let label = if first { "when" } else { "before" };
    writeln!(out, "{}", paragraph(&format!("   {label:<10} "), &span))?;
    stack(out, "waited at", &wait.stack)?;
    if !wait.open {
        let by = match next.filter(|n| n.by == Edge::Waker) {
            Some(next) => name(&next.who),
            None => wait.ended_by.clone(),
        };
        let ready = format!("{by} at {:.6} s; ready for {} before it ran", wait.woken_s, duration(wait.ready_s));
        writeln!(out, "{}", paragraph("   readied by ", &ready))?;
        stack(out, "readied at", &wait.waker_stack)?;
    }
    Ok(())
}

fn name(who: &Who) -> String {
    if who.thread == who.process || who.process.is_empty() {
        format!("`{}` ({})", who.thread, who.tid)
    } else {
        format!("`{}` ({}) of `{}`", who.thread, who.tid, who.process)
    }
}

fn end(out: &mut impl Write, chain: &Chain) -> std::io::Result<()> {
    let end = &chain.end;
    writeln!(out)?;
    let text = if end.part_s > 0.0 { format!("{}: {}", end.text, share(chain, end.part_s)) } else { end.text.clone() };
    writeln!(out, "{}", paragraph("  ■ ", &text))?;
    let Some(main) = chain.hops.get(end.main_hop).filter(|h| end.main_share > 0.0 && h.part_s > h.alone_s) else {
        return Ok(());
    };
    let function = place(&main.did.function, &main.did.source);
    let share = 100.0 * end.main_share.min(1.0);
    writeln!(
        out,
        "{HOT}{}{HOT:#}",
        paragraph(
            "  → ",
            &format!("{share:.1} % of the wait is hop {}: {}{function}", end.main_hop + 1, name(&main.who))
        )
    )
}

/// What the whole wait was, where more than one hop has a part in it.
fn shares(out: &mut impl Write, chain: &Chain) -> std::io::Result<()> {
    const SHOWN: usize = 8;
    if chain.shares.len() < 2 {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}The whole wait{BOLD:#}")?;
    for s in chain.shares.iter().take(SHOWN) {
        let times = if s.times > 1 { format!(", {} times", s.times) } else { String::new() };
        let what = format!("{}{}: {}{times}", did(s), place(&s.function, ""), duration(s.part_s));
        let who = if s.who.thread.is_empty() { "?".to_owned() } else { name(&s.who) };
        writeln!(out, "{}", paragraph(&format!("  {:>5.1} %  ", 100.0 * s.share), &format!("{who} {what}")))?;
    }
    let rest: f64 = chain.shares.iter().skip(SHOWN).map(|s| s.share).sum();
    if rest > 0.0 { writeln!(out, "  {:>5.1} %  {} others", 100.0 * rest, chain.shares.len() - SHOWN) } else { Ok(()) }
}

fn did(share: &Share) -> &'static str {
    match share.what {
        EndKind::Running => "ran",
        EndKind::Runnable => "could run, and had no CPU",
        EndKind::Stopped => "was stopped, or frozen",
        EndKind::Disk => "waited for a disk",
        EndKind::Timer => "waited for a timer",
        EndKind::Network => "waited for the network",
        EndKind::Input => "waited for input from outside",
        EndKind::Interrupt => "waited for an interrupt",
        EndKind::Nobody => "waited, and nobody ended it",
        EndKind::Circle => "is in a circle of threads that wait for each other",
        EndKind::Lost | EndKind::Unknown => "is not known to have done anything",
        EndKind::Cut => "is not followed so far back",
    }
}

fn list(out: &mut impl Write, handoffs: &Handoffs, chain: &Chain) -> std::io::Result<()> {
    let lock =
        handoffs.lock.as_ref().map_or("a lock without a known address".to_owned(), |l| format!("the {}", lock_name(l)));
    let all = format!(
        "{} hand-overs of {lock} from {:.6} s to {:.6} s, while somebody always waited; {} in the whole trace",
        handoffs.total, handoffs.from_s, handoffs.to_s, handoffs.in_trace
    );
    writeln!(out, "{BOLD}{}{BOLD:#}", paragraph("", &all))?;
    if handoffs.list.is_empty() {
        return Ok(());
    }
    let widest = |of: fn(&Handoff) -> String| handoffs.list.iter().map(|h| of(h).chars().count()).max().unwrap_or(0);
    let (from, to) = (widest(giver).max(10), widest(|h| short(&h.to)).max(6));
    writeln!(
        out,
        "{DIM}  {:>11}  {:<from$}  {:<to$}  {:>8}  {:>8}  {:>8}  {:>6}{DIM:#}",
        "at", "let go by", "got by", "waited", "hand-off", "held", "queue"
    )?;
    let own = chain.hops.first().and_then(|h| h.wait.as_ref()).and_then(|w| w.id);
    for h in &handoffs.list {
        let held = h.held_s.map_or("–".to_owned(), duration);
        let style = if h.wait.is_some() && h.wait == own { HOT } else { Style::PLAIN };
        writeln!(
            out,
            "{style}  {:>9.6} s  {:<from$}  {:<to$}  {:>8}  {:>8}  {held:>8}  {:>6}{style:#}",
            h.t_s,
            giver(h),
            short(&h.to),
            duration(h.waited_s),
            duration(h.handoff_s),
            h.waiting
        )?;
    }
    let behind = handoffs.total.saturating_sub(handoffs.skipped + handoffs.list.len());
    if handoffs.skipped + behind > 0 {
        writeln!(out, "{DIM}  {} more before, {behind} more after these{DIM:#}", handoffs.skipped)?;
    }
    let doc = "waited: from blocking until woken; hand-off: from woken to running; held: from running until it woke the next (– it woke nobody); queue: who still waited";
    writeln!(out, "{DIM}{}{DIM:#}", paragraph("  ", doc))
}

fn giver(h: &Handoff) -> String {
    h.from.as_ref().map_or_else(|| clean(&h.ended_by).into_owned(), short)
}

/// Short enough for two of them in a row of the list.
fn short(who: &Who) -> String {
    cut(&format!("{} ({})", who.thread, who.tid), 21)
}

/// For `--wait`, if it is known.
fn number(wait: &WaitFacts) -> String {
    wait.id.map_or(String::new(), |id| format!(" (wait {id})"))
}
