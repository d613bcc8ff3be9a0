//! One chart with its legend.

use std::ops::Range;

use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::coord::ranged1d::{AsRangedCoord, DefaultFormatting, KeyPointHint, Ranged, ValueFormatter};
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, FONT, cut, log_marks, number, text, write};

use super::Group;

/// Pixels for the legend, to the right of the chart: at least, and at most.
const LEGEND: (usize, usize) = (150, 340);
/// Above this ratio of the largest to the least value the axis is logarithmic.
const LOG_ABOVE: f64 = 20.0;
/// Lines of the legend, in pixels from one to the next.
const LINE: i32 = 17;

/// Pixels that the longest name needs.
pub fn legend_width(groups: &[Group]) -> u32 {
    let names = groups.iter().flat_map(|g| &g.series).map(|s| s.name.chars().count());
    (names.max().unwrap_or(0) * 7 + 46).clamp(LEGEND.0, LEGEND.1) as u32
}

/// Draws a group of series, with a legend of this width.
pub fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, group: &Group, legend_width: u32) -> Drawn {
    let (width, _) = area.dim_in_pixel();
    let (chart, legend) = area.split_horizontally(width - legend_width);
    let values =
        || group.series.iter().flat_map(|s| &s.points).flat_map(|p| [p.low, p.median, p.high]).filter(|v| *v > 0.0);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    if high == 0.0 {
        return write(area, "all values are 0", (60, 60), 12);
    }
    let in_percent = group.series[0].unit.starts_with('%');
    if high / low > LOG_ABOVE && !in_percent {
        let (low, high) = (low / 1.3, high * 1.3);
        lines(&chart, group, low, (low..high).log_scale().with_key_points(log_marks(low, high)))?;
    } else {
        lines(&chart, group, 0.0, 0.0..high * 1.1)?;
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
        .margin(14)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(76)
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
        .y_desc(group.series[0].unit.as_str())
        .label_style((FONT, 12))
        .axis_desc_style((FONT, 13))
        .draw()
        .map_err(text)?;
    for (i, series) in group.series.iter().enumerate() {
        let colour = colour(i);
        // Beside each other, so that intervals of equal values do not hide each other.
        let shift = (i as f64 - (group.series.len() - 1) as f64 / 2.0) * 0.3 / group.series.len() as f64;
        let at = |x: f64| places.iter().position(|p| *p == x).unwrap_or(0) as f64 + shift;
        let visible = || series.points.iter().filter(|p| p.median > 0.0);
        let line: Vec<(f64, f64)> = visible().map(|p| (at(p.x), p.median)).collect();
        let spans =
            visible().map(|p| PathElement::new([(at(p.x), p.low.max(least)), (at(p.x), p.high)], colour.mix(0.6)));
        chart.draw_series(spans).map_err(text)?;
        chart.draw_series([PathElement::new(line.clone(), colour.stroke_width(2))]).map_err(text)?;
        chart.draw_series(line.into_iter().map(|p| Circle::new(p, 3, colour.filled()))).map_err(text)?;
    }
    Ok(())
}

fn write_legend<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, group: &Group) -> Drawn {
    for (i, series) in group.series.iter().enumerate() {
        let y = 20 + LINE * i as i32;
        let line = PathElement::new([(4, y + 6), (24, y + 6)], colour(i).stroke_width(3));
        area.draw(&line).map_err(text)?;
        write(area, &cut(&series.name, LEGEND.1, 12), (30, y), 12)?;
    }
    Ok(())
}

/// Colours that stay apart: hues by the golden angle, in three depths.
fn colour(i: usize) -> RGBColor {
    let hue = (i as f64 * 0.381_966) % 1.0;
    let depth = [0.42, 0.30, 0.58][i % 3];
    let (r, g, b) = HSLColor(hue, 0.75, depth).to_backend_color().rgb;
    RGBColor(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_differ() {
        let colours: std::collections::BTreeSet<(u8, u8, u8)> = (0..24).map(colour).map(|c| (c.0, c.1, c.2)).collect();
        assert_eq!(colours.len(), 24);
    }
}
