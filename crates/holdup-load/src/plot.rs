//! The scaling plot: points with their spread, the law, and what perfect scaling would be.

use holdup_base::numbers::figure;
use holdup_base::output::Output;
use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::prelude::*;
pub use holdup_plot::png;
use holdup_plot::{Drawn, FONT, Picture, heading, number, text, write};

use crate::law::Usl;
use crate::scale::{Axis, Fitted, Scaling};

const SIZE: (u32, u32) = (900, 560);
/// Above and below the chart, in pixels.
const HEAD: u32 = 78;
const FOOT: u32 = 34;
/// Steps of a curve: few, as their ends are whole pixels.
const STEPS: usize = 60;

const MEASURED: RGBColor = RGBColor(22, 83, 160);
const CROWDED: RGBColor = RGBColor(150, 150, 150);
const LAW: RGBColor = RGBColor(200, 60, 30);
const AMDAHL: RGBColor = RGBColor(60, 140, 70);

/// Draws `scaling` into a file: SVG, or what `to_png` makes of it if its name ends so.
///
/// # Errors
/// The file can't be written, or `to_png` fails; the message says which file.
pub fn draw(scaling: &Scaling, file: Output, to_png: impl FnOnce(&str) -> Result<Vec<u8>, String>) -> Drawn {
    holdup_plot::save_by(&Page { scaling }, file, to_png)
}

/// Name, colour, points.
type Curve = (String, RGBColor, Vec<(f64, f64)>);

struct Page<'a> {
    scaling: &'a Scaling,
}

impl Picture for Page<'_> {
    fn size(&self) -> (u32, u32) {
        SIZE
    }

    fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Drawn {
        root.fill(&WHITE).map_err(text)?;
        let (head, rest) = root.split_vertically(HEAD);
        let (middle, foot) = rest.split_vertically(SIZE.1 - HEAD - FOOT);
        heading(&head, &self.scaling.command, &self.sentence())?;
        self.chart(&middle)?;
        let foot_line = format!("{} CPUs; bars reach from the slowest to the fastest run", self.scaling.cpus);
        write(&foot, &foot_line, (16, 8), 12)
    }
}

impl Page<'_> {
    /// Where throughput ends, then why.
    fn sentence(&self) -> String {
        let mut first = self.scaling.findings.iter().take(3).cloned().collect::<Vec<_>>();
        first.reverse();
        first.sort_by_key(|f| f.starts_with(['σ', 'κ']));
        first.join("; ")
    }

    /// From the origin to a little beyond the largest count and throughput; the perfect line may leave at the top.
    fn ends(&self) -> (f64, f64) {
        let points = &self.scaling.points;
        let most_n = points.last().map_or(1, |p| p.n) as f64 * 1.06;
        let measured = points.iter().map(|p| p.high).fold(0.0, f64::max);
        let perfect = points.first().map_or(0.0, |p| p.throughput / p.n as f64) * most_n;
        (most_n, perfect.clamp(1.1 * measured, 1.6 * measured))
    }

    fn chart<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn {
        let (most_n, most) = self.ends();
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(28)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..most_n, 0.0..most)
            .map_err(text)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .x_labels(12)
            .x_label_formatter(&|v| if v.fract() == 0.0 { number(*v) } else { String::new() })
            .y_label_formatter(&|v| number(*v))
            .x_desc(if self.scaling.axis == Axis::Cpus { "CPUs" } else { self.scaling.axis.name() })
            .y_desc("units of work per second")
            .label_style((FONT, 12))
            .axis_desc_style((FONT, 13))
            .draw()
            .map_err(text)?;
        for (name, colour, curve) in self.curves(most_n) {
            let visible: Vec<(f64, f64)> = curve.into_iter().filter(|p| p.1 <= most).collect();
            chart
                .draw_series([PathElement::new(visible, colour.stroke_width(2))])
                .map_err(text)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(3)));
        }
        for crowded in [false, true] {
            let mine = || self.scaling.points.iter().filter(move |p| p.crowded == crowded);
            if mine().next().is_none() {
                continue;
            }
            let (colour, name) =
                if crowded { (CROWDED, "more threads than CPUs") } else { (MEASURED, "measured, median of runs") };
            let bars =
                mine().map(|p| PathElement::new([(p.n as f64, p.low), (p.n as f64, p.high)], colour.stroke_width(2)));
            chart.draw_series(bars).map_err(text)?;
            chart
                .draw_series(mine().map(|p| Circle::new((p.n as f64, p.throughput), 5, colour.filled())))
                .map_err(text)?
                .label(name)
                .legend(move |(x, y)| Circle::new((x + 10, y), 5, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .margin(14)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font((FONT, 12))
            .draw()
            .map_err(text)
    }

    /// Perfect scaling and the laws, from 1 on.
    fn curves(&self, most_n: f64) -> Vec<Curve> {
        let along = |law: Usl| {
            let step = |i: usize| 1.0 + (most_n - 1.0) * i as f64 / STEPS as f64;
            (0..=STEPS).map(step).map(|n| (n, law.at(n))).collect()
        };
        let one = self.scaling.points.first().map_or(0.0, |p| p.throughput / p.n as f64);
        let perfect = Usl { lambda: one, sigma: 0.0, kappa: 0.0 };
        let mut curves = vec![("perfect".to_owned(), CROWDED, along(perfect))];
        let figures = |f: &Fitted| figure(f.sigma);
        if let Some(amdahl) = &self.scaling.amdahl {
            curves.push((format!("Amdahl: σ = {}", figures(amdahl)), AMDAHL, along(amdahl.law())));
        }
        if let Some(usl) = &self.scaling.usl {
            let name = format!("USL: σ = {}, κ = {}", figures(usl), figure(usl.kappa));
            curves.push((name, LAW, along(usl.law())));
        }
        curves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{About, Axis};
    use crate::sweep::Run;

    #[test]
    fn a_plot_shows_points_and_laws() {
        let truth = Usl { lambda: 1000.0, sigma: 0.08, kappa: 0.006 };
        let run = |n: usize, times: f64| Run {
            n,
            elapsed_s: 1.0,
            user_s: n as f64,
            system_s: 0.0,
            resident: None,
            work: times * truth.at(n as f64),
        };
        let runs: Vec<Run> =
            [1, 2, 4, 8, 16, 32].into_iter().flat_map(|n| [0.96, 1.0, 1.05].map(|t| run(n, t))).collect();
        let about = About { command: "bench -t {n}".into(), axis: Axis::Threads, cpus: 16, beyond_cpus: false };
        let scaling = Scaling::new(about, &runs);
        let folder = tempfile::tempdir().expect("a folder");
        let [svg, png] = ["plot.svg", "plot.png"].map(|name| folder.path().join(name));
        let file = |path| Output::create(path, holdup_base::output::Readers::Umask).expect("a place");
        draw(&scaling, file(&svg), super::png).expect("an SVG");
        draw(&scaling, file(&png), super::png).expect("a PNG");
        let drawn = std::fs::read_to_string(svg).expect("the SVG");
        for word in ["bench -t {n}", "perfect", "USL", "Amdahl", "more threads than CPUs"] {
            assert!(drawn.contains(word), "{word}");
        }
        assert!(std::fs::read(&png).expect("the PNG").starts_with(b"\x89PNG"));
    }
}
