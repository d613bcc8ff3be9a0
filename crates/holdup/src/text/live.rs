//! The screen of `holdup top`: where the CPU time of the last seconds went, what held it up, and who was there.

mod draw;
#[cfg(test)]
mod tests;

use std::time::Duration;

use holdup_analysis::Explanation;
use holdup_analysis::report::Finding;
use holdup_analysis::threads::ThreadList;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::text::threads::{ThreadOrder, sort};

/// In which order threads are listed, one after the other.
const ORDERS: [ThreadOrder; 5] =
    [ThreadOrder::Ran, ThreadOrder::Ready, ThreadOrder::Waited, ThreadOrder::Waits, ThreadOrder::Name];

/// What was found out about a stretch of time.
pub struct Page {
    /// What held it up.
    pub answer: Explanation,
    /// Who was there.
    pub threads: ThreadList,
    /// How long it took to find out, after the stretch was over.
    pub took: Duration,
}

/// What is on the screen, and what the person at it has chosen.
#[derive(Default)]
pub struct Live {
    page: Option<Page>,
    /// How many pages there were.
    pages: u64,
    /// The finding that is told in full, from 0.
    chosen: usize,
    /// The place in [`ORDERS`].
    order: usize,
    /// The first thread in the list.
    scrolled: usize,
    /// Newer pages are not shown.
    held: bool,
}

/// What a key asks for beyond the screen.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    Go,
    /// The end.
    Quit,
}

impl Live {
    /// Takes a new page, unless the one on the screen is held.
    pub fn show(&mut self, page: Page) {
        self.pages += 1;
        if self.held {
            return;
        }
        // Who reads about a cause goes on with the same one, wherever it stands now.
        let same = |f: &&Finding| self.finding().is_some_and(|old| alike(old, f));
        let place = page.answer.on_page().position(|f| same(&f));
        self.chosen = place.unwrap_or(0);
        self.page = Some(page);
        self.sort();
    }

    /// In which order threads are listed.
    pub fn order(&self) -> ThreadOrder {
        ORDERS[self.order]
    }

    /// A key was pressed.
    pub fn press(&mut self, key: KeyEvent) -> Wish {
        let findings = self.page.as_ref().map_or(0, |page| page.answer.on_page().count());
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Wish::Quit,
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char(' ' | 'p') => self.held = !self.held,
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(findings.saturating_sub(1)),
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Char(digit @ '1'..='9') => {
                let number = digit as usize - '1' as usize;
                self.chosen = if number < findings { number } else { self.chosen };
            }
            KeyCode::Char('s') => {
                self.order = (self.order + 1) % ORDERS.len();
                self.scrolled = 0;
                self.sort();
            }
            KeyCode::PageDown => self.scrolled = (self.scrolled + 10).min(self.threads().saturating_sub(1)),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            _ => {}
        }
        Wish::Go
    }

    fn threads(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.threads.threads.len())
    }

    fn sort(&mut self) {
        let order = self.order();
        if let Some(page) = &mut self.page {
            sort(&mut page.threads.threads, order);
        }
    }

    fn finding(&self) -> Option<&Finding> {
        self.page.as_ref()?.answer.on_page().nth(self.chosen)
    }
}

/// Whether two findings of different pages are about the same.
fn alike(a: &Finding, b: &Finding) -> bool {
    (a.kind, &a.culprit.process, &a.culprit.function) == (b.kind, &b.culprit.process, &b.culprit.function)
}
