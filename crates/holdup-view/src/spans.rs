//! The lanes of spans, below those of the threads that ran them: one span where it fills its pixels, a density where many lie in one.

use holdup_analysis::spans::{Drawn, Level, Standing};
use serde::Serialize;

use crate::framing::Numbers;
use crate::people::{People, Row};
use crate::request::LanesOf;
use crate::study::Study;
use crate::window::Grid;
use crate::{Answer, Cancel, Error, Result};

/// Rows in one question.
const MOST_ROWS: usize = 200;
/// No single span, or several.
const SEVERAL: u32 = u32::MAX;
/// Pixels that a name needs.
const NAMED_PX: f64 = 60.0;
/// Letters of an argument that are shown in a lane.
const MOST_LETTERS: usize = 80;

/// The spans of one level of a thread, or all of a group's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanRow {
    /// Whose.
    pub(crate) of: Row,
    /// How deep, from 0 on; a group has one only.
    pub(crate) level: usize,
}

#[derive(Serialize)]
struct Painted<'a> {
    window: [u64; 2],
    px: usize,
    ids: &'a [String],
    labels: Vec<Label>,
}

/// The name of a span that is wide enough for one.
#[derive(Serialize)]
struct Label {
    /// The row's place in `ids`.
    row: usize,
    from: u64,
    to: u64,
    text: String,
}

struct Canvas {
    share: Vec<u8>,
    standing: Vec<u8>,
    span: Vec<u32>,
}

impl SpanRow {
    /// `s1.t12`: the second level of a thread's spans.
    ///
    /// # Errors
    /// If there is no such row.
    pub(crate) fn parse(id: &str, study: &Study, people: &People) -> Result<SpanRow> {
        let parts = id.strip_prefix('s').and_then(|rest| rest.split_once('.'));
        let missing = || Error::Question(format!("the trace has no spans {id}"));
        let (level, of) = parts.ok_or_else(missing)?;
        let row = SpanRow { of: people.row(of, study)?, level: level.parse().map_err(|_| missing())? };
        if row.level < row_levels(study, people, row.of) { Ok(row) } else { Err(missing()) }
    }

    pub(crate) fn id(self, people: &People) -> String {
        format!("s{}.{}", self.level, people.id(self.of))
    }

    /// What lies there: of a group the levels of all its threads.
    pub(crate) fn levels<'a>(self, study: &'a Study, people: &People) -> Vec<(holdup_trace::ThreadIdx, &'a Level)> {
        match self.of {
            Row::Thread(thread) => study.spans.of(thread).get(self.level).map(|l| (thread, l)).into_iter().collect(),
            group => {
                let threads = people.threads(group).into_iter();
                threads.flat_map(|t| study.spans.of(t).iter().map(move |l| (t, l))).collect()
            }
        }
    }
}

/// How many rows of spans a row has below it.
pub(crate) fn row_levels(study: &Study, people: &People, row: Row) -> usize {
    match row {
        _ if study.spans.is_empty() => 0,
        Row::Cpu(_) => 0,
        Row::Thread(thread) => study.spans.of(thread).len(),
        group => usize::from(people.threads(group).iter().any(|&t| !study.spans.of(t).is_empty())),
    }
}

/// Answers `spans`: sections `share` (of each pixel that is within spans), `standing` (of the slowest there: the codes of [`Standing`]) and
/// `span` (the number of the one that fills most of it). O(spans in the window).
///
/// # Errors
/// If there is no such row or window, or if nobody wants to know any more.
pub(crate) fn answer(study: &Study, people: &People, asked: &LanesOf, cancel: &Cancel) -> Result<Answer> {
    if asked.ids.len() > MOST_ROWS {
        return Err(Error::Question(format!("{} rows are more than {MOST_ROWS}", asked.ids.len())));
    }
    let grid = Grid::new(asked.window, asked.px, study.timeline.end)?;
    let cells = asked.ids.len() * grid.px;
    let mut canvas = Canvas {
        share: Vec::with_capacity(cells),
        standing: Vec::with_capacity(cells),
        span: Vec::with_capacity(cells),
    };
    let mut labels = Vec::new();
    for (at, id) in asked.ids.iter().enumerate() {
        cancel.check()?;
        let levels = SpanRow::parse(id, study, people)?.levels(study, people);
        let alone = levels.len() == 1;
        let mut pixels = vec![Pixel::default(); grid.px];
        for span in levels.iter().flat_map(|(_, level)| level.within(grid.from, grid.to)) {
            let standing = study.spans.standing(span);
            grid.each(span.start, span.end, |px, ns| pixels[px].add(span, standing, ns, grid.width() as f32));
            let (from, to) = (span.start.max(grid.from), span.end.min(grid.to));
            if alone && (to - from) as f64 >= NAMED_PX * grid.width() {
                labels.push(Label { row: at, from, to, text: text(study, span) });
            }
        }
        pixels.iter().for_each(|p| canvas.push(p, grid.width() as f32));
    }
    let document = Painted { window: [grid.from, grid.to], px: grid.px, ids: &asked.ids, labels };
    let sections = vec![
        ("share", Numbers::U8(canvas.share)),
        ("standing", Numbers::U8(canvas.standing)),
        ("span", Numbers::U32(canvas.span)),
    ];
    Ok(Answer::with(&document, sections))
}

/// What a span is called in its lane.
fn text(study: &Study, span: &Drawn) -> String {
    let name = study.spans.names.get(span.name as usize).map_or("", |n| study.trace.text(n.name));
    let argument: String = study.trace.text(span.argument).chars().take(MOST_LETTERS).collect();
    if argument.is_empty() { name.to_owned() } else { format!("{name}  {argument}") }
}

/// What lies in a pixel.
#[derive(Clone, Copy)]
struct Pixel {
    /// Nanoseconds in spans.
    ns: f32,
    standing: Option<Standing>,
    span: u32,
}

impl Default for Pixel {
    fn default() -> Self {
        Pixel { ns: 0.0, standing: None, span: SEVERAL }
    }
}

impl Pixel {
    fn add(&mut self, span: &Drawn, standing: Standing, ns: f32, width: f32) {
        self.ns += ns;
        self.standing = self.standing.max(Some(standing));
        // Where several overlap, nobody is alone.
        self.span = if ns > width / 2.0 && self.ns <= width * 1.01 { span.id } else { self.span };
        self.span = if self.ns > width * 1.01 { SEVERAL } else { self.span };
    }
}

impl Canvas {
    fn push(&mut self, pixel: &Pixel, width: f32) {
        let share = (pixel.ns / width * 255.0).ceil().clamp(0.0, 255.0) as u8;
        self.share.push(if pixel.standing.is_some() { share.max(1) } else { 0 });
        self.standing.push(pixel.standing.map_or(0, |s| s as u8 + 1));
        self.span.push(pixel.span);
    }
}
