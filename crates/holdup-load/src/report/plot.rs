//! The picture of a run: throughput and response times over time, and response times by percentile.

use holdup_base::numbers::figure;
use holdup_base::output::Output;
use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, FONT, Picture, heading, log_marks, number, text, write};

use super::{Report, hdr};

const SIZE: (u32, u32) = (960, 900);
/// Above the charts, in pixels.
const HEAD: u32 = 78;

/// Pieces of a curve.
const CURVE: u32 = 400;
const RATE: RGBColor = RGBColor(22, 83, 160);
const OFFERED: RGBColor = RGBColor(150, 150, 150);
const ERRORS: RGBColor = RGBColor(200, 60, 30);
const MEDIAN: RGBColor = RGBColor(60, 140, 70);
const NINETY_NINE: RGBColor = RGBColor(220, 140, 20);
const MOST: RGBColor = RGBColor(170, 60, 60);

/// Draws a report into a file: PNG if its name ends so, else SVG.
///
/// # Errors
/// The file can't be written; the message says which.
pub fn draw(report: &Report, file: Output) -> Drawn {
    holdup_plot::save(&Page { report }, file)
}

/// Name, colour, and stretches of points: there is a gap between two of them.
pub(super) type Line = (String, RGBColor, Vec<Vec<(f64, f64)>>);

struct Page<'a> {
    report: &'a Report,
}

impl Picture for Page<'_> {
    fn size(&self) -> (u32, u32) {
        SIZE
    }

    fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Drawn {
        root.fill(&WHITE).map_err(text)?;
        let (head, rest) = root.split_vertically(HEAD);
        let title = format!("{} {}", self.report.workload, self.report.function);
        heading(&head, &title, &self.sentence())?;
        let charts = rest.split_evenly((3, 1));
        self.throughput(&charts[0])?;
        self.latencies(&charts[1])?;
        self.percentiles(&charts[2])
    }
}

impl Page<'_> {
    fn sentence(&self) -> String {
        let report = self.report;
        let how = report.rate.map_or("closed loop".to_owned(), |rate| format!("{} calls due a second", figure(rate)));
        let times = &report.latency_ms;
        let warnings = report.warnings.iter().map(|warning| format!("; {warning}")).collect::<String>();
        format!(
            "{how}, {} × {} calls under way; {} calls/s, p50 {} ms, p99 {} ms, max {} ms, {} errors{warnings}",
            report.threads,
            report.concurrency,
            figure(report.throughput.mean),
            figure(times.p50),
            figure(times.p99),
            figure(times.max),
            report.errors
        )
    }

    fn end(&self) -> f64 {
        end(self.report)
    }

    fn along(&self, of: impl Fn(&super::SlicePoint) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
        along(self.report, of)
    }

    fn throughput<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn {
        let slice_s = self.report.slice_s;
        let mut lines: Vec<Line> = Vec::new();
        if let Some(rate) = self.report.rate {
            let at = |t: f64| (t, rate * self.report.rate_sine.map_or(1.0, |wave| wave.at(t)));
            let steps = self.report.rate_sine.map_or(1, |_| CURVE);
            let offered = (0..=steps).map(|step| at(self.end() * f64::from(step) / f64::from(steps)));
            lines.push(("offered".to_owned(), OFFERED, vec![offered.collect()]));
        }
        lines.push(("calls/s".to_owned(), RATE, self.along(|point| Some(point.rate))));
        if self.report.errors > 0 {
            lines.push(("errors/s".to_owned(), ERRORS, self.along(|point| Some(point.errors as f64 / slice_s))));
        }
        let most = lines.iter().flat_map(|line| line.2.iter().flatten()).map(|point| point.1).fold(1e-9, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_right(28)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..self.end(), 0.0..most * 1.15)
            .map_err(text)?;
        mesh(&mut chart.configure_mesh(), ("s", &|v| number(*v)), "calls per second")?;
        draw_lines(&mut chart, lines, SeriesLabelPosition::UpperRight)
    }

    fn latencies<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn {
        let lines: Vec<Line> = vec![
            ("max".to_owned(), MOST, self.along(|point| point.max_ms)),
            ("p99".to_owned(), NINETY_NINE, self.along(|point| point.p99_ms)),
            ("p50".to_owned(), MEDIAN, self.along(|point| point.p50_ms)),
        ];
        let Some((low, high)) = bounds(&lines) else { return write(area, "no call succeeded", (60, 60), 12) };
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_right(28)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..self.end(), (low..high).log_scale().with_key_points(log_marks(low, high)))
            .map_err(text)?;
        mesh(&mut chart.configure_mesh(), ("s", &|v| number(*v)), "response time, ms")?;
        draw_lines(&mut chart, lines, SeriesLabelPosition::UpperRight)
    }

    /// Times against how rare they are: 1 is one call in ten, 2 one in a hundred.
    fn percentiles<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn {
        let mut lines: Vec<Line> = Vec::new();
        let both = [("response", RATE, &self.report.hdr), ("service", MEDIAN, &self.report.service_hdr)];
        for (name, colour, encoded) in both {
            lines.extend(
                hdr::decoded(encoded).filter(|h| !h.is_empty()).map(|h| (name.to_owned(), colour, vec![by_rarity(&h)])),
            );
        }
        let Some((low, high)) = bounds(&lines) else { return write(area, "no call succeeded", (60, 60), 12) };
        let rarest = lines.iter().flat_map(|line| line.2.iter().flatten()).map(|point| point.0).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_right(28)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..rarest, (low..high).log_scale().with_key_points(log_marks(low, high)))
            .map_err(text)?;
        let mut style = chart.configure_mesh();
        style.x_labels(rarest.ceil() as usize + 1);
        mesh(&mut style, ("percentile of calls", &|v| percentile_label(*v)), "ms")?;
        draw_lines(&mut chart, lines, SeriesLabelPosition::UpperLeft)
    }
}

/// The end of a report's time axis.
pub(super) fn end(report: &Report) -> f64 {
    (report.series.len() as f64 * report.slice_s).max(report.slice_s)
}

/// The middle of each slice; a slice without a value is a gap.
pub(super) fn along(report: &Report, of: impl Fn(&super::SlicePoint) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
    let middle = report.slice_s / 2.0;
    let points: Vec<_> = report.series.iter().map(|point| Some((point.t_s + middle, of(point)?))).collect();
    points.split(Option::is_none).map(|stretch| stretch.iter().flatten().copied().collect()).collect()
}

/// `90 %` at 1, `99 %` at 2, …
fn percentile_label(rarity: f64) -> String {
    if (rarity - rarity.round()).abs() > 1e-6 {
        return String::new();
    }
    match rarity.round() as i32 {
        0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        nines => format!("99.{} %", "9".repeat(nines as usize - 2)),
    }
}

fn by_rarity(histogram: &hdrhistogram::Histogram<u64>) -> Vec<(f64, f64)> {
    let total = histogram.len() as f64;
    let rarest = total.log10().max(1.0);
    let step = |i: i32| rarest * f64::from(i) / 200.0;
    (0..=200)
        .map(step)
        .map(|rarity| (rarity, histogram.value_at_quantile(1.0 - 10_f64.powf(-rarity)) as f64 / 1e6))
        .collect()
}

/// A little beyond the least and the largest value above 0.
pub(super) fn bounds(lines: &[Line]) -> Option<(f64, f64)> {
    let values =
        || lines.iter().flat_map(|line| line.2.iter().flatten()).map(|point| point.1).filter(|value| *value > 0.0);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    (high > 0.0).then_some((low / 1.5, high * 1.5))
}

pub(super) fn mesh<'a, 'b, X, Y, DB>(
    mesh: &mut holdup_plot::plotters::chart::MeshStyle<'a, 'b, X, Y, DB>,
    (x, label): (&str, &'b dyn Fn(&f64) -> String),
    y: &str,
) -> Drawn
where
    X: Ranged<ValueType = f64> + holdup_plot::plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + holdup_plot::plotters::coord::ranged1d::ValueFormatter<f64>,
    DB: DrawingBackend,
{
    mesh.light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .x_label_formatter(label)
        .y_label_formatter(&|v| number(*v))
        .x_desc(x)
        .y_desc(y)
        .label_style((FONT, 12))
        .axis_desc_style((FONT, 13))
        .draw()
        .map_err(text)
}

pub(super) fn draw_lines<'a, X, Y, DB>(
    chart: &mut ChartContext<'a, DB, Cartesian2d<X, Y>>,
    lines: Vec<Line>,
    legend: SeriesLabelPosition,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
    DB: DrawingBackend + 'a,
{
    for (name, colour, stretches) in lines {
        let alone = stretches.iter().filter(|points| points.len() == 1).flatten();
        chart.draw_series(alone.map(|point| Circle::new(*point, 3, colour.filled()))).map_err(text)?;
        chart
            .draw_series(stretches.into_iter().map(|points| PathElement::new(points, colour.stroke_width(2))))
            .map_err(text)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(3)));
    }
    chart
        .configure_series_labels()
        .position(legend)
        .margin(8)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font((FONT, 12))
        .draw()
        .map_err(text)
}
