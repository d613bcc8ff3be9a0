//! What was charged when: the sum over time, in equal steps.
//!
//! The sweep charges lazily, for whole stretches of time. Here each such charge is shared out to the steps that it covers: the
//! integral of what one charged thread comes to is noted at every border between two steps, so that a charge costs the same
//! however many steps it covers.

use rustc_hash::FxHashMap;

use super::key::Key;

/// What is charged to nothing that was asked for.
pub const REST: usize = 0;

/// Over which time, in how many steps, and what is told apart.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// From when, in nanoseconds since the trace's start.
    pub from: u64,
    /// Nanoseconds in a step.
    pub width: f64,
    /// How many steps.
    pub steps: usize,
    /// By subject ([`Key::subject`]): its series, 1 and higher. What is not here goes to [`REST`].
    pub series: &'a FxHashMap<Key, usize>,
    /// One more than the highest series.
    pub count: usize,
}

impl Asked<'_> {
    /// Where step `k` begins, in nanoseconds since the trace's start.
    pub(super) fn border(&self, k: usize) -> u64 {
        self.from + (k as f64 * self.width).round() as u64
    }

    /// The step that ends at `t`, or in which `t` lies.
    pub(super) fn step_before(&self, t: u64) -> usize {
        let guess = ((t.saturating_sub(self.from)) as f64 / self.width) as usize;
        let mut k = guess.min(self.steps - 1);
        while k > 0 && self.border(k) >= t {
            k -= 1;
        }
        while k + 1 < self.steps && self.border(k + 1) < t {
            k += 1;
        }
        k
    }
}

/// CPU nanoseconds by step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// Threads of the focus ran, spinning included.
    pub running: Vec<f32>,
    /// The part of it whose samples spin.
    pub spin: Vec<f32>,
    /// Others ran.
    pub other: Vec<f32>,
    /// Idle although threads could run, as far as no series has it.
    pub runnable_idle: Vec<f32>,
    /// Idle for want of work.
    pub no_work: Vec<f32>,
    /// Not known.
    pub lost: Vec<f32>,
    /// Idle, and charged to what held threads up: by series.
    pub charged: Vec<Vec<f32>>,
}

impl Course {
    /// Nothing yet.
    pub fn new(steps: usize, count: usize) -> Self {
        let none = || vec![0.0; steps];
        Course {
            running: none(),
            spin: none(),
            other: none(),
            runnable_idle: none(),
            no_work: none(),
            lost: none(),
            charged: (0..count).map(|_| none()).collect(),
        }
    }

    /// Adds what is known of the steps from `first` on. Of what was ready the series have their part already.
    pub fn add(&mut self, first: usize, other: &Course) {
        let pairs = [
            (&mut self.running, &other.running),
            (&mut self.spin, &other.spin),
            (&mut self.other, &other.other),
            (&mut self.runnable_idle, &other.runnable_idle),
            (&mut self.no_work, &other.no_work),
            (&mut self.lost, &other.lost),
        ];
        let charged = self.charged.iter_mut().zip(&other.charged);
        for (sum, more) in pairs.into_iter().chain(charged) {
            sum[first..].iter_mut().zip(more).for_each(|(a, b)| *a += b);
        }
    }
}
