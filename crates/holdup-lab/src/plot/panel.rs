//! One chart with its legend.

use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, FONT, cut, number, text, write};

use super::Group;

/// Pixels for the legend, to the right of the chart.
const LEGEND: u32 = 340;
/// Above this ratio of the largest to the least value the axis is logarithmic.
const LOG_ABOVE: f64 = 20.0;
/// Lines of the legend, in pixels from one to the next.
const LINE: i32 = 17;

/// Draws a group of series.
pub fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, group: &Group) -> Drawn {
    let (width, _) = area.dim_in_pixel();
    let (chart, legend) = area.split_horizontally(width - LEGEND);
    let values =
        || group.series.iter().flat_map(|s| &s.points).flat_map(|p| [p.low, p.median, p.high]).filter(|v| *v > 0.0);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    if high == 0.0 {
        return write(area, "all values are 0", (60, 60), 12);
    }
    if high / low > LOG_ABOVE {
        lines(&chart, group, low / 1.3, (low / 1.3..high * 1.3).log_scale())?;
    } else {
        lines(&chart, group, 0.0, 0.0..high * 1.1)?;
    }
    write_legend(&legend, group)
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
        .build_cartesian_2d(-0.4..places.len() as f64 - 0.6, y)
        .map_err(text)?;
    let name_of = |x: &f64| {
        let near = x.round();
        let here = (x - near).abs() < 0.01 && near >= 0.0;
        if here { places.get(near as usize).map_or(String::new(), |p| number(*p)) } else { String::new() }
    };
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(2 * places.len() + 1)
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
        write(area, &cut(&series.name, LEGEND as usize, 12), (30, y), 12)?;
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
