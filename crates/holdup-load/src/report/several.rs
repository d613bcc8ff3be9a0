//! Several reports in one picture: a panel for throughput and one for each percentile, a line for each report.

use holdup_base::numbers::figure;
use holdup_base::output::Output;
use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, Picture, heading, log_marks, number, text, write};

use super::Report;
use super::plot::{Line, along, bounds, draw_lines, end, mesh};

/// The width, and the height of the head and of a panel, in pixels.
const WIDTH: u32 = 960;
const HEAD: u32 = 78;
const HEIGHT: u32 = 280;

/// More lines than these can't be told from each other, also by who sees few colours.
const COLOURS: [RGBColor; 6] = [
    RGBColor(22, 83, 160),
    RGBColor(220, 140, 20),
    RGBColor(60, 140, 70),
    RGBColor(170, 60, 60),
    RGBColor(120, 80, 160),
    RGBColor(110, 110, 110),
];

/// What a panel shows over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Panel {
    /// Calls a second.
    Throughput,
    /// What so many percent of the response times do not exceed.
    Percentile(f64),
}

impl Panel {
    fn name(self) -> String {
        match self {
            Panel::Throughput => "calls per second".to_owned(),
            Panel::Percentile(percent) => format!("p{percent}, ms"),
        }
    }

    fn of(self, report: &Report) -> Vec<Vec<(f64, f64)>> {
        match self {
            Panel::Throughput => along(report, |slice| Some(slice.rate)),
            Panel::Percentile(percent) => along(report, |slice| slice.percentile(percent)),
        }
    }
}

/// Draws reports, each with its name, into a file: PNG if its name ends so, else SVG.
///
/// # Errors
/// There are more reports than lines that can be told apart, one of them does not know a percentile, or the file can't be
/// written: a sentence.
pub fn draw_several(reports: &[(String, Report)], panels: &[Panel], file: Output) -> Drawn {
    if reports.len() > COLOURS.len() {
        return Err(format!("{} reports are too many for one picture: {} at most", reports.len(), COLOURS.len()));
    }
    for panel in panels {
        let unknown = |(_, report): &&(String, Report)| report.cycles > 0 && panel.of(report).iter().all(Vec::is_empty);
        if let (Panel::Percentile(percent), Some((name, _))) = (panel, reports.iter().find(unknown)) {
            return Err(format!(
                "{name}: of its slices it keeps p50, p99 and p100, and not p{percent}: so do reports of earlier versions, and of runs \
                 that were killed"
            ));
        }
    }
    holdup_plot::save(&Page { reports, panels }, file)
}

struct Page<'a> {
    reports: &'a [(String, Report)],
    panels: &'a [Panel],
}

impl Picture for Page<'_> {
    fn size(&self) -> (u32, u32) {
        (WIDTH, HEAD + HEIGHT * self.panels.len() as u32)
    }

    fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Drawn {
        root.fill(&WHITE).map_err(text)?;
        let (head, rest) = root.split_vertically(HEAD);
        heading(&head, &self.title(), &self.sentence())?;
        for (panel, area) in self.panels.iter().zip(rest.split_evenly((self.panels.len(), 1))) {
            self.panel(&area, *panel)?;
        }
        Ok(())
    }
}

impl Page<'_> {
    fn title(&self) -> String {
        let mut titles: Vec<String> =
            self.reports.iter().map(|(_, report)| format!("{} {}", report.workload, report.function)).collect();
        titles.dedup();
        titles.join("; ")
    }

    fn sentence(&self) -> String {
        let of = |(name, report): &(String, Report)| {
            let (mean, p99) = (figure(report.throughput.mean), figure(report.latency_ms.p99));
            format!("{name}: {mean} calls/s, p99 {p99} ms")
        };
        self.reports.iter().map(of).collect::<Vec<_>>().join("; ")
    }

    fn panel<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, panel: Panel) -> Drawn {
        let lines: Vec<Line> = self
            .reports
            .iter()
            .zip(COLOURS)
            .map(|((name, report), colour)| (name.clone(), colour, panel.of(report)))
            .collect();
        let Some((low, high)) = bounds(&lines) else { return write(area, "no call succeeded", (60, 60), 12) };
        let end = self.reports.iter().map(|(_, report)| end(report)).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(area);
        chart.margin(10).margin_right(28).x_label_area_size(40).y_label_area_size(80);
        let seconds: (&str, &dyn Fn(&f64) -> String) = ("s", &|v| number(*v));
        match panel {
            Panel::Throughput => {
                let mut chart = chart.build_cartesian_2d(0.0..end, 0.0..high).map_err(text)?;
                mesh(&mut chart.configure_mesh(), seconds, &panel.name())?;
                draw_lines(&mut chart, lines, SeriesLabelPosition::LowerRight)
            }
            Panel::Percentile(_) => {
                let times = (low..high).log_scale().with_key_points(log_marks(low, high));
                let mut chart = chart.build_cartesian_2d(0.0..end, times).map_err(text)?;
                mesh(&mut chart.configure_mesh(), seconds, &panel.name())?;
                draw_lines(&mut chart, lines, SeriesLabelPosition::UpperRight)
            }
        }
    }
}
