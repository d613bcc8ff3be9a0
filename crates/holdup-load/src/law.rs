//! The laws of scalability, and their fit to measurements.
//!
//! N. J. Gunther, *Guerrilla Capacity Planning*, 2007: X(N) = λN / (1 + σ(N−1) + κN(N−1)). λ is the throughput of one,
//! σ the share of the work that only one can do at a time (contention), κ what each pair of them costs (coherence).
//! With κ = 0 it is Amdahl's law.

use serde::Serialize;

/// A law with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Usl {
    /// Throughput of one, in units of work per second.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherence.
    pub kappa: f64,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Threads, CPUs or clients.
    pub n: f64,
    /// Units of work per second.
    pub throughput: f64,
    /// The inverse of its variance, in any unit that is the same for all.
    pub weight: f64,
}

/// Which parameters are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// λ, σ and κ.
    Universal,
    /// λ and σ.
    Amdahl,
}

impl Law {
    /// How many parameters are free.
    pub fn parameters(self) -> usize {
        match self {
            Law::Universal => 3,
            Law::Amdahl => 2,
        }
    }

    /// All terms free, then the sets with some of σ and κ at 0, among which the optimum is if it lies at a bound.
    fn faces(self) -> (Terms, &'static [Terms]) {
        const BOUNDS: [Terms; 3] = [[true, false, false], [true, true, false], [true, false, true]];
        match self {
            Law::Universal => ([true; 3], &BOUNDS),
            Law::Amdahl => (BOUNDS[1], &BOUNDS[..1]),
        }
    }
}

impl Usl {
    /// Throughput at `n`.
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Where throughput is greatest; `None` where it never falls.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }

    /// The whole number of threads with the greatest throughput.
    pub fn peak_n(&self) -> Option<u64> {
        let below = self.peak()?.floor();
        let best = if self.at(below + 1.0) > self.at(below) { below + 1.0 } else { below };
        (best < 1e9).then_some(best as u64)
    }

    /// The throughput that no number of threads exceeds; `None` where there is no bound.
    pub fn limit(&self) -> Option<f64> {
        match self.peak() {
            Some(peak) => Some(self.at(peak)),
            None => (self.sigma > 0.0).then(|| self.lambda / self.sigma.min(1.0)),
        }
    }
}

/// Least squares over the parameters of `law`, λ > 0, σ ≥ 0, κ ≥ 0; `None` with fewer observations or distinct `n` than
/// parameters, or without any throughput. O(observations), in at most a few hundred passes.
pub fn fit(observations: &[Observation], law: Law) -> Option<Usl> {
    let mut places: Vec<f64> = observations.iter().map(|o| o.n).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let most = observations.iter().map(|o| o.throughput).fold(0.0, f64::max);
    let usable = |o: &Observation| o.n >= 1.0 && o.throughput > 0.0 && o.weight > 0.0 && o.weight.is_finite();
    if places.len() < law.parameters() || most <= 0.0 || !observations.iter().all(usable) {
        return None;
    }
    let scaled: Vec<Observation> = {
        let heaviest = observations.iter().map(|o| o.weight).fold(0.0, f64::max);
        let one = |o: &Observation| Observation { throughput: o.throughput / most, weight: o.weight / heaviest, ..*o };
        observations.iter().map(one).collect()
    };
    let feasible = |(p, _): &([f64; 3], f64)| p[0] > 0.0 && p[1] >= 0.0 && p[2] >= 0.0;
    let (inside, bounds) = law.faces();
    let at_bounds = || {
        let optima = bounds.iter().filter_map(|&free| descend(&scaled, free));
        optima.filter(feasible).min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let (p, _) = descend(&scaled, inside).filter(feasible).or_else(at_bounds)?;
    Some(Usl { lambda: most / p[0], sigma: p[1] / p[0], kappa: p[2] / p[0] })
}

/// N / X(N) is linear in these: 1, N−1 and N(N−1), times 1/λ, σ/λ and κ/λ.
type Terms = [bool; 3];

/// What each term counts at `n`.
fn terms(n: f64) -> [f64; 3] {
    [1.0, n - 1.0, n * (n - 1.0)]
}

/// Levenberg and Marquardt's method, from the optimum of the linear form. Terms that are not free stay 0.
fn descend(observations: &[Observation], free: Terms) -> Option<([f64; 3], f64)> {
    let mut at = start(observations, free)?;
    let mut cost = cost(observations, &at)?;
    let mut damping = 1e-3;
    for _ in 0..200 {
        let mut normal = Normal::default();
        for o in observations {
            let model = o.n / dot(&at, &terms(o.n));
            let slope = terms(o.n).map(|t| -model * model / o.n * t);
            normal.add(&slope, o.throughput - model, o.weight);
        }
        let Some(step) = normal.solve(free, damping) else { break };
        let next = [at[0] + step[0], at[1] + step[1], at[2] + step[2]];
        match self::cost(observations, &next).filter(|c| *c <= cost) {
            Some(lower) => {
                let settled = cost - lower <= 1e-12 * cost;
                (at, cost, damping) = (next, lower, damping / 10.0);
                if settled {
                    break;
                }
            }
            None if damping > 1e12 => break,
            None => damping *= 10.0,
        }
    }
    Some((at, cost))
}

/// Least squares of N/X, weighted as X is.
fn start(observations: &[Observation], free: Terms) -> Option<[f64; 3]> {
    let mut normal = Normal::default();
    for o in observations {
        let slope = o.throughput * o.throughput / o.n;
        normal.add(&terms(o.n), o.n / o.throughput, o.weight * slope * slope);
    }
    let found = normal.solve(free, 0.0)?;
    let defined = cost(observations, &found).is_some();
    Some(if defined { found } else { [1.0, 0.0, 0.0] })
}

/// The weighted sum of squares; `None` where the law has no value.
fn cost(observations: &[Observation], at: &[f64; 3]) -> Option<f64> {
    let mut sum = 0.0;
    for o in observations {
        let below = dot(at, &terms(o.n));
        if below <= 0.0 {
            return None;
        }
        sum += o.weight * (o.throughput - o.n / below).powi(2);
    }
    sum.is_finite().then_some(sum)
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Normal equations of three unknowns.
#[derive(Default)]
struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Normal {
    fn add(&mut self, slope: &[f64; 3], residual: f64, weight: f64) {
        for (i, row) in self.matrix.iter_mut().enumerate() {
            row.iter_mut().zip(slope).for_each(|(cell, s)| *cell += weight * slope[i] * s);
            self.right[i] += weight * slope[i] * residual;
        }
    }

    /// Cholesky's method on the free unknowns, with the diagonal enlarged by `damping`; the others are 0.
    fn solve(&self, free: Terms, damping: f64) -> Option<[f64; 3]> {
        let unknowns: Vec<usize> = (0..3).filter(|&i| free[i]).collect();
        // Terms differ by orders of magnitude: with a diagonal of ones the equations stay well conditioned.
        let scale: Vec<f64> = unknowns.iter().map(|&i| self.matrix[i][i].sqrt()).collect();
        let mut lower = [[0.0; 3]; 3];
        let mut y = [0.0; 3];
        for (i, &row) in unknowns.iter().enumerate() {
            for (j, &column) in unknowns.iter().enumerate().take(i + 1) {
                let before: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
                let cell = self.matrix[row][column] / (scale[i] * scale[j]) * if i == j { 1.0 + damping } else { 1.0 };
                lower[i][j] = if i == j { (cell - before).sqrt() } else { (cell - before) / lower[j][j] };
            }
            if lower[i][i].is_nan() || lower[i][i] < 1e-9 {
                return None;
            }
            let before: f64 = (0..i).map(|k| lower[i][k] * y[k]).sum();
            y[i] = (self.right[row] / scale[i] - before) / lower[i][i];
        }
        let mut solution = [0.0; 3];
        for i in (0..unknowns.len()).rev() {
            let after: f64 = (i + 1..unknowns.len()).map(|k| lower[k][i] * y[k]).sum();
            y[i] = (y[i] - after) / lower[i][i];
            solution[unknowns[i]] = y[i] / scale[i];
        }
        Some(solution)
    }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
