//! In which order an answer's rows are shown, and how many of them.

use super::measure::Measure;
use super::question::{Answer, Query};
use super::{Error, Result, names};

/// A name to sort by, and whether in falling order.
pub(super) fn key(text: &str) -> (String, bool) {
    text.strip_prefix('-').map_or((text.to_owned(), false), |name| (name.to_owned(), true))
}

/// By which of the answer's columns its groups are sorted: index, and whether in falling order.
fn group_order(answer: &Answer, query: &Query) -> Result<Vec<(usize, bool)>> {
    let by = answer.by.len();
    if query.sort.is_empty() {
        let first = (answer.columns.len() > by).then_some((by, true));
        return Ok(first.into_iter().collect());
    }
    query
        .sort
        .iter()
        .map(|text| {
            let (name, falling) = key(text);
            // A measure by its name, a column that groups, or the first measure of a column.
            let measure = Measure::parse(query.table, &name).ok().map(|m| m.name().to_owned());
            let column = names::find(query.table, &name).map(|(n, _)| n);
            let exact = |wanted: &Option<String>| answer.columns.iter().position(|c| Some(&c.name) == wanted.as_ref());
            let measured = || {
                let column = column.as_ref()?;
                answer.columns.iter().skip(by).position(|c| c.name.split_once(':').is_some_and(|(_, n)| n == column))
            };
            let found = exact(&column).or_else(|| exact(&measure)).or_else(|| measured().map(|i| i + by));
            let shown: Vec<&str> = answer.columns.iter().map(|c| c.name.as_str()).collect();
            let error = || format!("cannot sort by {name}: the answer's columns are {}", shown.join(", "));
            found.map(|i| (i, falling)).ok_or_else(|| Error::Question(error()))
        })
        .collect()
}

/// The answer in the order that is asked for, and no longer than that.
pub(super) fn ordered(mut answer: Answer, query: &Query) -> Result<Answer> {
    let order = sorted(&answer, &group_order(&answer, query)?, query.top);
    answer.gather(&order);
    Ok(answer)
}

/// The first `top` of the answer's rows in the order of `keys`, then of the columns that group.
fn sorted(answer: &Answer, keys: &[(usize, bool)], top: Option<usize>) -> Vec<u32> {
    let by = (0..answer.by.len()).map(|i| (i, false));
    let ranks: Vec<(Vec<u64>, bool)> =
        keys.iter().copied().chain(by).map(|(i, falling)| (answer.columns[i].data.ranks(), falling)).collect();
    let mut order: Vec<u32> = (0..answer.total as u32).collect();
    cut(&mut order, top, |a, b| compare(&ranks, a, b));
    order
}

pub(super) fn compare(ranks: &[(Vec<u64>, bool)], a: u32, b: u32) -> std::cmp::Ordering {
    let each = ranks.iter().map(|(rank, falling)| {
        let order = rank[a as usize].cmp(&rank[b as usize]);
        if *falling { order.reverse() } else { order }
    });
    each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(a.cmp(&b))
}

/// Sorts `order`, of which only the first `top` are wanted.
pub(super) fn cut(order: &mut Vec<u32>, top: Option<usize>, compare: impl Fn(u32, u32) -> std::cmp::Ordering) {
    if let Some(top) = top.filter(|&t| t < order.len()) {
        if top > 0 {
            order.select_nth_unstable_by(top - 1, |&a, &b| compare(a, b));
        }
        order.truncate(top);
    }
    order.sort_unstable_by(|&a, &b| compare(a, b));
}
