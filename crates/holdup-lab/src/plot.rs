//! Plots of outcomes as SVG, and as PNG rendered from it, with the machine in the caption. The font is in the program: none is needed on the
//! machine.

mod heat;
mod panel;
mod scale;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use holdup_base::output::{Output, Readers};
use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, Picture, cut, lines, write};

use crate::experiments::TO_CPU;
use crate::result::{Outcome, Point, Series};
use scale::Scale;

/// Of one panel, in pixels, with its legend below.
const PANEL: (u32, u32) = (560, 400);
/// Panels side by side, at most.
const COLUMNS: usize = 3;
/// Series of a panel, at most; more are small multiples on the same scale.
const MOST: usize = 6;
/// Above the panels, without the lines of the verdict.
const HEAD: u32 = 46;
/// Of a line of the verdict.
const LINE: u32 = 17;
/// Below the panels.
const FOOT: u32 = 34;
/// The unit of series that show another series once more: a page has no room for both.
const DERIVED: &str = "cycles";

/// Series that share a panel.
struct Group<'a> {
    axis: &'a str,
    series: Vec<Cow<'a, Series>>,
    /// The scale of all panels that belong together.
    scale: Option<Scale>,
}

impl Group<'_> {
    fn unit(&self) -> &str {
        self.series.first().map_or("", |s| s.unit.as_str())
    }

    /// What the names of all series begin with.
    fn title(&self) -> &str {
        self.series.first().map_or("", |s| s.name.split(" from ").next().unwrap_or(""))
    }

    /// Whether places are the same kind of thing as series: from each to each.
    fn is_matrix(&self) -> bool {
        self.axis == TO_CPU
    }
}

/// The page of one outcome.
struct Page<'a> {
    outcome: &'a Outcome,
    groups: Vec<Group<'a>>,
    caption: &'a str,
}

/// The files of a plot: NAME.svg and NAME.png in `folder`. To be had before the experiment that is drawn into them.
///
/// # Errors
/// A file can't be written; the message says which.
pub fn outputs(name: &str, folder: &Path) -> io::Result<[Output; 2]> {
    let output = |kind| Output::create(&folder.join(format!("{name}.{kind}")), Readers::Umask);
    Ok([output("svg")?, output("png")?])
}

/// Draws `outcome` into both files, and returns their paths.
///
/// # Errors
/// A file can't be written; the message says which.
pub fn draw(outcome: &Outcome, caption: &str, files: [Output; 2]) -> Result<[PathBuf; 2], String> {
    let page = Page { outcome, groups: groups(outcome), caption };
    let paths = [&files[0], &files[1]].map(|file| file.path().to_owned());
    files.into_iter().try_for_each(|file| holdup_plot::save(&page, file))?;
    Ok(paths)
}

fn groups(outcome: &Outcome) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |axis, series: Cow<'_, Series>| {
        // What loses updates is in per cent, and stands apart from times.
        let matches =
            |g: &&mut Group| g.axis == axis && g.unit() == series.unit && (axis != TO_CPU || same_matrix(g, &series));
        match groups.iter_mut().find(matches) {
            Some(group) => group.series.push(Cow::Owned(series.into_owned())),
            None => groups.push(Group { axis, series: vec![Cow::Owned(series.into_owned())], scale: None }),
        }
    };
    let shown = || outcome.series.iter().filter(|s| !s.points.is_empty() && s.unit != DERIVED);
    for series in shown() {
        add(series.axis.as_deref().unwrap_or(&outcome.axis), Cow::Borrowed(series));
    }
    if !shown().any(|s| s.unit == RATE) {
        let over_threads =
            shown().filter(|s| s.axis.is_none() && outcome.axis == "threads" && s.unit.starts_with("ns/"));
        over_threads.filter_map(throughput).for_each(|series| add(&outcome.axis, Cow::Owned(series)));
    }
    groups.into_iter().flat_map(small_multiples).collect()
}

/// Operations of all threads together.
const RATE: &str = "ops/ms";

/// What the operations' costs say of their rate, for the panel beside their times.
fn throughput(series: &Series) -> Option<Series> {
    let rate = |p: &Point| {
        let median = p.costs.map(|c| c.throughput / 1e3).filter(|rate| *rate > 0.0)?;
        // The rate has the relative spread of the time.
        let (low, high) = (median * p.median / p.high.max(p.median), median * p.median / p.low.max(p.median / 3.0));
        Some(Point { x: p.x, median, low, high, ..Point::default() })
    };
    let points: Vec<Point> = series.points.iter().filter_map(rate).collect();
    let named = || Series { name: series.name.clone(), unit: RATE.to_owned(), axis: None, points: points.clone() };
    (points.len() > 1).then(named)
}

fn same_matrix(group: &Group, series: &Series) -> bool {
    series.name.starts_with(group.title())
}

/// A group as panels of few series on one scale. Series of one kind, by their name up to the first comma, stay together where
/// there is room.
fn small_multiples(group: Group<'_>) -> Vec<Group<'_>> {
    if group.is_matrix() {
        return vec![group];
    }
    let axis = group.axis;
    let scale = Scale::of(group.series.iter().flat_map(|s| &s.points), group.unit());
    let kind = |s: &Series| s.name.rsplit_once(", ").map_or(String::new(), |(kind, _)| kind.to_owned());
    let mut kinds: Vec<(String, Vec<Cow<Series>>)> = Vec::new();
    for series in group.series {
        let mine = kind(&series);
        match kinds.last_mut() {
            Some((last, all)) if *last == mine && all.len() < MOST => all.push(series),
            _ => kinds.push((mine, vec![series])),
        }
    }
    let mut panels: Vec<Group> = Vec::new();
    for (_, series) in kinds {
        match panels.last_mut() {
            Some(panel) if panel.series.len() + series.len() <= MOST => panel.series.extend(series),
            _ => panels.push(Group { axis, series, scale }),
        }
    }
    panels
}

impl Page<'_> {
    /// Rows and columns of panels.
    fn grid(&self) -> (usize, usize) {
        let columns = self.groups.len().clamp(2, COLUMNS);
        (self.groups.len().div_ceil(columns).max(1), columns)
    }

    fn verdict(&self) -> Vec<String> {
        lines(&self.outcome.verdict.because, PANEL.0 as usize * self.grid().1, 12)
    }

    fn head(&self) -> u32 {
        HEAD + LINE * self.verdict().len() as u32
    }
}

impl Picture for Page<'_> {
    fn size(&self) -> (u32, u32) {
        let (rows, columns) = self.grid();
        (PANEL.0 * columns as u32, PANEL.1 * rows as u32 + self.head() + FOOT)
    }

    fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Drawn {
        let (rows, columns) = self.grid();
        let outcome = self.outcome;
        root.fill(&WHITE).map_err(holdup_plot::text)?;
        let (head, rest) = root.split_vertically(self.head());
        let (panels, foot) = rest.split_vertically(PANEL.1 * rows as u32);
        let width = PANEL.0 as usize * columns;
        let word = if outcome.verdict.reproduced { "reproduced" } else { "not reproduced here" };
        write(&head, &format!("{}: {word}", outcome.name), (16, 8), 20)?;
        for (i, line) in self.verdict().iter().enumerate() {
            write(&head, line, (16, 34 + (LINE * i as u32) as i32), 12)?;
        }
        for (area, group) in panels.split_evenly((rows, columns)).iter().zip(&self.groups) {
            if group.is_matrix() { heat::draw(area, group)? } else { panel::draw(area, group, group.scale)? }
        }
        write(&foot, &cut(self.caption, width, 12), (16, 8), 12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Costs, Verdict};

    fn named(name: &str, unit: &str, throughput: f64) -> Series {
        let costs = Some(Costs { throughput, ..Costs::default() });
        let points = [1.0, 2.0].map(|x| Point { costs, ..Point::of(x, [x * 10.0]) }).to_vec();
        Series { name: name.to_owned(), unit: unit.to_owned(), axis: None, points }
    }

    fn outcome(axis: &str, series: Vec<Series>) -> Outcome {
        Outcome {
            name: "drawn".to_owned(),
            params: Default::default(),
            axis: axis.to_owned(),
            series,
            notes: Vec::new(),
            verdict: Verdict::default(),
            elapsed_s: 0.0,
        }
    }

    #[test]
    fn no_panel_has_more_than_six_series() {
        let kinds =
            ["a", "b", "c", "d"].into_iter().flat_map(|kind| ["x", "y", "z"].map(|how| format!("{kind}, {how}")));
        let outcome = outcome("threads", kinds.map(|name| named(&name, "ns/op", 5e6)).collect());
        let panels = groups(&outcome);
        let sizes: Vec<(&str, usize)> = panels.iter().map(|g| (g.unit(), g.series.len())).collect();
        assert_eq!(sizes, [("ns/op", 6), ("ns/op", 6), ("ops/ms", 6), ("ops/ms", 6)]);
        assert!(panels[0].scale == panels[1].scale && panels[0].scale != panels[2].scale);
        assert_eq!(panels[2].series[0].points[0].median, 5000.0);
    }

    #[test]
    fn a_matrix_is_one_panel() {
        let rows = ["cache line", "wake-up"]
            .into_iter()
            .flat_map(|what| (0..8).map(move |cpu| format!("{what} from CPU {cpu}")));
        let outcome = outcome(TO_CPU, rows.map(|name| named(&name, "ns", 0.0)).collect());
        assert_eq!(groups(&outcome).iter().map(|g| g.series.len()).collect::<Vec<_>>(), [8, 8]);
    }

    #[test]
    fn a_plot_is_drawn_in_both_formats() {
        let points = [1.0, 2.0].map(|x| Point::of(x, [x * 10.0, x * 11.0])).to_vec();
        let series = |name: &str, unit: &str| Series {
            name: name.to_owned(),
            unit: unit.to_owned(),
            axis: None,
            points: points.clone(),
        };
        let outcome = Outcome {
            name: "drawn".to_owned(),
            params: Default::default(),
            axis: "threads".to_owned(),
            series: vec![series("std ≤ µs", "ns/op"), series("lost", "% lost")],
            notes: Vec::new(),
            verdict: Verdict::default(),
            elapsed_s: 0.0,
        };
        let folder = std::env::temp_dir().join(format!("holdup-lab-plot-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [svg, png] = draw(&outcome, "a machine", outputs("drawn", &folder).expect("a folder")).expect("two files");
        let text = std::fs::read_to_string(svg).expect("the SVG");
        assert!(text.contains("std ≤ µs") && text.contains("threads") && text.contains("a machine"));
        assert!(std::fs::read(png).expect("the PNG").starts_with(b"\x89PNG"));
        std::fs::remove_dir_all(folder).expect("the folder again");
    }
}
