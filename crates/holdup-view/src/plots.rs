//! Results of `holdup lab`, `holdup scale`, `holdup load` and `holdup fleet` as plots.

mod fleet;

use holdup_base::named;
use serde::Serialize;
use serde_json::Value;

use crate::{Answer, Error, Result};

/// The points of a law's curve.
const CURVE: usize = 200;
/// Series of one plot, at most: of more nobody can tell which is which.
const MOST_SERIES: usize = 6;
/// The unit of series that show another series once more.
const DERIVED: &str = "cycles";

/// What is drawn of one document.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plots {
    title: String,
    plots: Vec<Plot>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    verdict: String,
    notes: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Axis {
    label: String,
    unit: String,
    log: bool,
    /// What the whole numbers from 0 on stand for, where they are no quantities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// Its ends, where several plots share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<[f64; 2]>,
}

named! {
    /// How a series is drawn.
    #[derive(Default)]
    enum Style {
        /// As what was measured.
        #[default]
        Points = "points",
        /// As a law.
        Line = "line",
        /// As what was measured of things that have no order.
        Dots = "dots",
    }
}

#[derive(Debug, Clone, Default, Serialize)]
struct Series {
    name: String,
    style: Style,
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Point {
    x: f64,
    y: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
}

impl Plots {
    /// Whether a file begins like a JSON document, which no trace does.
    pub fn is_json(head: &[u8]) -> bool {
        head.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
    }

    /// Reads a document that `--json` printed; `name` is the file's.
    ///
    /// # Errors
    /// If it is none that can be drawn: a sentence that says which can.
    pub fn read(bytes: &[u8], name: &str) -> Result<Self> {
        let refuse = |what: String| Error::Question(format!("{name}: {what}"));
        let document: Value = serde_json::from_slice(bytes).map_err(|e| refuse(format!("this is no JSON: {e}")))?;
        let schema = document["schema"].as_str().unwrap_or_default();
        let mut plots = Plots { title: name.to_owned(), plots: Vec::new() };
        match schema {
            "holdup.lab/1" => list(&document["experiments"]).for_each(|e| plots.plots.extend(experiment(e))),
            "holdup.scale/1" => plots.plots.push(scaling(&document)),
            "holdup.load/1" => plots.plots.extend(load(&document)),
            "holdup.fleet-report/1" => plots.plots.extend(fleet::report(&document)),
            "holdup.fleet-diff/1" => plots.plots.extend(fleet::changes(&document)),
            _ => {
                let what =
                    "neither a trace nor a result of holdup lab, scale, load or fleet (its `schema` would say so)";
                return Err(refuse(what.to_owned()));
            }
        }
        Ok(plots)
    }

    /// Answers `plots`.
    pub(crate) fn answer(&self) -> Answer {
        Answer::document(self)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn axis(label: impl Into<String>, unit: impl Into<String>) -> Axis {
    Axis { label: label.into(), unit: unit.into(), ..Axis::default() }
}

fn point(value: &Value, [x, y, low, high]: [&str; 4]) -> Option<Point> {
    let (x, y) = (value[x].as_f64()?, value[y].as_f64()?);
    Some(Point { x, y, low: value[low].as_f64(), high: value[high].as_f64() })
}

fn points(value: &Value, names: [&str; 4]) -> Vec<Point> {
    list(value).filter_map(|v| point(v, names)).collect()
}

/// One plot for each unit of an experiment, or several with the same axes.
fn experiment(value: &Value) -> Vec<Plot> {
    let mut plots: Vec<Plot> = Vec::new();
    let derived = |series: &Value| series["unit"] == DERIVED;
    let other = list(&value["series"]).any(|series| !derived(series));
    for series in list(&value["series"]).filter(|series| !other || !derived(series)) {
        let unit = text(&series["unit"]);
        let x = series["axis"].as_str().or(value["axis"].as_str()).unwrap_or("threads");
        let at = plots.iter().position(|p| p.y.unit == unit && p.x.label == x).unwrap_or_else(|| {
            let notes = list(&value["notes"]).map(text).collect();
            plots.push(Plot {
                title: text(&value["name"]),
                x: axis(x, ""),
                y: axis("median of the rounds", unit),
                verdict: text(&value["verdict"]["because"]),
                notes,
                ..Plot::default()
            });
            plots.len() - 1
        });
        let drawn = points(&series["points"], ["x", "median", "low", "high"]);
        plots[at].series.push(Series { name: text(&series["name"]), style: Style::Points, points: drawn });
    }
    plots.into_iter().map(logarithmic).flat_map(small_multiples).collect()
}

/// A plot of many series as several with few, on the same axes.
fn small_multiples(mut plot: Plot) -> Vec<Plot> {
    if plot.series.len() <= MOST_SERIES {
        return vec![plot];
    }
    let all = || plot.series.iter().flat_map(|s| &s.points);
    let ends = |of: &dyn Fn(&Point) -> [f64; 2]| {
        let both = all().map(of);
        both.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
    };
    plot.x.ends = ends(&|p| [p.x, p.x]);
    plot.y.ends = ends(&|p| [p.low.unwrap_or(p.y), p.high.unwrap_or(p.y)]);
    let series = std::mem::take(&mut plot.series);
    // As even as may be.
    let each = series.len().div_ceil(series.len().div_ceil(MOST_SERIES));
    series.chunks(each).map(|few| Plot { series: few.to_vec(), ..plot.clone() }).collect()
}

/// Values that differ by more than a hundred times are drawn by their size.
fn logarithmic(mut plot: Plot) -> Plot {
    let values = || plot.series.iter().flat_map(|s| &s.points).map(|p| p.y).filter(|y| *y > 0.0);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    plot.y.log = most > 100.0 * least;
    plot
}

fn scaling(document: &Value) -> Plot {
    let measured = points(&document["points"], ["n", "throughput", "low", "high"]);
    let most = measured.iter().map(|p| p.x).fold(1.0, f64::max);
    let mut series = vec![Series { name: "measured".to_owned(), style: Style::Points, points: measured }];
    for (key, name) in [("usl", "universal scalability law"), ("amdahl", "Amdahl's law")] {
        series.extend(law(&document[key], most).map(|points| Series {
            name: name.to_owned(),
            style: Style::Line,
            points,
        }));
    }
    Plot {
        title: text(&document["command"]),
        x: axis(document["axis"].as_str().unwrap_or("threads"), ""),
        y: axis("throughput", "units/s"),
        series,
        verdict: text(&document["advice"]),
        notes: list(&document["findings"]).map(text).collect(),
    }
}

/// X(n) = λ·n / (1 + σ·(n−1) + κ·n·(n−1))
fn law(fitted: &Value, most: f64) -> Option<Vec<Point>> {
    let (lambda, sigma) = (fitted["lambda"].as_f64()?, fitted["sigma"].as_f64()?);
    let kappa = fitted["kappa"].as_f64().unwrap_or(0.0);
    let at = |i: usize| {
        let n = 1.0 + (most - 1.0) * i as f64 / (CURVE - 1) as f64;
        Point { x: n, y: lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)), ..Point::default() }
    };
    Some((0..CURVE).map(at).collect())
}

/// Rate and response times over the run.
fn load(document: &Value) -> Vec<Plot> {
    let over = |y: &str| points(&document["series"], ["t_s", y, "", ""]);
    let title = text(&document["workload"]);
    let one = |name: &str, points| Series { name: name.to_owned(), style: Style::Line, points };
    let rate = Plot {
        title: format!("{title}: calls a second"),
        x: axis("time", "s"),
        y: axis("calls", "1/s"),
        series: vec![one("calls a second", over("rate"))],
        ..Plot::default()
    };
    let times = Plot {
        title: format!("{title}: response times"),
        x: axis("time", "s"),
        y: axis("response time", "ms"),
        series: vec![
            one("median", over("p50_ms")),
            one("99th percentile", over("p99_ms")),
            one("longest", over("max_ms")),
        ],
        ..Plot::default()
    };
    vec![rate, logarithmic(times)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_measured_and_its_law_are_drawn() {
        let document = json!({
            "schema": "holdup.scale/1", "command": "work {n}", "axis": "threads", "advice": "fine",
            "points": [{"n": 1, "throughput": 10.0, "low": 9.0, "high": 11.0}, {"n": 4, "throughput": 30.0, "low": 1.0, "high": 31.0}],
            "usl": {"lambda": 10.0, "sigma": 0.1, "kappa": 0.0}
        });
        let plots = Plots::read(document.to_string().as_bytes(), "scale.json").unwrap();
        let series = &plots.plots[0].series;
        assert_eq!(series.len(), 2);
        assert_eq!((series[0].points[1].x, series[0].points[1].high), (4.0, Some(31.0)));
        let last = series[1].points[CURVE - 1];
        assert!((last.y - 40.0 / 1.3).abs() < 1e-9, "{last:?}");
    }

    #[test]
    fn many_series_are_several_plots_with_the_same_axes() {
        let series = |i: u32| {
            json!({"name": format!("s{i}"), "unit": "ns", "points": [
                {"x": 1, "median": f64::from(i), "low": 0.5, "high": 9.0}, {"x": 2, "median": 3.0, "low": 2.0, "high": f64::from(10 + i)}]})
        };
        let all: Vec<Value> =
            (1..=8).map(series).chain([json!({"name": "d", "unit": "cycles", "points": []})]).collect();
        let document = json!({"schema": "holdup.lab/1", "experiments": [{"name": "counters", "series": all}]});
        let plots = Plots::read(document.to_string().as_bytes(), "lab.json").unwrap().plots;
        assert_eq!(plots.iter().map(|p| p.series.len()).collect::<Vec<_>>(), [4, 4]);
        for plot in &plots {
            assert_eq!((plot.x.ends, plot.y.ends), (Some([1.0, 2.0]), Some([0.5, 18.0])));
        }
    }

    #[test]
    fn other_documents_are_refused() {
        assert!(Plots::read(b"{\"schema\":\"holdup.table/1\"}", "t").is_err());
        assert!(Plots::read(b"{", "t").is_err());
        assert!(Plots::is_json(b" \n{") && !Plots::is_json(b"PK\x03\x04") && !Plots::is_json(b""));
    }
}
