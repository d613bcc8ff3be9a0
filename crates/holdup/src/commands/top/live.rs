//! The live screen: one thread records, one explains, and this one draws.
//!
//! ```text
//!   record   ├── 1 ──┤├── 2 ──┤├── 3 ──┤
//!   explain           ├ 1 ┤    ├ 2 ┤    ├ 3 ┤
//!   draw                  ▲        ▲        ▲
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use holdup_analysis::{Options, threads};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::cli::Source;
use crate::commands::explain;
use crate::commands::record::{self, Caught, Then};
use crate::text::live::{Live, Page, Wish};
use crate::text::screen;

/// How long a key waits for its effect at most.
const TICK: Duration = Duration::from_millis(100);

/// Shows page after page until somebody ends it.
pub fn run(source: &Source) -> anyhow::Result<ExitCode> {
    let stop = &AtomicBool::new(false);
    let (caught, catches) = sync_channel(0);
    let (shown, pages) = sync_channel(0);
    let named = |name: &str| Builder::new().name(name.to_owned());
    std::thread::scope(|scope| {
        let recorder = named("top-record").spawn_scoped(scope, move || record_on(source, stop, &caught))?;
        let explainer = named("top-explain").spawn_scoped(scope, move || explain_on(source, &catches, &shown))?;
        let result = screen::with_all_of_it(|terminal| draw_on(terminal, &pages));
        stop.store(true, Ordering::Relaxed);
        // Who still hands something over is told that nobody takes it.
        drop(pages);
        let (recorded, explained) = (recorder.join(), explainer.join());
        result?;
        for ended in [recorded, explained] {
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Records one stretch after the other, until it is told to stop.
fn record_on(source: &Source, stop: &AtomicBool, caught: &SyncSender<Caught>) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let catch = record::catch(source, stop)?;
        let interrupted = catch.outcome.interrupted;
        if caught.send(catch).is_err() || interrupted {
            break;
        }
    }
    Ok(())
}

/// Makes pages of what is recorded, until nothing comes any more or nobody looks.
fn explain_on(source: &Source, catches: &Receiver<Caught>, shown: &SyncSender<Page>) -> anyhow::Result<()> {
    for catch in catches {
        let begun = Instant::now();
        let (_, trace) = catch.read(source, Then::Again)?;
        let options = Options { top: usize::MAX, ..Options::default() };
        let answer = explain::explain(&trace, "now", &options)?;
        let threads = threads::list(&trace, "now", None, false)?;
        if shown.send(Page { answer, threads, took: begun.elapsed() }).is_err() {
            break;
        }
    }
    Ok(())
}

/// Draws pages as they come, and obeys keys, until somebody or the recording ends it.
fn draw_on(terminal: &mut DefaultTerminal, pages: &Receiver<Page>) -> anyhow::Result<()> {
    let mut live = Live::default();
    loop {
        match pages.try_recv() {
            Ok(page) => live.show(page),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        terminal.draw(|frame| live.draw(frame))?;
        if event::poll(TICK)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && live.press(key) == Wish::Quit
        {
            return Ok(());
        }
    }
}
