//! Plots of outcomes as SVG and PNG, with the machine in the caption. The font is in the program: none is needed on the
//! machine.

mod panel;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::result::{Outcome, Series};

const FONT: &str = "DejaVu Sans";
/// Of one panel, in pixels, with its legend beside it.
const PANEL: (u32, u32) = (860, 420);
/// Above and below the panels.
const HEAD: u32 = 72;
const FOOT: u32 = 34;

/// What a drawing function returns.
type Drawn = Result<(), String>;

/// Series that share an axis.
struct Group<'a> {
    axis: &'a str,
    series: Vec<&'a Series>,
}

/// Draws `outcome` as NAME.svg and NAME.png into `folder`, and returns the two paths.
///
/// # Errors
/// A file can't be written; the message says which.
pub fn draw(outcome: &Outcome, caption: &str, folder: &Path) -> Result<[PathBuf; 2], String> {
    register_font();
    let groups = groups(outcome);
    let columns = if groups.len() > 2 { 2 } else { 1 };
    let rows = groups.len().div_ceil(columns).max(1);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32 + HEAD + FOOT);
    let [svg, png] = ["svg", "png"].map(|kind| folder.join(format!("{}.{kind}", outcome.name)));
    let drawing = SVGBackend::new(&svg, size).into_drawing_area();
    page(&drawing, outcome, &groups, (rows, columns), caption).map_err(|e| format!("{}: {e}", svg.display()))?;
    drop(drawing);
    let mut pixels = vec![0; (size.0 * size.1 * 3) as usize];
    let drawing = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
    page(&drawing, outcome, &groups, (rows, columns), caption)?;
    drop(drawing);
    write_png(&png, size, &pixels).map_err(|e| format!("{}: {e}", png.display()))?;
    Ok([svg, png])
}

fn register_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let font = include_bytes!("plot/DejaVuSans.ttf");
        for style in [FontStyle::Normal, FontStyle::Bold] {
            // The bytes are those of a valid font; a test draws with them.
            let _ = plotters::style::register_font(FONT, style, font);
        }
    });
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

fn page<DB: DrawingBackend>(
    root: &DrawingArea<DB, Shift>,
    outcome: &Outcome,
    groups: &[Group],
    (rows, columns): (usize, usize),
    caption: &str,
) -> Drawn {
    root.fill(&WHITE).map_err(text)?;
    let (head, rest) = root.split_vertically(HEAD);
    let (panels, foot) = rest.split_vertically(PANEL.1 * rows as u32);
    let width = PANEL.0 as usize * columns;
    let word = if outcome.verdict.reproduced { "reproduced" } else { "not reproduced here" };
    write(&head, &format!("{}: {word}", outcome.name), (16, 8), 20)?;
    for (i, line) in two_lines(&outcome.verdict.because, width, 12).iter().enumerate() {
        write(&head, line, (16, 34 + 17 * i as i32), 12)?;
    }
    for (area, group) in panels.split_evenly((rows, columns)).iter().zip(groups) {
        panel::draw(area, group)?;
    }
    write(&foot, &cut(caption, width, 12), (16, 8), 12)?;
    root.present().map_err(text)
}

fn write<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, words: &str, at: (i32, i32), size: u32) -> Drawn {
    let font = (FONT, size).into_font().color(&BLACK);
    area.draw(&Text::new(words.to_owned(), at, font)).map_err(text)
}

/// Breaks a sentence at a space; the second line is cut if it has to be.
fn two_lines(line: &str, width: usize, size: usize) -> [String; 2] {
    let whole = |words: &str| cut(words, width, size) == words;
    let ends = line.match_indices(' ').map(|(at, _)| at).chain([line.len()]);
    let end = ends.take_while(|&end| whole(&line[..end])).last().unwrap_or(0);
    [line[..end].to_owned(), cut(line[end..].trim_start(), width, size)]
}

/// Shortens a line to a width in pixels; the font's letters are at most about 0.54 of its size wide on average.
fn cut(line: &str, width: usize, size: usize) -> String {
    let most = ((width.saturating_sub(32)) as f64 / (0.54 * size as f64)) as usize;
    if line.chars().count() <= most {
        return line.to_owned();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

// By value, as `map_err` gives it.
#[allow(clippy::needless_pass_by_value)]
fn text<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> String {
    error.to_string()
}

fn write_png(path: &Path, size: (u32, u32), pixels: &[u8]) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Point, Verdict};

    #[test]
    fn lines_are_cut_to_the_width() {
        assert_eq!(cut("short", 860, 12), "short");
        assert_eq!(two_lines("one two", 860, 12), ["one two", ""]);
        let [first, second] = two_lines(&"word ".repeat(40), 860, 12);
        assert!(first.ends_with("word") && second.starts_with("word"));
        let long = cut(&"x".repeat(500), 860, 12);
        assert!(long.ends_with('…') && long.chars().count() < 130);
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
        let [svg, png] = draw(&outcome, "a machine", &folder).expect("two files");
        let text = std::fs::read_to_string(svg).expect("the SVG");
        assert!(text.contains("std ≤ µs") && text.contains("threads") && text.contains("a machine"));
        assert!(std::fs::read(png).expect("the PNG").starts_with(b"\x89PNG"));
        std::fs::remove_dir_all(folder).expect("the folder again");
    }
}
