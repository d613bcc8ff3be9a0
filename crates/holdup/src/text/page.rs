//! The page of `holdup explain`: one screen that a newcomer reads in ten seconds. What happened, what it ran, where the
//! others stood, what to try, when it was, how sure this is. All else is one command away ([`super::detail`]).

mod command;
mod cpu;
mod name;
mod rest;
mod strip;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use holdup_analysis::Explanation;
use holdup_analysis::label::duration;
use holdup_analysis::report::{Activity, Finding, FindingKind, Hot};
use holdup_trace::{Note, NoteKind};

use super::screen::{self, Style};
use super::wrap::{cut, paragraph, width};
pub use command::command;
pub use name::short;

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;

/// A hot function below this share of the time is not on the page.
const SMALLEST: f64 = 0.01;
/// Causes beside the first that get a line.
const FURTHER: usize = 3;
/// Lines of stalls, if no further cause takes one.
const STALLS: usize = 5;
/// Columns of a row's name, indented.
pub(super) const LABEL: usize = 12;

/// A page and what it needs beside the answer.
pub struct Page<'a> {
    /// The answer, with all findings.
    pub answer: &'a Explanation,
    /// Notes of the recording.
    pub notes: &'a [Note],
    /// The file to look into for more; `None` for a recording that is not kept.
    pub file: Option<&'a str>,
    /// Options that have to be repeated to see the same: `--focus make`.
    pub options: String,
}

impl Page<'_> {
    /// Prints the page on standard output.
    pub fn print(&self) -> io::Result<()> {
        let mut out = screen::stdout();
        self.write(&mut out)?;
        out.flush()
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let t = &self.answer.trace;
        let what = if t.focus.is_empty() { "the whole machine" } else { &t.focus };
        let cpus = if t.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", t.cpus) };
        let about = format!("{}, {} on {cpus}", cut(what, 40), duration(t.duration_s));
        let room = width().saturating_sub(about.chars().count() + 2).max(8);
        writeln!(out, "{}: {about}", cut(&t.path, room))?;
        let findings: Vec<&Finding> = self.answer.on_page().collect();
        match (self.answer.caveats.as_slice(), findings.as_slice()) {
            ([], []) => headline(out, &all_clear(self.answer))?,
            ([], [first, others @ ..]) => self.first(out, first, others)?,
            (caveats, findings) => {
                caveats.iter().try_for_each(|c| headline(out, &c.what))?;
                caveats.iter().find(|c| !c.record.is_empty()).map_or(Ok(()), |c| record(out, &c.record))?;
                if let Some(first) = findings.first() {
                    row(out, "Perhaps", &first.title)?;
                    places(out, first)?;
                }
            }
        }
        if self.shows_hot(&findings) {
            self.hot(out)?;
        }
        cpu::write(out, self.answer, &findings)?;
        self.sure(out, &findings)?;
        for further in findings.iter().skip(1).take(FURTHER) {
            let number = further.id.trim_start_matches('f');
            let label = if further.id == findings[1].id { "Also" } else { "" };
            row_as_is(out, label, &cut(&format!("{number}. {}", shortened(further)), width() - LABEL))?;
        }
        if let Some(rest) = self.rest(&findings) {
            row(out, if findings.len() < 2 { "Also" } else { "" }, &rest)?;
        }
        self.stalls(out, findings.len())?;
        self.more(out, &findings)
    }

    /// What stood still unusually long: what users feel and totals hide.
    fn stalls(&self, out: &mut impl Write, findings: usize) -> io::Result<()> {
        // One screen: what further causes leave.
        let mut room = STALLS - findings.saturating_sub(1).min(FURTHER);
        for (i, stall) in self.answer.stalls.iter().enumerate() {
            let text = shorten_in(&stall.title, &stall.culprit.function);
            let lines = paragraph(&" ".repeat(LABEL), &text).lines().count();
            if lines > room {
                break;
            }
            room -= lines;
            row(out, if i == 0 { "Stalls" } else { "" }, &text)?;
        }
        Ok(())
    }

    fn first(&self, out: &mut impl Write, f: &Finding, others: &[&Finding]) -> io::Result<()> {
        headline(out, &self.headline(f, others))?;
        places(out, f)?;
        let at_best = match f.gain_at_most {
            Some(gain) if (1.02..=50.0).contains(&gain) => {
                let all = self.answer.trace.duration_s;
                format!(" {}, at best {} → {}.", without(f.kind), duration(all), duration(all / gain))
            }
            _ => String::new(),
        };
        row(out, "Try", &(shorten_in(&f.advice, &f.culprit.function) + &at_best))?;
        strip::write(out, &self.answer.trace, &f.windows)
    }

    fn headline(&self, f: &Finding, others: &[&Finding]) -> String {
        match f.kind {
            FindingKind::IdleByDesign => {
                let how = if others.is_empty() { "Nothing" } else { "Little" };
                let idle = idle(self.answer);
                let nothing = format!("{idle:.0} % of the CPU time there was nothing to do");
                match f.culprit.activity {
                    // Others used the CPUs.
                    Activity::Slept if idle < 1.0 => shortened(f),
                    Activity::Slept => format!("{}; {nothing}", shortened(f)),
                    _ if idle < 1.0 => format!("{how} held it up; {}", shortened(f)),
                    _ => format!("{how} held it up: {nothing}; {}", shortened(f)),
                }
            }
            _ if self.answer.cpu_seconds.leaves_next_to_nothing(f) => {
                let idle = idle(self.answer);
                format!(
                    "Little held it up: {idle:.0} % of the CPU time there was nothing to do; the most: {}",
                    shortened(f)
                )
            }
            _ => shortened(f),
        }
    }

    /// Whether to list what ran: where nothing else explains the time.
    fn shows_hot(&self, findings: &[&Finding]) -> bool {
        let busy = self.answer.cpu_seconds.busy + self.answer.cpu_seconds.spin;
        let matters = busy > 0.05 * self.answer.cpu_seconds.total;
        let profile_only = self.answer.caveats.iter().any(|c| !c.record.is_empty());
        (matters || profile_only) && findings.first().is_none_or(|f| f.kind == FindingKind::CpuBound)
    }

    fn hot(&self, out: &mut impl Write) -> io::Result<()> {
        const SHOWN: usize = 5;
        for (i, hot) in self.answer.hot.iter().take(SHOWN).filter(|h| h.share >= SMALLEST).enumerate() {
            let label = if i == 0 { "What ran" } else { "" };
            let base = hot.module.rsplit('/').next().unwrap_or_default();
            let function = match (hot.function.as_str(), base) {
                ("", "") => "(no name)".to_owned(),
                ("", module) => format!("(in {module})"),
                (function, _) => short(function),
            };
            let line = format!("{:>3.0} %  {:<15}  {function}", 100.0 * hot.share, cut(&hot.process, 15));
            let with = below(hot).into_iter().map(|more| line.clone() + &more);
            let whole = with.into_iter().find(|line| line.chars().count() <= width() - LABEL);
            row_as_is(out, label, &whole.unwrap_or_else(|| cut(&line, width() - LABEL)))?;
        }
        Ok(())
    }

    fn sure(&self, out: &mut impl Write, findings: &[&Finding]) -> io::Result<()> {
        let health = &self.answer.health;
        let lost = match (health.lost_events, health.lost_stacks) {
            (0, 0) => "no events lost".to_owned(),
            (0, stacks) => format!("no events lost, {stacks} stacks lost"),
            (events, _) => format!("{events} events lost"),
        };
        let text = match findings.first().filter(|_| self.answer.caveats.is_empty()) {
            Some(f) if f.doubts.is_empty() => format!("{}; {lost}", f.confidence),
            Some(f) => format!("{}: {}", f.confidence, f.doubts.join("; ")),
            None if self.answer.caveats.iter().any(|c| !c.record.is_empty()) => format!("not about waits; {lost}"),
            None => lost,
        };
        let mut text = text + ".";
        if health.impossible > 0 {
            let n = health.impossible;
            let figures = if n == 1 { "1 figure was".to_owned() } else { format!("{n} figures were") };
            text += &format!(" {figures} more than time allows, and cut: please report this.");
        }
        if let Some(hidden) = self.hidden(findings) {
            text += &format!(" Not shown: {hidden} (--all).");
        }
        row(out, "Sure?", &text)?;
        self.nameless(out, findings)?;
        // What the caveats say, and what matters to few, stands below --all.
        let notes = self.notes.iter().filter(|note| note.kind == NoteKind::Plain);
        notes.take(2).try_for_each(|note| row(out, "Note", &note.text))
    }

    /// The places of idle waiting, which are not on the page, in words.
    fn hidden(&self, findings: &[&Finding]) -> Option<String> {
        let idle = |findings: &mut dyn Iterator<Item = &Finding>| {
            findings.filter(|f| f.kind == FindingKind::IdleByDesign).count()
        };
        match idle(&mut self.answer.findings.iter()) - idle(&mut findings.iter().copied()) {
            0 => None,
            1 => Some("1 place of idle waiting".to_owned()),
            n => Some(format!("{n} places of idle waiting")),
        }
    }

    fn more(&self, out: &mut impl Write, findings: &[&Finding]) -> io::Result<()> {
        let Some(file) = self.file else {
            return row(out, "More", "the same with --keep FILE keeps the recording, to ask it more");
        };
        let explain = format!("holdup explain {}{}", quoted(file), self.options);
        let mut questions = vec![(format!("{explain} --all"), "every cause, the sum, the notes")];
        if let Some(first) = findings.first() {
            let number = first.id.trim_start_matches('f');
            questions.insert(0, (format!("{explain} --why {number}"), "stacks, instructions, evidence"));
        }
        questions.push((format!("holdup view {}", quoted(file)), "all of it in the browser"));
        let columns = questions.iter().map(|(q, _)| q.chars().count()).max().unwrap_or(0);
        for (i, (question, answer)) in questions.iter().enumerate() {
            let whole = format!("{question:<columns$}   {answer}");
            let fits = whole.chars().count() + LABEL <= width();
            row_as_is(out, if i == 0 { "More" } else { "" }, if fits { &whole } else { question })?;
        }
        Ok(())
    }
}

/// What the bound assumes: work that is done under a lock, or by the last of many, has to be done nevertheless.
fn without(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::LockHeld | FindingKind::Imbalance => "If nobody had to wait for it",
        // What it takes to ask goes with it.
        FindingKind::Disk => "If nobody asked the disk there",
        _ => "If it took no time",
    }
}

/// What a function's time goes into where it is not its own code: in full, then shorter.
fn below(hot: &Hot) -> Vec<String> {
    let named = format!("{} {:.0} %", short(&hot.below), 100.0 * hot.below_share);
    let kernel = format!("kernel {:.0} %", 100.0 * hot.kernel);
    match hot.kernel {
        part if part >= 0.5 && !hot.below.is_empty() => vec![format!("  ({kernel}; {named})"), format!("  ({kernel})")],
        part if part >= 0.5 => vec![format!("  ({kernel})")],
        _ if hot.below_share >= 0.25 => vec![format!("  ({named})")],
        _ => Vec::new(),
    }
}

/// The share of the CPU time in which there was nothing to do, in percent.
fn idle(answer: &Explanation) -> f64 {
    let cpu = &answer.cpu_seconds;
    100.0 * cpu.no_work / cpu.total.max(f64::MIN_POSITIVE)
}

/// What to say where nothing is found and nothing is missing.
pub fn all_clear(answer: &Explanation) -> String {
    let idle = idle(answer);
    if idle >= 50.0 {
        format!("Nothing held it up: {idle:.0} % of the CPU time there was nothing to do.")
    } else {
        "Nothing held it up: no wait cost as much as 1 % of the CPU time.".to_owned()
    }
}

/// What the culprit did, before the name of the function; `None` where that is not the point.
pub fn verb(f: &Finding) -> Option<&'static str> {
    match f.kind {
        FindingKind::Disk | FindingKind::Network => Some("It waited"),
        FindingKind::SleepPolling => Some("It slept"),
        FindingKind::IdleByDesign => Some("It waits"),
        FindingKind::RunnableWhileIdle | FindingKind::Throttled | FindingKind::CpuStarved => None,
        _ => Some(match f.culprit.activity {
            Activity::Ran => "It ran",
            Activity::Slept => "It slept",
            Activity::Waited => "It waited",
        }),
    }
}

/// How to record what is missing, each command so that it can be copied.
fn record(out: &mut impl Write, lines: &[String]) -> io::Result<()> {
    for (i, line) in lines.iter().enumerate() {
        let label = if i == 0 { "Record it" } else { "or" };
        for (n, part) in for_a_shell(line, width() - LABEL).iter().enumerate() {
            row_as_is(out, if n == 0 { label } else { "" }, part)?;
        }
    }
    Ok(())
}

/// A command in lines of at most `columns`, where it has spaces.
fn for_a_shell(command: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in command.split(' ') {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() + 2 <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            line.push_str(" \\");
            lines.push(format!("  {word}"));
        }
    }
    lines
}

/// A sentence of its own.
fn headline(out: &mut impl Write, text: &str) -> io::Result<()> {
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    writeln!(out, "{BOLD}{}{BOLD:#}", paragraph("  ", &format!("{text}{end}")))
}

/// What it ran, and where the others stood.
fn places(out: &mut impl Write, f: &Finding) -> io::Result<()> {
    let (c, w) = (&f.culprit, &f.waiters);
    let Some(verb) = verb(f) else { return Ok(()) };
    // One line of the source tells where it is.
    let at = if c.source.is_empty() { c.called_at.as_str() } else { "" };
    let caller = format!("called by {} {at}", short(&c.called_by));
    let caller = if c.called_by.is_empty() { "" } else { caller.trim_end() };
    let names = w.names.join(", ");
    let (ran, hung) = (short(&c.function), short(&w.function));
    let columns = ran.chars().count().max(hung.chars().count()).clamp(8, 34);
    let sources = c.source.chars().count().max(w.source.chars().count());
    let line = |function: &str, source: &str, aside: &str| {
        if function.is_empty() {
            return cut(aside, width() - LABEL);
        }
        let aside = if aside.is_empty() { String::new() } else { format!("  ({aside})") };
        let line = format!("{:<columns$}  {source:<sources$}{aside}", cut(function, columns));
        cut(line.trim_end(), width() - LABEL)
    };
    if !c.function.is_empty() {
        row_as_is(out, verb, &line(&ran, &c.source, caller))?;
    }
    if let Some(command) = command(c) {
        row_as_is(out, "Command", &cut(&command, width() - LABEL))?;
    }
    if f.is_cause() && w.threads > 0 && !f.is_hardly_waited_for() && !(w.function.is_empty() && names.is_empty()) {
        row_as_is(out, "They hung", &line(&hung, &w.source, &names))?;
    }
    Ok(())
}

/// A title with short names of functions.
pub fn shortened(f: &Finding) -> String {
    shorten_in(&f.title, &f.culprit.function)
}

pub fn shorten_in(text: &str, function: &str) -> String {
    if function.is_empty() { text.to_owned() } else { text.replace(function, &short(function)) }
}

/// A row: its name, then text that is wrapped.
fn row(out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
    let body = paragraph(&" ".repeat(LABEL), text);
    writeln!(out, "  {DIM}{label:<10}{DIM:#}{}", body.trim_start())
}

/// A row: its name, then a line as it is.
pub(super) fn row_as_is(out: &mut impl Write, label: &str, line: &str) -> io::Result<()> {
    writeln!(out, "  {DIM}{label:<10}{DIM:#}{line}")
}

/// An argument as a shell takes it.
pub fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/+=:@%,".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
