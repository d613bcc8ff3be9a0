//! Plots of outcomes as SVG and PNG, with the machine in the caption. The font is in the program: none is needed on the
//! machine.

mod panel;

use std::io;
use std::path::{Path, PathBuf};

use holdup_base::output::{Output, Readers};
use holdup_plot::plotters::coord::Shift;
use holdup_plot::plotters::prelude::*;
use holdup_plot::{Drawn, Picture, cut, lines, write};

use crate::result::{Outcome, Series};

/// Of one panel, in pixels, with its legend beside it.
const PANEL: (u32, u32) = (860, 420);
/// Above the panels, without the lines of the verdict.
const HEAD: u32 = 46;
/// Of a line of the verdict.
const LINE: u32 = 17;
/// Below the panels.
const FOOT: u32 = 34;

/// Series that share an axis.
struct Group<'a> {
    axis: &'a str,
    series: Vec<&'a Series>,
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
    // What loses updates is in per cent, and stands apart from times.
    for series in outcome.series.iter().filter(|s| !s.points.is_empty()) {
        let axis = series.axis.as_deref().unwrap_or(&outcome.axis);
        match groups.iter_mut().find(|g| g.axis == axis && g.series[0].unit == series.unit) {
            Some(group) => group.series.push(series),
            None => groups.push(Group { axis, series: vec![series] }),
        }
    }
    groups
}

impl Page<'_> {
    /// Rows and columns of panels.
    fn grid(&self) -> (usize, usize) {
        let columns = if self.groups.len() > 2 { 2 } else { 1 };
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
        let legend = panel::legend_width(&self.groups);
        for (area, group) in panels.split_evenly((rows, columns)).iter().zip(&self.groups) {
            panel::draw(area, group, legend)?;
        }
        write(&foot, &cut(self.caption, width, 12), (16, 8), 12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Point, Verdict};

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
