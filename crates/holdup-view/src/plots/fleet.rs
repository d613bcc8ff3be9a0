//! Answers of `holdup fleet` as plots: shares of CPU time by day and by host.

use serde_json::Value;

use super::{MOST_SERIES, Plot, Point, Series, Style, axis, list, text};

/// What share of its CPUs' time a fleet, a host or a cause held up.
const SHARE: (&str, &str) = ("CPU time that stood still", "%");

/// Rows of an answer, by the names of its columns.
struct Rows<'a>(&'a Value);

impl<'a> Rows<'a> {
    /// The values of `column`, from the first row to the last; none if there is no such column.
    fn column(&self, column: &str) -> impl Iterator<Item = &'a Value> {
        let at = list(&self.0["columns"]).position(|name| name == column);
        list(&self.0["rows"]).filter_map(move |row| row.get(at?))
    }

    fn texts(&self, column: &str) -> impl Iterator<Item = &'a str> {
        self.column(column).map(|value| value.as_str().unwrap_or_default())
    }

    fn numbers(&self, column: &str) -> impl Iterator<Item = f64> {
        self.column(column).map(|value| value.as_f64().unwrap_or_default())
    }
}

/// The course of the causes that cost most, and the hosts beside each other.
pub(super) fn report(document: &Value) -> Vec<Plot> {
    [by_day(document), by_host(document)].into_iter().filter(|plot| !plot.series.is_empty()).collect()
}

fn by_day(document: &Value) -> Plot {
    let (days, course) = (Rows(&document["days"]), Rows(&document["course"]));
    let dates: Vec<&str> = days.texts("date").collect();
    let totals: Vec<f64> = days.numbers("total_ns").collect();
    // A day without a row of a cause is one on which it held up nothing.
    let mut causes: Vec<((&str, &str), Vec<f64>)> = Vec::new();
    for ((date, cause), ns) in
        course.texts("date").zip(course.texts("process").zip(course.texts("function"))).zip(course.numbers("blame_ns"))
    {
        let at = causes.iter().position(|(known, _)| *known == cause).unwrap_or_else(|| {
            causes.push((cause, vec![0.0; dates.len()]));
            causes.len() - 1
        });
        if let Some(day) = dates.iter().position(|known| *known == date) {
            causes[at].1[day] += ns;
        }
    }
    causes.sort_by(|a, b| b.1.iter().sum::<f64>().total_cmp(&a.1.iter().sum()));
    causes.truncate(MOST_SERIES);
    let drawn = |ns: &[f64]| {
        let shares = ns.iter().zip(&totals).enumerate().filter(|(_, (_, total))| **total > 0.0);
        shares.map(|(day, (ns, total))| dot(day as f64, 100.0 * ns / total)).collect()
    };
    let series =
        causes.iter().map(|(cause, ns)| Series { name: named(*cause), style: Style::Points, points: drawn(ns) });
    let mut plot = Plot {
        title: "What held the fleet up, day by day".to_owned(),
        x: axis("day with traces", ""),
        y: axis(SHARE.0, SHARE.1),
        series: series.collect(),
        ..Plot::default()
    };
    plot.x.names = dates.iter().map(|date| (*date).to_owned()).collect();
    plot
}

fn by_host(document: &Value) -> Plot {
    let hosts = Rows(&document["hosts"]);
    let times = hosts.numbers("held_up_ns").zip(hosts.numbers("total_ns")).filter(|(_, total)| *total > 0.0);
    let mut shares: Vec<f64> = times.map(|(held, total)| 100.0 * held / total).collect();
    shares.sort_by(f64::total_cmp);
    let points: Vec<Point> = shares.iter().enumerate().map(|(i, share)| dot((i + 1) as f64, *share)).collect();
    let series = Series { name: "a host".to_owned(), style: Style::Dots, points };
    let worst = list(&document["different"]).next();
    Plot {
        title: "Hosts, by how much they were held up".to_owned(),
        x: axis("hosts, the least first", ""),
        y: axis(SHARE.0, SHARE.1),
        series: Some(series).filter(|s| !s.points.is_empty()).into_iter().collect(),
        verdict: worst.map_or_else(String::new, |d| {
            format!("{} differs most from its peers, by {}.", text(&d["host"]), cause_of(d))
        }),
        ..Plot::default()
    }
}

/// Each host before and after: what did not change lies on the line.
pub(super) fn changes(document: &Value) -> Option<Plot> {
    let changed = list(&document["changes"]).filter(|c| list(&c["by_host"]).next().is_some()).take(MOST_SERIES);
    let mut series: Vec<Series> = changed.map(before_and_after).collect();
    let most = series.iter().flat_map(|s| &s.points).map(|p| p.x.max(p.y)).fold(0.0, f64::max);
    if series.is_empty() {
        return None;
    }
    let ends = vec![dot(0.0, 0.0), dot(most, most)];
    series.push(Series { name: "no change".to_owned(), style: Style::Line, points: ends });
    let at = text(&document["at"]);
    Some(Plot {
        title: format!("What changed on {at}, host by host"),
        x: axis(format!("before {at}"), SHARE.1),
        y: axis(format!("from {at} on"), SHARE.1),
        series,
        notes: vec![format!(
            "{} hosts have traces of both times; those without the cause are not drawn.",
            document["hosts"]
        )],
        ..Plot::default()
    })
}

fn before_and_after(change: &Value) -> Series {
    let share = |host: &Value, side: &str| Some(100.0 * host[side].as_f64()?);
    let points = list(&change["by_host"]).filter_map(|host| Some(dot(share(host, "before")?, share(host, "after")?)));
    Series { name: cause_of(change), style: Style::Dots, points: points.collect() }
}

fn dot(x: f64, y: f64) -> Point {
    Point { x, y, ..Point::default() }
}

/// The cause that a row of an answer is about.
fn cause_of(row: &Value) -> String {
    named((row["process"].as_str().unwrap_or_default(), row["function"].as_str().unwrap_or_default()))
}

/// A cause.
fn named((process, function): (&str, &str)) -> String {
    if function.is_empty() { process.to_owned() } else { format!("{function} ({process})") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Plots;

    #[test]
    fn causes_are_drawn_by_day_and_hosts_by_their_share() {
        let document = json!({
            "schema": "holdup.fleet-report/1",
            "days": {"columns": ["date", "total_ns"], "rows": [["2026-11-01", 1000], ["2026-11-03", 500]]},
            "course": {"columns": ["date", "process", "function", "blame_ns"], "rows": [
                ["2026-11-01", "p", "little", 10], ["2026-11-01", "p", "much", 100], ["2026-11-03", "p", "much", 100]]},
            "hosts": {"columns": ["host", "held_up_ns", "total_ns"], "rows": [["a", 50, 100], ["b", 10, 100], ["c", 0, 0]]},
            "different": [{"host": "a", "process": "p", "function": "much"}]
        });
        let plots = Plots::read(document.to_string().as_bytes(), "fleet.json").unwrap().plots;
        assert_eq!(plots[0].x.names, ["2026-11-01", "2026-11-03"]);
        let drawn = |plot: usize, series: usize| {
            let series = &plots[plot].series[series];
            (series.name.clone(), series.points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>())
        };
        assert_eq!(drawn(0, 0), ("much (p)".to_owned(), vec![(0.0, 10.0), (1.0, 20.0)]));
        assert_eq!(drawn(0, 1), ("little (p)".to_owned(), vec![(0.0, 1.0), (1.0, 0.0)]));
        assert_eq!(drawn(1, 0).1, [(1.0, 10.0), (2.0, 50.0)]);
        assert_eq!(plots[1].verdict, "a differs most from its peers, by much (p).");
    }

    #[test]
    fn only_significant_changes_are_drawn() {
        let change = |name: &str, by_host| json!({"process": "p", "function": name, "by_host": by_host});
        let hosts = json!([{"host": "a", "before": 0.01, "after": 0.2}]);
        let document =
            |changes| json!({"schema": "holdup.fleet-diff/1", "at": "2026-11-05", "hosts": 7, "changes": changes});
        let both = document(json!([change("f", hosts), change("g", json!([]))])).to_string();
        let plots = Plots::read(both.as_bytes(), "diff.json").unwrap().plots;
        let series = &plots[0].series;
        assert_eq!(series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["f (p)", "no change"]);
        assert_eq!((series[0].points[0].x, series[0].points[0].y), (1.0, 20.0));
        let none = document(json!([])).to_string();
        assert!(Plots::read(none.as_bytes(), "diff.json").unwrap().plots.is_empty());
    }
}
