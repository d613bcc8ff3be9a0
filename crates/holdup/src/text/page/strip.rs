//! A line of time that shows when.

use std::io::{self, Write};

use holdup_analysis::label::duration;
use holdup_analysis::report::TraceFacts;

use super::super::screen::{AnsiColor, Style};
use super::super::wrap::width;

const HOT: Style = Style::color(AnsiColor::Red);

/// Draws `windows`, in seconds, over the explained part; nothing where there are none.
pub fn write(out: &mut impl Write, trace: &TraceFacts, windows: &[[f64; 2]]) -> io::Result<()> {
    let (from, to) = (trace.start_s, trace.start_s + trace.duration_s);
    if windows.is_empty() || trace.duration_s <= 0.0 {
        return Ok(());
    }
    let when = match windows {
        [[a, b]] => format!("{a:.2}–{b:.2} s"),
        many => format!("{} times", many.len()),
    };
    let begin = if from == 0.0 { "0 s".to_owned() } else { duration(from) };
    let end = duration(to);
    let taken = 2 + begin.chars().count() + 1 + 1 + end.chars().count() + 3 + when.chars().count() + 2;
    let cells = width().min(100).saturating_sub(taken).max(10);
    let marked = marks(from, trace.duration_s, windows, cells);
    write!(out, "  {begin} ")?;
    for (i, mark) in marked.iter().enumerate() {
        if *mark && (i == 0 || !marked[i - 1]) {
            write!(out, "{HOT}")?;
        }
        write!(out, "{}", if *mark { '╳' } else { '·' })?;
        if *mark && marked.get(i + 1).is_none_or(|next| !next) {
            write!(out, "{HOT:#}")?;
        }
    }
    writeln!(out, " {end}   ({when})")
}

/// Which of `cells` equal parts the windows fill to at least a half, or lie in.
fn marks(from: f64, length: f64, windows: &[[f64; 2]], cells: usize) -> Vec<bool> {
    let mut covered = vec![0.0; cells];
    let mut marked = vec![false; cells];
    let place = |t: f64| ((t - from) / length * cells as f64).clamp(0.0, cells as f64);
    for &[a, b] in windows {
        let (a, b) = (place(a), place(b));
        let (first, last) = (a as usize, (b as usize).min(cells - 1));
        for (i, cell) in covered.iter_mut().enumerate().take(last + 1).skip(first) {
            *cell += b.min((i + 1) as f64) - a.max(i as f64);
        }
        // However short, it is somewhere.
        if b - a < 1.0 {
            marked[(((a + b) / 2.0) as usize).min(cells - 1)] = true;
        }
    }
    marked.iter().zip(&covered).map(|(m, c)| *m || *c >= 0.5).collect()
}

#[cfg(test)]
mod tests {
    use super::marks;

    fn drawn(from: f64, length: f64, windows: &[[f64; 2]]) -> String {
        marks(from, length, windows, 10).iter().map(|m| if *m { 'x' } else { '.' }).collect()
    }

    #[test]
    fn windows_fill_their_cells() {
        assert_eq!(drawn(0.0, 2.0, &[[0.6, 1.2]]), "...xxx....");
        assert_eq!(drawn(1.0, 1.0, &[[1.0, 2.0]]), "xxxxxxxxxx");
        assert_eq!(drawn(0.0, 1.0, &[[0.5, 0.5001], [0.9999, 1.0]]), ".....x...x");
        assert_eq!(drawn(0.0, 1.0, &[[0.14, 0.36]]), ".xxx......");
        assert_eq!(drawn(0.0, 1.0, &[[-5.0, 9.0]]), "xxxxxxxxxx");
    }
}
