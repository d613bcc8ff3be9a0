//! One chart with its legend.

use std::ops::Range;

use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::coord::ranged1d::{AsRangedCoord, DefaultFormatting, KeyPointHint, Ranged, ValueFormatter};
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, FONT, cut, log_marks, number, text, write};

use super::Group;
use super::scale::Scale;
use crate::result::Point;

/// Lines of the legend, in pixels from one to the next, and the size of its letters.
const LINE: i32 = 17;
/// Lines of a legend: two series stand side by side in each.
const LEGEND_LINES: u32 = 3;

/// Draws a group of series on `scale`.
pub fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, group: &Group, scale: Option<Scale>) -> Drawn {
    let (_, height) = area.dim_in_pixel();
    let (chart, legend) = area.split_vertically(height - LEGEND_LINES * LINE as u32 - 10);
    match scale {
        None => write(area, "all values are 0", (60, 60), 12)?,
        Some(Scale::Log { low, high }) => {
            let y = (low..high).log_scale().with_key_points(log_marks(low, high));
            lines(&chart, group, low, y)?;
        }
        Some(Scale::Linear { end, step }) => {
            lines(&chart, group, 0.0, Steps { end, step })?;
        }
    }
    write_legend(&legend, group)
}

/// An axis with a mark at each of so many places, and room beside the first and the last.
struct Places(usize);

impl Ranged for Places {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let range = self.range();
        let share = (place - range.start) / (range.end - range.start);
        first + (f64::from(last - first) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0..self.0).map(|place| place as f64).collect()
    }

    fn range(&self) -> Range<f64> {
        -0.4..self.0 as f64 - 0.6
    }
}

/// An axis from 0 with a mark at each step, also at its end.
struct Steps {
    end: f64,
    step: f64,
}

impl Ranged for Steps {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        first + (f64::from(last - first) * value / self.end).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0..=(self.end / self.step).round() as usize).map(|i| i as f64 * self.step).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.end
    }
}

/// The distinct places of all points: they stand at equal distances, as most sweeps double.
fn places(group: &Group) -> Vec<f64> {
    let mut places: Vec<f64> = group.series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn lines<DB: DrawingBackend, Y>(area: &DrawingArea<DB, Shift>, group: &Group, least: f64, y: Y) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let places = places(group);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(20)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(Places(places.len()), y)
        .map_err(text)?;
    let name_of = |x: &f64| places.get(x.round() as usize).map_or(String::new(), |p| number(*p));
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(places.len())
        .x_label_formatter(&name_of)
        .y_label_formatter(&|v| number(*v))
        .x_desc(group.axis)
        .y_desc(group.unit())
        .label_style((FONT, 12))
        .axis_desc_style((FONT, 13))
        .draw()
        .map_err(text)?;
    for (i, series) in group.series.iter().enumerate() {
        let colour = colour(i);
        let at = |x: f64| places.iter().position(|p| *p == x).unwrap_or(0) as f64;
        let visible: Vec<&Point> = series.points.iter().filter(|p| p.median > 0.0).collect();
        let line: Vec<(f64, f64)> = visible.iter().map(|p| (at(p.x), p.median)).collect();
        let low = |p: &&Point| (at(p.x), p.low.max(least));
        match visible[..] {
            // One point has no band, but its interval can be seen.
            [only] => {
                _ = chart
                    .draw_series([PathElement::new([low(&only), (at(only.x), only.high)], colour.mix(0.6))])
                    .map_err(text)?;
            }
            _ => {
                let above = visible.iter().map(|p| (at(p.x), p.high));
                let band: Vec<(f64, f64)> = above.chain(visible.iter().rev().map(low)).collect();
                chart.draw_series([Polygon::new(band, colour.mix(0.13))]).map_err(text)?;
            }
        }
        chart.draw_series([PathElement::new(line.clone(), colour.stroke_width(2))]).map_err(text)?;
        chart.draw_series(line.into_iter().map(|p| Circle::new(p, 3, colour.filled()))).map_err(text)?;
    }
    Ok(())
}

fn write_legend<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, group: &Group) -> Drawn {
    let half = area.dim_in_pixel().0 as i32 / 2;
    let names: Vec<&str> = group.series.iter().map(|series| series.name.as_str()).collect();
    for (i, name) in without_common_end(&names).into_iter().enumerate() {
        let (x, y) = (12 + (i as i32 % 2) * half, 2 + LINE * (i as i32 / 2));
        let line = PathElement::new([(x, y + 7), (x + 20, y + 7)], colour(i).stroke_width(3));
        area.draw(&line).map_err(text)?;
        write(area, &cut(name, half as usize - 8, 12), (x + 26, y), 12)?;
    }
    Ok(())
}

/// The names without the last part that all have: "std, depth" and "ttas, depth" differ by the lock, and the axis says "depth".
fn without_common_end<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let end = names.first().and_then(|name| name.rfind(", ").map(|at| &name[at..]));
    match end {
        Some(end) if names.len() > 1 && names.iter().all(|name| name.ends_with(end)) => {
            names.iter().map(|name| &name[..name.len() - end.len()]).collect()
        }
        _ => names.to_vec(),
    }
}

/// Colours that stay apart, also for eyes that see red and green alike (Okabe and Ito, "Color Universal Design", 2008).
const COLOURS: [(u8, u8, u8); super::MOST] =
    [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (90, 90, 90), (230, 159, 0)];

fn colour(i: usize) -> RGBColor {
    let (r, g, b) = COLOURS[i % COLOURS.len()];
    RGBColor(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_tells_what_differs() {
        assert_eq!(without_common_end(&["std, depth", "ttas, depth"]), ["std", "ttas"]);
        assert_eq!(without_common_end(&["std, user", "ttas, kernel"]), ["std, user", "ttas, kernel"]);
        assert_eq!(without_common_end(&["std, depth"]), ["std, depth"]);
        assert_eq!(without_common_end(&["plain", "shared"]), ["plain", "shared"]);
    }
}
