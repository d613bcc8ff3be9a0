//! Hosts that differ from their peers.

use std::collections::BTreeMap;

use holdup_base::stats::median;

use crate::rows::Rows;

/// A host that is held up by a cause much more than others are.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Different {
    /// The host.
    pub host: String,
    /// The process.
    pub process: String,
    /// Its function.
    pub function: String,
    /// The share of this host's CPU time that it holds up.
    pub share: f64,
    /// That of the host in the middle.
    pub typical: f64,
}

/// Fewer hosts have no middle to differ from.
const FEWEST: usize = 5;
/// By how much a host must differ, in shares of its CPU time.
const MATTERS: f64 = 0.02;
/// And in how many times the spread of the fleet: the median distance from the median, as that of normal numbers to their deviation.
const SPREADS: f64 = 6.0;
const MEDIAN_TO_DEVIATION: f64 = 1.4826;

impl Different {
    /// From the rows of [`Question::Hosts`](crate::Question::Hosts) and [`Question::HostCauses`](crate::Question::HostCauses), those that differ most first.
    /// O(causes · hosts · log hosts).
    pub fn find(hosts: &Rows, causes: &Rows) -> Vec<Different> {
        let total: BTreeMap<&str, f64> = hosts
            .rows
            .iter()
            .map(|row| (hosts.get(row, "host").text(), hosts.get(row, "total_ns").number() as f64))
            .collect();
        if total.len() < FEWEST {
            return Vec::new();
        }
        let mut by_cause: BTreeMap<(&str, &str), Vec<(&str, f64)>> = BTreeMap::new();
        for row in &causes.rows {
            let get = |column| causes.get(row, column);
            let host = get("host").text();
            let share = get("blame_ns").number() as f64 / total.get(host).copied().unwrap_or_default().max(1.0);
            by_cause.entry((get("process").text(), get("function").text())).or_default().push((host, share));
        }
        let mut all: Vec<Different> =
            by_cause.iter().flat_map(|(cause, shares)| of_cause(*cause, shares, total.len())).collect();
        all.sort_by(|a, b| (b.share - b.typical).total_cmp(&(a.share - a.typical)).then_with(|| a.host.cmp(&b.host)));
        all
    }
}

fn of_cause(cause: (&str, &str), shares: &[(&str, f64)], hosts: usize) -> Vec<Different> {
    let mut all: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
    all.resize(hosts, 0.0);
    let typical = median(all.iter().copied());
    let spread = MEDIAN_TO_DEVIATION * median(all.iter().map(|share| (share - typical).abs()));
    let differs = |share: f64| share - typical > MATTERS.max(SPREADS * spread);
    let different = shares.iter().filter(|(_, share)| differs(*share)).map(|(host, share)| Different {
        host: (*host).to_owned(),
        process: cause.0.to_owned(),
        function: cause.1.to_owned(),
        share: *share,
        typical,
    });
    different.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Cell;

    #[test]
    fn one_that_differs_is_found_and_a_wide_fleet_has_none() {
        let shares: Vec<(String, f64)> = (0..20).map(|i| (format!("h{i}"), 0.05 + 0.001 * f64::from(i % 5))).collect();
        let mut told: Vec<(&str, f64)> = shares.iter().map(|(host, share)| (host.as_str(), *share)).collect();
        assert!(of_cause(("p", "f"), &told, 20).is_empty());
        told[7].1 = 0.3;
        let found = of_cause(("p", "f"), &told, 20);
        assert_eq!(found.iter().map(|d| d.host.as_str()).collect::<Vec<_>>(), ["h7"]);
        let wide: Vec<(&str, f64)> = told.iter().enumerate().map(|(i, (host, _))| (*host, 0.02 * i as f64)).collect();
        assert!(of_cause(("p", "f"), &wide, 20).is_empty());
    }

    #[test]
    fn too_few_hosts_have_no_middle() {
        let hosts = Rows {
            columns: vec!["host".into(), "total_ns".into()],
            rows: vec![vec![Cell::Text("a".into()), Cell::Number(10)]],
        };
        assert!(Different::find(&hosts, &Rows::default()).is_empty());
    }
}
