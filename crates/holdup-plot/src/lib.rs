//! Pictures as SVG, and as PNG rendered from it. The font is in the program: none is needed on the machine.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::Once;

use holdup_base::output::Output;
use holdup_base::text::{clean, escape, is_unsafe};
use plotters::coord::Shift;
use plotters::prelude::*;
#[cfg(feature = "png")]
use resvg::{tiny_skia, usvg};

pub use plotters;

/// The only font.
pub const FONT: &str = "DejaVu Sans";

/// What a drawing function returns.
pub type Drawn = Result<(), String>;

/// Something that can be drawn with any backend.
pub trait Picture {
    /// Width and height in pixels.
    fn size(&self) -> (u32, u32);

    /// Draws it on an area of that size.
    ///
    /// # Errors
    /// What the backend says.
    fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Drawn;
}

/// Draws `picture` into a file and puts that in its place: PNG if its name ends so, else SVG.
///
/// # Errors
/// The file can't be written; the message says which.
pub fn save(picture: &impl Picture, file: Output) -> Drawn {
    save_by(picture, file, png)
}

/// The same, with what makes a PNG of an SVG document: for a program that leaves that to another one.
///
/// # Errors
/// As [`save`], and what `to_png` says.
pub fn save_by(
    picture: &impl Picture,
    mut file: Output,
    to_png: impl FnOnce(&str) -> Result<Vec<u8>, String>,
) -> Drawn {
    let is_png = file.path().extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
    let bytes = svg(picture).and_then(|svg| if is_png { to_png(&svg) } else { Ok(svg.into_bytes()) });
    let drawn = bytes.and_then(|bytes| file.write_all(&bytes).map_err(|e| e.to_string()));
    drawn.map_err(|e| format!("{}: {e}", file.path().display()))?;
    file.commit().map_err(|e| e.to_string())
}

/// The picture as an SVG document.
///
/// # Errors
/// What the backend says.
pub fn svg(picture: &impl Picture) -> Result<String, String> {
    register_font();
    let mut drawn = String::new();
    let root = SVGBackend::with_string(&mut drawn, picture.size()).into_drawing_area();
    picture.draw(&root)?;
    root.present().map_err(text)?;
    drop(root);
    Ok(valid(&drawn))
}

/// The document without characters that XML forbids or that would act where it is shown: the backend escapes none of
/// them, whichever part of the picture they come from.
fn valid(drawn: &str) -> String {
    let mut out = String::with_capacity(drawn.len());
    for c in drawn.chars() {
        if c != '\n' && is_unsafe(c) { escape(c, &mut out) } else { out.push(c) }
    }
    out
}

/// Pixels of a PNG for one of the SVG: sharp in print, too.
#[cfg(feature = "png")]
const SCALE: f32 = 2.0;

/// An SVG document as a PNG image. Letters come from the one font that is in the program.
///
/// # Errors
/// If it is none, or too large for memory.
#[cfg(feature = "png")]
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options { font_family: FONT.to_owned(), ..usvg::Options::default() };
    options.fontdb_mut().load_font_data(FONT_DATA.to_vec());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("the picture has no size")?;
    let mut pixels =
        tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("the picture is too large for memory")?;
    pixels.fill(tiny_skia::Color::WHITE);
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| e.to_string())
}

/// An SVG document as a PNG image, of which this build knows nothing.
///
/// # Errors
/// Always: what draws it is not built in.
#[cfg(not(feature = "png"))]
pub fn png(_: &str) -> Result<Vec<u8>, String> {
    Err("this program was built without PNG: `make build` makes one that draws it; SVG needs nothing".to_owned())
}

const FONT_DATA: &[u8] = include_bytes!("DejaVuSans.ttf");

fn register_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for style in [FontStyle::Normal, FontStyle::Bold] {
            // The bytes are those of a valid font; a test draws with them.
            let _ = plotters::style::register_font(FONT, style, FONT_DATA);
        }
    });
}

/// Writes a line of `size` pixels at `at`.
///
/// # Errors
/// What the backend says.
pub fn write<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, words: &str, at: (i32, i32), size: u32) -> Drawn {
    let font = (FONT, size).into_font().color(&BLACK);
    area.draw(&Text::new(clean(words).into_owned(), at, font)).map_err(text)
}

/// Writes a title, and below it a sentence in two lines at most: 78 pixels in all.
///
/// # Errors
/// What the backend says.
pub fn heading<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, title: &str, sentence: &str) -> Drawn {
    let width = area.dim_in_pixel().0 as usize;
    write(area, &cut(title, width, 18), (16, 8), 18)?;
    for (i, line) in two_lines(sentence, width, 12).iter().enumerate() {
        write(area, line, (16, 36 + 17 * i as i32), 12)?;
    }
    Ok(())
}

/// Breaks a sentence at spaces into lines of a width in pixels; a longer word is cut.
pub fn lines(sentence: &str, width: usize, size: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace().map(clean) {
        match lines.last_mut() {
            Some(line) if letters(line) + 1 + letters(&word) <= room(width, size) => *line += &format!(" {word}"),
            _ => lines.push(cut(&word, width, size)),
        }
    }
    lines
}

/// As [`lines`], but two; the second is cut if it has to be.
pub fn two_lines(sentence: &str, width: usize, size: usize) -> [String; 2] {
    let mut all = lines(sentence, width, size).into_iter();
    let first = all.next().unwrap_or_default();
    [first, cut(&all.collect::<Vec<_>>().join(" "), width, size)]
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// Letters that a width in pixels has room for; the font's are at most about 0.5 of its size wide on average.
fn room(width: usize, size: usize) -> usize {
    (width.saturating_sub(32) as f64 / (0.5 * size as f64)) as usize
}

/// Shortens a line to a width in pixels, as it is shown: with what stands for characters that would act.
pub fn cut(line: &str, width: usize, size: usize) -> String {
    let (line, most) = (clean(line), room(width, size));
    if letters(&line) <= most {
        return line.into_owned();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The end of a linear axis from 0 that is a label of its own, and the distance of the labels: about five of them.
pub fn linear_end(high: f64) -> (f64, f64) {
    let rough = high.max(f64::MIN_POSITIVE) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|s| *s >= rough * 0.999).unwrap_or(rough);
    ((high / step).ceil() * step, step)
}

/// The ends of a logarithmic axis that are labels of their own: the nearest of 1, 2 and 5 times a power of ten.
pub fn log_ends(low: f64, high: f64) -> (f64, f64) {
    let marks = |v: f64| {
        let power = v.log10().floor() as i32;
        (power - 1..=power + 1).flat_map(|p| [1.0, 2.0, 5.0].map(|s| s * 10f64.powi(p)))
    };
    let below = marks(low).filter(|m| *m <= low * 1.001).fold(f64::MIN_POSITIVE, f64::max);
    let above = marks(high).filter(|m| *m >= high * 0.999).fold(f64::MAX, f64::min);
    (below, above)
}

/// Labels of a logarithmic axis: powers of ten, with their double and fivefold where there are few.
pub fn log_marks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high / low > 1000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    all.filter(|mark| (low * 0.999..=high * 1.001).contains(mark)).collect()
}

/// An error of the backend as text.
// By value, as `map_err` gives it.
#[allow(clippy::needless_pass_by_value)]
pub fn text<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> String {
    error.to_string()
}

/// A label of an axis: no more digits than it needs.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 1e6 => format!("{} M", trimmed(value / 1e6)),
        v if v >= 1e4 && v % 100.0 == 0.0 => format!("{} k", trimmed(value / 1e3)),
        // Two places would leave nothing of it.
        v if v < 0.1 => holdup_base::numbers::figure(value),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 0 } else { 2 };
    let text = format!("{value:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_width() {
        assert_eq!(cut("short", 860, 12), "short");
        assert_eq!(lines("one  two", 860, 12), ["one two"]);
        let broken = lines(&"word ".repeat(40), 860, 12);
        assert!(broken.len() == 2 && broken.iter().all(|line| line.ends_with("word")));
        let [first, second] = two_lines(&"word ".repeat(90), 860, 12);
        assert!(first.ends_with("word") && second.ends_with('…'));
        let long = cut(&"x".repeat(500), 860, 12);
        assert!(long.ends_with('…') && long.chars().count() == 138);
    }

    /// Whatever is given, in each way in which a picture shows text.
    struct Words<'a>(&'a str);

    impl Picture for Words<'_> {
        fn size(&self) -> (u32, u32) {
            (400, 300)
        }

        fn draw<DB: DrawingBackend>(&self, root: &DrawingArea<DB, Shift>) -> Drawn {
            heading(root, self.0, self.0)?;
            let mut chart = ChartBuilder::on(root)
                .caption(self.0, (FONT, 12))
                .x_label_area_size(40)
                .build_cartesian_2d(0.0..1.0, 0.0..1.0)
                .map_err(text)?;
            chart.configure_mesh().x_desc(self.0).label_style((FONT, 12)).draw().map_err(text)?;
            let line = chart.draw_series([PathElement::new([(0.0, 0.0), (1.0, 1.0)], BLACK)]).map_err(text)?;
            line.label(self.0);
            chart.configure_series_labels().label_font((FONT, 12)).draw().map_err(text)
        }
    }

    #[test]
    fn a_picture_is_valid_xml_whatever_it_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let hostile = "a\0\x1b[2J\r\u{85}\u{9b}\u{202e}\u{2066}\u{ffff}<b onclick=\"x\">&'--> ]]> \u{1fffe}";
        let path = folder.path().join("a.svg");
        save(&Words(hostile), Output::create(&path, holdup_base::output::Readers::Umask).expect("a place"))
            .expect("a picture");
        let drawn = std::fs::read_to_string(&path).expect("text");
        assert!(!drawn.contains(|c| c != '\n' && is_unsafe(c)), "{drawn}");
        let document = roxmltree::Document::parse(&drawn).expect("valid XML");
        let said: Vec<&str> = document.descendants().filter_map(|n| n.text()).map(str::trim).collect();
        assert!(said.contains(&&*clean(hostile)), "{said:?}");
        assert!(!document.descendants().any(|n| n.has_tag_name("b")));
        let png = folder.path().join("a.png");
        let saved = save(&Words(hostile), Output::create(&png, holdup_base::output::Readers::Umask).expect("a place"));
        if cfg!(feature = "png") {
            saved.expect("a picture");
            assert!(std::fs::read(png).expect("bytes").ends_with(b"IEND\xaeB`\x82"));
        } else {
            assert!(saved.expect_err("no PNG").contains("make build"));
        }
    }

    #[test]
    fn a_cut_counts_what_is_shown() {
        assert_eq!(cut(&"\x1b".repeat(40), 860, 12).chars().count(), 138);
        assert_eq!(lines("a\x1bb\nc", 860, 12), ["a\\x1bb c"]);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([0.0, 0.25, 2.0, 131_072.0, 4e6, 9999.0].map(number), ["0", "0.25", "2", "131072", "4 M", "9999"]);
    }

    #[test]
    fn axes_end_at_a_label() {
        assert_eq!(linear_end(93.0), (100.0, 20.0));
        assert_eq!(linear_end(5.0), (5.0, 1.0));
        let (end, step) = linear_end(0.83);
        assert!((end - 1.0).abs() < 1e-9 && (step - 0.2).abs() < 1e-9, "{end} {step}");
        assert_eq!(log_ends(3.0, 90.0), (2.0, 100.0));
        assert_eq!(log_ends(0.3, 2.0), (0.2, 2.0));
    }

    #[test]
    fn a_logarithmic_axis_has_few_labels() {
        assert_eq!(log_marks(3.0, 90.0), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(log_marks(0.5, 2000.0), [1.0, 10.0, 100.0, 1000.0]);
    }
}
