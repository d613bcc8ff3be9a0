//! Tables whose partitions differ in size: which partition a row belongs to, and which rows make a batch of one partition.
//!
//! Rows lie partition after partition. A cycle's number is no row: it is first thrown among them by a step of about 0.618 of
//! their count, so that neighbours are in other partitions, and any stretch of cycles sees the sizes in their proportions.

use std::ops::Range;

use super::failure::Failure;

/// The shares of partitions may miss 100 % by so much.
const SUM_WITHIN: f64 = 0.01;

/// Partitions of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    partitions: u64,
    /// Of each.
    rows: u64,
}

/// Sizes of partitions, and how many there are of each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Preset {
    groups: Vec<Group>,
    rows: Scattered,
    batches: Option<Batches>,
}

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number.
    pub partition: u64,
    /// How many rows it has.
    pub rows: u64,
    /// The first of them.
    begins: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Batches {
    /// Rows at most.
    size: u64,
    all: Scattered,
}

impl Preset {
    /// Partitions for so many rows: `groups` is `percent:multiple,…`, where a multiple of `base` is the rows of a partition.
    ///
    /// # Errors
    /// What is wrong with these numbers.
    pub(super) fn new(row_count: u64, base: u64, groups: &str) -> Result<Preset, Failure> {
        if row_count == 0 || base == 0 {
            return Err(Failure::new(format!(
                "a preset wants rows, and rows for each partition: not {row_count} and {base}"
            )));
        }
        let shares = shares(if groups.trim().is_empty() { "100:1" } else { groups }, base)?;
        let groups = counted(&shares, row_count);
        Ok(Preset { groups, rows: Scattered::new(row_count), batches: None })
    }

    /// Makes batches of so many rows at most, each of one partition; how many cover all rows.
    pub(super) fn set_batch_size(&mut self, size: u64) -> Result<u64, Failure> {
        if size == 0 {
            return Err(Failure::new("a batch has at least one row"));
        }
        let all = self.groups.iter().map(|group| group.partitions * group.rows.div_ceil(size)).sum();
        self.batches = Some(Batches { size, all: Scattered::new(all) });
        Ok(all)
    }

    /// The partition of a cycle's row.
    pub(super) fn at(&self, cycle: u64) -> Place {
        let row = self.rows.thrown(cycle);
        self.find(row, |group| group.rows).0
    }

    /// The partition of a cycle's batch, and the cycles whose rows it has; none if there are no batches.
    pub(super) fn batch(&self, cycle: u64) -> Option<(Place, impl Iterator<Item = u64>)> {
        let batches = self.batches.as_ref()?;
        let size = batches.size;
        let (place, nth) = self.find(batches.all.thrown(cycle), |group| group.rows.div_ceil(size));
        let first = place.begins + nth * size;
        let rows: Range<u64> = first..(first + size).min(place.begins + place.rows);
        Some((place, rows.map(|row| self.rows.back(row))))
    }

    /// Where the `item`-th thing is, if a partition of a group has so many of them: the partition, and which of its things.
    fn find(&self, mut item: u64, each: impl Fn(&Group) -> u64) -> (Place, u64) {
        let (mut partition, mut begins) = (0, 0);
        for group in &self.groups {
            let (nth, within) = (item / each(group), item % each(group));
            if nth < group.partitions {
                let place = Place { partition: partition + nth, rows: group.rows, begins: begins + nth * group.rows };
                return (place, within);
            }
            item -= group.partitions * each(group);
            partition += group.partitions;
            begins += group.partitions * group.rows;
        }
        unreachable!("a thing is one of those that were counted")
    }

    /// `70 of 10 rows, 20 of 25 rows`.
    pub(super) fn describe(&self) -> String {
        let groups = self.groups.iter().map(|group| format!("{} of {} rows", group.partitions, group.rows));
        groups.collect::<Vec<_>>().join(", ")
    }
}

/// A part of all partitions, and their rows.
struct Share {
    percent: f64,
    rows: u64,
}

fn shares(text: &str, base: u64) -> Result<Vec<Share>, Failure> {
    let mut seen = Vec::new();
    let mut shares = Vec::new();
    for pair in text.split(',').map(str::trim) {
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        let parts = pair.split_once(':').and_then(|(percent, multiple)| Some((number(percent)?, number(multiple)?)));
        let Some((percent, multiple)) = parts else {
            return Err(Failure::new(format!("{pair:?} is not PERCENT:MULTIPLE, such as 20:2.5")));
        };
        if seen.contains(&parts) {
            return Err(Failure::new(format!("{pair:?} stands twice in {text:?}: write one with both shares")));
        }
        seen.push(parts);
        shares.push(Share { percent, rows: ((base as f64 * multiple) as u64).max(1) });
    }
    let sum: f64 = shares.iter().map(|share| share.percent).sum();
    if (sum - 100.0).abs() > SUM_WITHIN {
        return Err(Failure::new(format!("the shares of partitions in {text:?} come to {sum} %, and should to 100 %")));
    }
    Ok(shares)
}

/// As many partitions of each share as there are rows for. What is left becomes more of the most frequent, and one smaller one.
fn counted(shares: &[Share], row_count: u64) -> Vec<Group> {
    let mean: f64 = shares.iter().map(|share| share.rows as f64 * share.percent / 100.0).sum();
    let all = row_count as f64 / mean;
    let of = |share: &Share| Group { partitions: (all * share.percent / 100.0) as u64, rows: share.rows };
    let mut groups: Vec<Group> = shares.iter().map(of).collect();
    let used: u64 = groups.iter().map(|group| group.partitions * group.rows).sum();
    let rest = row_count.saturating_sub(used);
    let most = (0..shares.len()).rev().max_by(|a, b| shares[*a].percent.total_cmp(&shares[*b].percent)).unwrap_or(0);
    groups[most].partitions += rest / groups[most].rows;
    groups.push(Group { partitions: 1, rows: rest % groups[most].rows });
    groups.retain(|group| group.partitions > 0 && group.rows > 0);
    groups
}

/// A bijection of 0, 1, … that takes neighbours far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scattered {
    count: u64,
    step: u64,
    /// What undoes the step.
    back: u64,
}

impl Scattered {
    fn new(count: u64) -> Scattered {
        // The golden section: its multiples stay as far from each other as can be.
        let mut step = ((count as f64 * 0.618_033_988_75) as u64).max(1);
        loop {
            if let Some(back) = inverse(step, count) {
                return Scattered { count, step, back };
            }
            step += 1;
        }
    }

    fn thrown(self, cycle: u64) -> u64 {
        product(cycle, self.step, self.count)
    }

    fn back(self, item: u64) -> u64 {
        product(item, self.back, self.count)
    }
}

fn product(a: u64, b: u64, count: u64) -> u64 {
    let product = u128::from(a) * u128::from(b) % u128::from(count);
    // It is below the count.
    product as u64
}

/// What times `step` leaves 1 when divided by `count`; none if both have a divisor (Euclid).
fn inverse(step: u64, count: u64) -> Option<u64> {
    let (mut a, mut b) = (i128::from(step), i128::from(count));
    let (mut x, mut y) = (1_i128, 0_i128);
    while b != 0 {
        let times = a / b;
        (a, b) = (b, a - times * b);
        (x, y) = (y, x - times * y);
    }
    (a == 1).then(|| x.rem_euclid(i128::from(count)) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sizes(preset: &Preset, rows: u64) -> BTreeMap<u64, u64> {
        let mut sizes = BTreeMap::new();
        for cycle in 0..rows {
            let place = preset.at(cycle);
            let rows = sizes.entry(place.partition).or_insert(0);
            *rows += 1;
            assert!(*rows <= place.rows);
        }
        sizes
    }

    #[test]
    fn each_partition_gets_its_rows_once() {
        for (rows, base, groups) in [
            (10_000, 1, "50:4,50:6"),
            (9_999, 10, "70:1,20:2.5,10:3.5"),
            (7, 10, ""),
            (1, 1, ""),
            (1_000, 3, "99:1,1:50"),
        ] {
            let preset = Preset::new(rows, base, groups).unwrap();
            let sizes = sizes(&preset, rows);
            assert_eq!(sizes.values().sum::<u64>(), rows);
            assert_eq!(sizes.len() as u64, preset.groups.iter().map(|group| group.partitions).sum::<u64>());
            for cycle in 0..rows {
                let place = preset.at(cycle);
                assert_eq!(sizes[&place.partition], place.rows);
                assert_eq!(preset.at(cycle + 3 * rows), place);
            }
        }
        assert_eq!(Preset::new(10_000, 1, "50:4,50:6").unwrap().describe(), "1000 of 4 rows, 1000 of 6 rows");
    }

    #[test]
    fn neighbours_are_apart_and_stretches_fair() {
        let preset = Preset::new(100_000, 10, "80:1,20:4").unwrap();
        assert!((0..50_000).all(|cycle| preset.at(cycle).partition != preset.at(cycle + 1).partition));
        // Half of the rows are in the large partitions.
        for first in [0, 31_000, 77_777] {
            let large = (first..first + 1_000).filter(|cycle| preset.at(*cycle).rows == 40).count();
            assert!(large.abs_diff(500) < 20, "{large}");
        }
    }

    #[test]
    fn batches_are_of_one_partition_and_cover_all_rows() {
        for size in [1, 2, 7, 1000] {
            let mut preset = Preset::new(9_999, 10, "70:1,20:2.5,10:3.5").unwrap();
            assert!(preset.batch(0).is_none());
            let all = preset.set_batch_size(size).unwrap();
            let mut seen = vec![0; 9_999];
            let mut last = None;
            for cycle in 0..all {
                let (place, rows) = preset.batch(cycle).unwrap();
                let rows: Vec<u64> = rows.collect();
                assert!((1..=size).contains(&(rows.len() as u64)) && last != Some(place.partition));
                last = Some(place.partition);
                for row in rows {
                    assert_eq!(preset.at(row), place);
                    seen[row as usize] += 1;
                }
            }
            assert!(seen.iter().all(|times| *times == 1));
        }
    }

    #[test]
    fn wrong_presets_are_sentences() {
        for (groups, word) in
            [("50:1", "50 %"), ("50:1,50:1", "twice"), ("x:1", "\"x:1\""), ("100:0", "\"100:0\""), ("100", "\"100\"")]
        {
            assert!(Preset::new(10, 1, groups).is_err_and(|why| why.message.contains(word)), "{groups}");
        }
        assert!(Preset::new(0, 1, "").is_err() && Preset::new(1, 0, "").is_err());
        assert!(Preset::new(9, 1, "").unwrap().set_batch_size(0).is_err());
    }
}
