//! Since when: the day on which most changed, if nobody names one.

use crate::changes::Changes;
use crate::{Chosen, Engine, Question, Result};

/// So many of the last days are tried.
const MOST_DAYS: usize = 14;

/// What changed, and since when.
#[derive(Debug, Clone, PartialEq)]
pub struct Since {
    /// The first day of *after*; `None` if there are traces of one day alone.
    pub day: Option<String>,
    /// How many days were tried.
    pub tried: usize,
    /// What changed since then.
    pub changes: Changes,
}

/// Compares the days before `at` with those from it on, within the chosen ones; without one, the last days are tried, and that counts whose
/// first change is the least likely. What is then called significant has to be so for all that were tried.
///
/// # Errors
/// As [`Engine::ask`].
pub fn changes(engine: &Engine, chosen: &Chosen, at: Option<&str>) -> Result<Since> {
    engine.choose(chosen)?;
    engine.keep()?;
    let days = match at {
        Some(day) => vec![day.to_owned()],
        None => last_days(engine)?,
    };
    let mut found: Option<(String, Changes)> = None;
    for day in &days {
        engine.cut(&Chosen { cut: day.clone(), ..chosen.clone() })?;
        let changes = Changes::of(&engine.ask(Question::Sides)?, &engine.ask(Question::Changes)?, days.len());
        if found.as_ref().is_none_or(|(_, best)| changes.least() < best.least()) {
            found = Some((day.clone(), changes));
        }
    }
    let (day, changes) = found.map_or_else(|| (None, Changes::none()), |(day, changes)| (Some(day), changes));
    Ok(Since { day, tried: days.len(), changes })
}

/// Days on which something may have changed: all with traces but the first, the last ones of these.
fn last_days(engine: &Engine) -> Result<Vec<String>> {
    let mut days: Vec<String> = engine.ask(Question::Days)?.rows.iter().map(|row| row[0].text().to_owned()).collect();
    days.drain(..days.len().min(1));
    Ok(days.split_off(days.len().saturating_sub(MOST_DAYS)))
}
