//! Which functions run while other threads have nothing to do: the causes of what [`super::lost`] sums.

use std::collections::BTreeMap;

use super::case::Case;
use super::lost::{Lost, MOSTLY, alone};
use super::{Law, LossCause, LossSite, SMALLEST};
use crate::diff::facts::Place;
use crate::diff::series::Series;

/// A function that covers this share of the loss names it; the innermost such one does.
const COVERAGE: f64 = 0.6;
/// Where the only such function is where threads begin, several of this share do.
const PART: f64 = 0.25;
/// A function of less mean depth is where its threads begin.
const OUTERMOST: f64 = 1.5;
/// Functions whose shares are closer than this run alone as much as each other.
const AS_MUCH: f64 = 0.9;
/// Causes looked for.
const MOST: usize = 8;

/// The causes among what was lost.
pub(super) fn causes(case: &Case) -> Vec<LossCause> {
    let noise = case.noise_of_waits();
    let alone = alone(case.sides.after, case.n[1]);
    let mut open = case.lost.clone();
    let mut found = Vec::new();
    while found.len() < MOST {
        let Some(place) = culprit(case, &open, &alone) else { break };
        let mut sum = Series::default();
        open.retain(|chain, series| {
            let mine = chain.has(&place);
            if mine {
                sum.add(series);
            }
            !mine
        });
        if case.grew(&sum, noise) {
            found.push(cause(case, &place, &sum));
        }
    }
    found
}

fn cause(case: &Case, place: &Place, lost: &Series) -> LossCause {
    let (n, share) = (case.n[1], 100.0 * case.share(lost));
    let busy = busy_threads(case, place);
    let have = if busy < 1.05 { "1 thread has".to_owned() } else { format!("{busy:.1} threads have") };
    let because = format!(
        "on average {have} something to do while it runs, of {n}; {share:.0} % of all thread time at the larger number is lost so"
    );
    case.cause(Law::Sigma, LossSite::Serial, place, lost, String::new(), because)
}

/// The mean number of threads at work while it ran and some were not.
fn busy_threads(case: &Case, place: &Place) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    let parts = case.sides.after.iter().flat_map(|facts| &facts.at_work);
    for ((threads, _), time) in parts.filter(|((threads, chain), _)| *threads < case.n[1] && chain.has(place)) {
        sum += *threads as f64 * time.elapsed_ns;
        all += time.elapsed_ns;
    }
    sum / all.max(1.0)
}

/// The function that tells most of the growth of what is still open; `alone` is the share of its time in which each runs alone.
fn culprit(case: &Case, open: &Lost, alone: &BTreeMap<Place, f64>) -> Option<Place> {
    let total: f64 = open.values().map(Series::delta).sum();
    if total < SMALLEST * case.cost[1] {
        return None;
    }
    let functions = functions(open);
    let share = |place: &Place| alone.get(place).copied().unwrap_or_default();
    // The innermost of those that run alone about as much as any: a helper that others call as well does so less.
    let pick = |part: f64, deeper_than: f64, at_least: f64| {
        let wide = || functions.iter().filter(|(_, f)| f.growth >= part * total && f.depth() > deeper_than);
        let most = wide().map(|(place, _)| share(place)).fold(at_least, f64::max);
        let found = wide().filter(|(place, _)| share(place) >= AS_MUCH * most && share(place) >= at_least);
        found.max_by(|a, b| a.1.depth().total_cmp(&b.1.depth())).map(|(place, _)| place.clone())
    };
    let telling = pick(COVERAGE, OUTERMOST, MOSTLY).or_else(|| pick(PART, OUTERMOST, MOSTLY));
    telling.or_else(|| pick(COVERAGE, 0.0, 0.0)).or_else(|| pick(0.0, 0.0, 0.0))
}

/// How much of the loss lies in a function and below it, and how far from where its threads begin.
#[derive(Default)]
struct Function {
    growth: f64,
    weight: f64,
    depths: f64,
}

impl Function {
    fn depth(&self) -> f64 {
        self.depths / self.weight.max(f64::MIN_POSITIVE)
    }
}

fn functions(open: &Lost) -> BTreeMap<Place, Function> {
    let mut functions: BTreeMap<Place, Function> = BTreeMap::new();
    for (chain, series) in open {
        for (i, place) in chain.places().enumerate() {
            let function = functions.entry(place).or_default();
            function.growth += series.delta();
            function.weight += series.now();
            function.depths += series.now() * (chain.functions.len() - i) as f64;
        }
    }
    functions
}
