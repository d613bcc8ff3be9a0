//! What changed on a day, over all hosts, and whether that is more than chance.
//!
//! Each host is compared with itself: its shares before the day and from it on. Hosts are what is counted, so that one of them that
//! went mad is no change of the fleet. The test is Student's for pairs; its results are held against each other by Holm's
//! method (1979), so that among hundreds of causes none is called significant by luck: less than once in a hundred questions.

use std::collections::BTreeMap;

use holdup_base::named;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::rows::{Cell, Rows};

/// A change of less is not worth a line, in shares of a host's CPU time.
const MATTERS: f64 = 0.01;
/// Fewer hosts say nothing about chance.
const FEWEST: usize = 6;
/// How often a change may be called significant that is none, in all answers together.
const LEVEL: f64 = 0.01;

named! {
    /// What the test says.
    pub enum Significance {
        /// More than before, by more than chance.
        Rose = "rose",
        /// Less.
        Fell = "fell",
        /// It may be chance.
        Chance = "chance",
    }
}

/// How much a cause held up before, and from then on.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Change {
    /// The process.
    pub process: String,
    /// Its function.
    pub function: String,
    /// The share of the CPU time that it held up before, on average over hosts.
    pub before: f64,
    /// From then on.
    pub after: f64,
    /// Hosts on which that changed by more than a hundredth of their CPU time, in the same direction.
    pub hosts: usize,
    /// How likely such a change is by chance, for this cause alone.
    pub p: f64,
    /// What the test says, for all causes together.
    pub significance: Significance,
    /// The hosts that have it, with their own shares; of significant changes alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_host: Vec<HostShares>,
}

/// A host's share of CPU time that a cause held up.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct HostShares {
    /// The host.
    pub host: String,
    /// Before.
    pub before: f64,
    /// From then on.
    pub after: f64,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Changes {
    /// Hosts with traces on both sides.
    pub hosts: usize,
    /// Whether these are too few to tell a change from chance.
    pub too_few: bool,
    /// The significant ones first, then by size.
    pub changes: Vec<Change>,
}

/// A host's time on the two sides.
struct Sides {
    total: [f64; 2],
    /// By how much its share of time held up changed, for whatever reason.
    change: f64,
}

impl Changes {
    /// From the rows of [`Question::Sides`](crate::Question::Sides) and [`Question::Changes`](crate::Question::Changes), one of `tries` that
    /// are made. O(rows · log causes).
    pub fn of(sides: &Rows, causes: &Rows, tries: usize) -> Changes {
        let hosts = hosts(sides);
        let causes = by_cause(causes);
        let mut changes: Vec<Change> = causes.iter().filter_map(|(cause, rows)| change(*cause, rows, &hosts)).collect();
        let too_few = hosts.len() < FEWEST;
        if !too_few {
            judge(&mut changes, tries);
        }
        for change in changes.iter_mut().filter(|c| c.significance != Significance::Chance) {
            change.by_host = by_host(&causes[&(change.process.as_str(), change.function.as_str())], &hosts);
        }
        changes.sort_by(|a, b| {
            let (a_is, b_is) = (a.significance == Significance::Chance, b.significance == Significance::Chance);
            a_is.cmp(&b_is).then_with(|| b.size().total_cmp(&a.size())).then_with(|| a.function.cmp(&b.function))
        });
        Changes { hosts: hosts.len(), too_few, changes }
    }

    /// Of nothing.
    pub(crate) fn none() -> Changes {
        Changes { hosts: 0, too_few: true, changes: Vec::new() }
    }

    /// How likely the least likely one is.
    pub(crate) fn least(&self) -> f64 {
        self.changes.iter().map(|c| c.p).fold(1.0, f64::min)
    }
}

impl Sides {
    fn shares(&self, ns: [f64; 2]) -> [f64; 2] {
        [ns[0] / self.total[0], ns[1] / self.total[1]]
    }
}

impl Change {
    fn size(&self) -> f64 {
        (self.after - self.before).abs()
    }
}

fn hosts(sides: &Rows) -> BTreeMap<&str, Sides> {
    let both = sides.rows.iter().filter_map(|row| {
        let get = |column| sides.get(row, column).number() as f64;
        let total = [get("total_before_ns"), get("total_after_ns")];
        let change = get("held_up_after_ns") / total[1] - get("held_up_before_ns") / total[0];
        let is_told = total.iter().all(|ns| *ns > 0.0);
        is_told.then(|| (sides.get(row, "host").text(), Sides { total, change }))
    });
    both.collect()
}

type Cause<'a> = (&'a str, &'a str);

/// By cause: of each host that has it, what it held up before and after.
fn by_cause(causes: &Rows) -> BTreeMap<Cause<'_>, Vec<(&str, [f64; 2])>> {
    let mut all: BTreeMap<Cause, Vec<(&str, [f64; 2])>> = BTreeMap::new();
    for row in &causes.rows {
        let get = |column| causes.get(row, column);
        let cause = (get("process").text(), get("function").text());
        let sides = [get("before_ns"), get("after_ns")].map(|c: &Cell| c.number() as f64);
        all.entry(cause).or_default().push((get("host").text(), sides));
    }
    all
}

fn change(cause: Cause, rows: &[(&str, [f64; 2])], hosts: &BTreeMap<&str, Sides>) -> Option<Change> {
    let n = hosts.len() as f64;
    let mut sums = [0.0; 2];
    let mut changed = Vec::new();
    for (host, ns) in rows {
        let Some(sides) = hosts.get(host) else { continue };
        let shares = sides.shares(*ns);
        sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        changed.push(counted(shares[1] - shares[0], sides.change));
    }
    let [before, after] = sums.map(|sum| sum / n);
    let without = hosts.len().saturating_sub(changed.len());
    let rises = after > before;
    let hosts = changed.iter().filter(|d| d.abs() > MATTERS && (**d > 0.0) == rises).count();
    let p = p_of_pairs(&changed, without);
    (!changed.is_empty()).then(|| Change {
        process: cause.0.to_owned(),
        function: cause.1.to_owned(),
        before,
        after,
        hosts,
        p,
        significance: Significance::Chance,
        by_host: Vec::new(),
    })
}

fn by_host(rows: &[(&str, [f64; 2])], hosts: &BTreeMap<&str, Sides>) -> Vec<HostShares> {
    let of = |(host, ns): &(&str, [f64; 2])| {
        let [before, after] = hosts.get(host)?.shares(*ns);
        Some(HostShares { host: (*host).to_owned(), before, after })
    };
    rows.iter().filter_map(of).collect()
}

/// A cause's change counts as far as the whole host's time held up went the same way: what only moved from one name to another, or
/// made room for another cause, is no change of the fleet.
fn counted(of_cause: f64, of_host: f64) -> f64 {
    if of_cause * of_host <= 0.0 { 0.0 } else { of_cause.signum() * of_cause.abs().min(of_host.abs()) }
}

/// Student's test for pairs, both ways; `zeros` more pairs did not change.
fn p_of_pairs(changed: &[f64], zeros: usize) -> f64 {
    let n = (changed.len() + zeros) as f64;
    let mean = changed.iter().sum::<f64>() / n;
    if n < 2.0 || mean == 0.0 {
        return 1.0;
    }
    let squares = changed.iter().map(|d| (d - mean).powi(2)).sum::<f64>() + zeros as f64 * mean * mean;
    let deviation = (squares / (n - 1.0)).sqrt().max(f64::MIN_POSITIVE);
    let t = (mean / (deviation / n.sqrt())).abs();
    StudentsT::new(0.0, 1.0, n - 1.0).map_or(1.0, |student| (2.0 * student.sf(t)).min(1.0))
}

/// Holm's method: the most unlikely first, each against the number of those that are left.
fn judge(changes: &mut [Change], tries: usize) {
    changes.sort_by(|a, b| a.p.total_cmp(&b.p));
    let all = changes.len();
    for (i, change) in changes.iter_mut().enumerate() {
        if change.p * ((all - i) * tries) as f64 > LEVEL {
            break;
        }
        if change.hosts > 0 {
            change.significance = if change.after > change.before { Significance::Rose } else { Significance::Fell };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &str, rows: Vec<Vec<Cell>>) -> Rows {
        Rows { columns: columns.split(' ').map(str::to_owned).collect(), rows }
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    /// Shares by host in thousandths: noise of some causes, and what is `planted` from then on in `worse` of the hosts.
    fn fleet(hosts: i64, worse: i64, planted: i64) -> Changes {
        let noise = |host: i64, salt: i64| (host * 7919 + salt * 104_729) % 41;
        let (mut sides, mut causes) = (Vec::new(), Vec::new());
        for host in 0..hosts {
            let name = format!("h{host}");
            let mut held = [0, 0];
            for cause in 0..30 {
                let mut now = [noise(host, cause), noise(host, cause + 1000)];
                now[1] += if cause == 3 && host < worse { planted } else { 0 };
                held.iter_mut().zip(now).for_each(|(sum, ns)| *sum += ns);
                causes.push(vec![
                    text("p"),
                    text(&format!("f{cause}")),
                    text(&name),
                    Cell::Number(now[0]),
                    Cell::Number(now[1]),
                ]);
            }
            let numbers = [held[0], 10_000, held[1], 10_000].map(Cell::Number);
            sides.push(std::iter::once(text(&name)).chain(numbers).collect());
        }
        Changes::of(
            &rows("host held_up_before_ns total_before_ns held_up_after_ns total_after_ns", sides),
            &rows("process function host before_ns after_ns", causes),
            1,
        )
    }

    fn significant(changes: &Changes) -> Vec<&str> {
        let told = changes.changes.iter().filter(|c| c.significance != Significance::Chance);
        told.map(|c| c.function.as_str()).collect()
    }

    #[test]
    fn a_tenth_of_the_hosts_is_seen_and_nothing_else() {
        let found = fleet(200, 20, 1500);
        assert_eq!(significant(&found), ["f3"]);
        let first = &found.changes[0];
        assert_eq!((first.hosts, first.significance), (20, Significance::Rose));
        let of_host = |host: &str| first.by_host.iter().find(|h| h.host == host).map(|h| h.after - h.before);
        assert!(of_host("h19").unwrap() > 0.14 && of_host("h20").unwrap() < 0.01, "{first:?}");
        assert!(found.changes[1..].iter().all(|c| c.by_host.is_empty()));
        assert!((first.after - first.before - 0.015).abs() < 0.001, "{first:?}");
    }

    #[test]
    fn one_host_alone_is_no_change_of_the_fleet() {
        assert_eq!(significant(&fleet(200, 1, 5000)), [""; 0]);
        assert_eq!(significant(&fleet(200, 0, 0)), [""; 0]);
    }

    #[test]
    fn few_hosts_say_nothing_about_chance() {
        let found = fleet(4, 4, 5000);
        assert!(found.too_few);
        assert_eq!(found.changes[0].function, "f3");
        assert_eq!(significant(&found), [""; 0]);
        assert_eq!(significant(&fleet(8, 8, 5000)), ["f3"]);
    }

    #[test]
    fn what_only_makes_room_is_no_change() {
        assert_eq!(
            [counted(-0.2, 0.3), counted(0.2, 0.0), counted(0.2, 0.05), counted(-0.2, -0.3)],
            [0.0, 0.0, 0.05, -0.2]
        );
    }
}
