//! The live status line while recording.

use std::io::{IsTerminal, Write};

use holdup_record::Status;

/// Redraws one line on standard error; silent where that is no terminal.
pub struct StatusLine {
    visible: bool,
    drawn: bool,
    last_events: u64,
    last_s: f64,
}

impl StatusLine {
    /// A line that is not drawn yet. `is_shared` says whether a program that this one starts writes to the same terminal
    /// meanwhile, as a recorded command does: nobody knows when, and its text would stand behind that of the line or be
    /// removed with it. So nothing is drawn then.
    pub fn new(is_shared: bool) -> Self {
        let visible = !is_shared && std::io::stderr().is_terminal();
        StatusLine { visible, drawn: false, last_events: 0, last_s: 0.0 }
    }

    /// Draws `status` if half a second has passed since the last time.
    pub fn update(&mut self, status: &Status) {
        let now = status.elapsed.as_secs_f64();
        if !self.visible || now - self.last_s < 0.5 {
            return;
        }
        let rate = (status.events - self.last_events) as f64 / (now - self.last_s);
        (self.last_events, self.last_s, self.drawn) = (status.events, now, true);
        let (rate, size, lost) = (count(rate as u64), bytes(status.bytes), count(status.lost));
        let _ = write!(std::io::stderr(), "\r\x1b[K{now:6.1} s  {rate} events/s  {size}  {lost} lost");
    }

    /// Removes the line.
    pub fn finish(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// An error stands in a line of its own, too.
impl Drop for StatusLine {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A number with a fitting suffix.
pub fn count(n: u64) -> String {
    scaled(n, 1000.0, &["", " k", " M", " G"])
}

/// A size with a fitting unit.
pub fn bytes(n: u64) -> String {
    scaled(n, 1024.0, &[" B", " KB", " MB", " GB"])
}

fn scaled(n: u64, step: f64, units: &[&str]) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    if unit == 0 { format!("{n}{}", units[0]) } else { format!("{value:.1}{}", units[unit]) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn units_fit() {
        assert_eq!(super::count(999), "999");
        assert_eq!(super::count(1_500_000), "1.5 M");
        assert_eq!(super::bytes(2048), "2.0 KB");
    }
}
