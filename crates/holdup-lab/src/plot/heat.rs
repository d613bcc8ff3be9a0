//! A matrix of places as cells, the darker the longer.

use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::prelude::*;
use holdup_plot::plotters::style::text_anchor::{HPos, Pos, VPos};
use holdup_plot::{Drawn, FONT, number, text, write};

use super::Group;

/// Left of and above the cells, in pixels.
const MARGIN: (i32, i32) = (90, 58);
/// Up to so many rows each cell has its number.
const NUMBERS: usize = 16;

/// Draws a group whose series are rows, named by the last word of their names, and whose places are columns.
pub fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, group: &Group) -> Drawn {
    let mut columns: Vec<f64> = group.series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    let rows = group.series.len();
    let (width, height) = area.dim_in_pixel();
    let room = (
        (width as i32 - MARGIN.0 - 20) / columns.len().max(1) as i32,
        (height as i32 - MARGIN.1 - 16) / rows.max(1) as i32,
    );
    let cell = (room.0.min(2 * room.1).max(1), room.1.min(room.0).max(1));
    let values = || group.series.iter().flat_map(|s| &s.points).map(|p| p.median).filter(|v| *v > 0.0);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    write(area, &format!("{}, {}", group.title(), group.unit()), (16, 6), 13)?;
    label(area, group.axis, (MARGIN.0 + cell.0 * columns.len() as i32 / 2, 30))?;
    for (row, series) in group.series.iter().enumerate() {
        let y = MARGIN.1 + cell.1 * row as i32;
        let name = series.name.rsplit(' ').next().unwrap_or("");
        label(area, &format!("from {name}"), (MARGIN.0 / 2, y + cell.1 / 2))?;
        for point in &series.points {
            let x = MARGIN.0 + cell.0 * columns.iter().position(|c| *c == point.x).unwrap_or(0) as i32;
            // By its logarithm: hand-overs within a core and between sockets lie ten times apart.
            let share = if high > low { (point.median / low).ln() / (high / low).ln() } else { 0.0 };
            let colour = shade(share.clamp(0.0, 1.0));
            area.draw(&Rectangle::new([(x, y), (x + cell.0 - 1, y + cell.1 - 1)], colour.filled())).map_err(text)?;
            if rows <= NUMBERS {
                let ink = if share > 0.55 { WHITE } else { BLACK };
                centred(area, &number(point.median.round()), (x + cell.0 / 2, y + cell.1 / 2), &ink)?;
            }
        }
    }
    for (i, column) in columns.iter().enumerate() {
        label(area, &number(*column), (MARGIN.0 + cell.0 * i as i32 + cell.0 / 2, MARGIN.1 - 10))?;
    }
    Ok(())
}

fn label<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, words: &str, at: (i32, i32)) -> Drawn {
    centred(area, words, at, &BLACK)
}

fn centred<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, words: &str, at: (i32, i32), ink: &RGBColor) -> Drawn {
    let style = TextStyle::from((FONT, 12).into_font()).color(ink).pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new(words.to_owned(), at, style)).map_err(text)
}

/// From nearly white to dark blue: it grows evenly darker, so that it reads in grey, too.
fn shade(share: f64) -> RGBColor {
    let between = |from: f64, to: f64| (from + (to - from) * share).round() as u8;
    RGBColor(between(247.0, 8.0), between(251.0, 48.0), between(255.0, 107.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_is_darker() {
        let light = |share| f64::from(shade(share).0) + f64::from(shade(share).1);
        assert!(light(0.0) > light(0.3) && light(0.3) > light(1.0));
    }
}
