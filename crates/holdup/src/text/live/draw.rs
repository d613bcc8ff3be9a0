//! How it is drawn. Every text from outside goes through [`clean`] here.

use std::borrow::Cow;

use holdup_analysis::label::duration;
use holdup_analysis::report::Finding;
use holdup_analysis::threads::ThreadTimes;
use holdup_base::text::clean;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{Live, Page};
use crate::text::detail::{Part, bar as bar_of, parts};
use crate::text::page::{all_clear, short, shorten_in, shortened, verb};
use crate::text::screen::AnsiColor;
use crate::text::threads::{ThreadOrder, remarks};
use crate::text::wrap::cut;

/// Findings that are listed, at most.
const FINDINGS: u16 = 6;
/// Lines about the chosen one, where there is room.
const DETAIL: u16 = 7;
/// Columns of names.
const NAME: usize = 15;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

impl Live {
    /// Draws all of it.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let Some(page) = &self.page else {
            let words = "holdup top: recording the first seconds …   q ends it";
            return frame.render_widget(Line::styled(words, DIM), area);
        };
        let findings = (page.answer.on_page().count() as u16).clamp(1, FINDINGS);
        let detail = if area.height >= 20 { DETAIL } else { 0 };
        let rows = [1, 1, 1, 1, findings, detail, 1].map(Constraint::Length);
        let rows = rows.into_iter().chain([Constraint::Min(0), Constraint::Length(1)]);
        let [title, bar, legend, heading, list, told, columns, threads, keys] = Layout::vertical(rows).areas(area);
        frame.render_widget(self.title(page), title);
        let accounting = parts(&page.answer.cpu_seconds);
        let total = page.answer.cpu_seconds.total.max(f64::MIN_POSITIVE);
        let cells = bar_of(&accounting, total, usize::from(bar.width));
        let cells = cells.map(|(cells, color)| Span::styled(cells, style(color)));
        frame.render_widget(Line::from(cells.collect::<Vec<_>>()), bar);
        frame.render_widget(legend_of(&accounting, total), legend);
        frame.render_widget(Line::styled("   CPU time  what held it up", DIM), heading);
        self.list(page, frame, list);
        if let Some(finding) = self.finding().filter(|_| detail > 0) {
            frame.render_widget(Paragraph::new(detail_of(finding)).wrap(Wrap { trim: false }), told);
        }
        frame.render_widget(self.columns(), columns);
        let shown = page.threads.threads.iter().skip(self.scrolled).take(usize::from(threads.height));
        let lines: Vec<Line<'_>> = shown.map(|t| thread(t, page.answer.trace.duration_s)).collect();
        frame.render_widget(Paragraph::new(lines), threads);
        let words = " q quit  ␣ hold  ↑↓ or 1–9 choose a cause  s sort threads  PgUp PgDn scroll";
        frame.render_widget(Line::styled(words, CHOSEN), keys);
    }

    fn title(&self, page: &Page) -> Line<'static> {
        let trace = &page.answer.trace;
        let what = if trace.focus.is_empty() { "the whole machine".into() } else { clean(&trace.focus) };
        let cpus = if trace.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", trace.cpus) };
        let about = format!("{what}, {} on {cpus}", duration(trace.duration_s));
        let how = match self.held {
            true => "held: ␣ goes on".to_owned(),
            false => format!("page {}, {} after", self.pages, duration(page.took.as_secs_f64())),
        };
        let lost = match page.answer.health.lost_events {
            0 => String::new(),
            n => format!("   {n} events lost"),
        };
        Line::from(vec![
            Span::styled("holdup top ", BOLD),
            Span::raw(about),
            Span::styled(format!("   {how}{lost}"), DIM),
        ])
    }

    fn list(&self, page: &Page, frame: &mut Frame<'_>, area: Rect) {
        let total = page.answer.cpu_seconds.total.max(f64::MIN_POSITIVE);
        // The chosen one is in sight.
        let first = (self.chosen + 1).saturating_sub(usize::from(area.height));
        let row = |(i, f): (usize, &Finding)| {
            let share = 100.0 * f.blame_cpu_s / total;
            let line = format!("{:>2} {share:>6.1} %  {} ({})", i + 1, clean(&shortened(f)), f.confidence);
            Line::styled(line, if i == self.chosen { CHOSEN } else { Style::new() })
        };
        let findings = page.answer.on_page().enumerate().skip(first).take(usize::from(area.height));
        let mut lines: Vec<Line<'_>> = findings.map(row).collect();
        if lines.is_empty() {
            lines.push(Line::raw(format!("   {}", all_clear(&page.answer))));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn columns(&self) -> Line<'static> {
        let look = |order| if self.order() == order { BOLD } else { DIM };
        let head = |order, name: &str| if self.order() == order { format!("{name}▾") } else { name.to_owned() };
        let mark = |order, name, width| Span::styled(format!("{:>width$}", head(order, name)), look(order));
        let by_name = ThreadOrder::Name;
        Line::from(vec![
            Span::styled(format!("{:>8}  ", "tid"), DIM),
            Span::styled(format!("{:<NAME$}  ", head(by_name, "thread")), look(by_name)),
            Span::styled(format!("{:<NAME$}", "process"), DIM),
            mark(ThreadOrder::Ran, "ran", 8),
            mark(ThreadOrder::Ready, "ready", 8),
            mark(ThreadOrder::Waited, "waited", 9),
            mark(ThreadOrder::Waits, "waits", 9),
            Span::styled("  waited for", DIM),
        ])
    }
}

/// A thread's row: shares of the page's time.
fn thread(t: &ThreadTimes, length: f64) -> Line<'static> {
    let share = |s: f64| format!("{:.0} %", 100.0 * s / length.max(f64::MIN_POSITIVE));
    let name = |name: &str| cut(name, NAME);
    Line::raw(format!(
        "{:>8}  {:<NAME$}  {:<NAME$}{:>8}{:>8}{:>9}{:>9}  {}",
        t.tid,
        name(&t.name),
        name(&t.process),
        share(t.ran_s),
        share(t.ready_s),
        share(t.waited_s),
        t.waits,
        clean(&remarks(t))
    ))
}

/// What is to say of the chosen finding.
fn detail_of(f: &Finding) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(format!("   {}", clean(&f.title)), BOLD)];
    let mut row = |label: &str, text: Cow<'_, str>| {
        if !text.is_empty() {
            lines.push(Line::from(vec![
                Span::styled(format!("   {label:<10}"), DIM),
                Span::raw(clean(&text).into_owned()),
            ]));
        }
    };
    if let Some(verb) = verb(f).filter(|_| !f.culprit.function.is_empty()) {
        let caller = if f.culprit.called_by.is_empty() {
            String::new()
        } else {
            format!(", called by {}", short(&f.culprit.called_by))
        };
        row(verb, format!("{}  {}{caller}", short(&f.culprit.function), f.culprit.source).into());
    }
    if f.is_cause() && f.waiters.threads > 0 {
        row("They hung", format!("{}  ({})", short(&f.waiters.function), f.waiters.names.join(", ")).into());
    }
    row("Try", shorten_in(&f.advice, &f.culprit.function).into());
    let doubts = if f.doubts.is_empty() { String::new() } else { format!(": {}", f.doubts.join("; ")) };
    row("Sure?", format!("{}{doubts}", f.confidence).into());
    lines
}

/// What its parts are, the largest that fit.
fn legend_of(parts: &[Part], total: f64) -> Line<'static> {
    let seen = parts.iter().filter(|part| part.seconds / total >= 0.005);
    let words = seen.flat_map(|part| {
        let share = 100.0 * part.seconds / total;
        [Span::styled(part.symbol.to_string(), style(part.color)), Span::raw(format!(" {share:.0} % {}   ", part.name))]
    });
    Line::from(words.collect::<Vec<_>>())
}

fn style(color: AnsiColor) -> Style {
    Style::new().fg(match color {
        AnsiColor::Green => Color::Green,
        AnsiColor::Magenta => Color::Magenta,
        AnsiColor::Cyan => Color::Cyan,
        AnsiColor::Red => Color::Red,
        AnsiColor::Yellow => Color::Yellow,
        AnsiColor::BrightBlack => Color::DarkGray,
        _ => Color::Reset,
    })
}
