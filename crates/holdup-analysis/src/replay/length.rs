//! How long a run is, and what that allows.

/// How long the run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Lengths {
    /// With nothing taken out.
    pub unchanged: Length,
    /// Without each finding; `None` where nothing of it was found in the window.
    pub without: Vec<Option<Length>>,
    /// As it was, in nanoseconds.
    pub duration: u64,
    /// CPUs.
    pub cpus: usize,
    /// How often threads of the program came back from a wait.
    pub returns: u64,
}

/// What a run cannot be shorter than.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Length {
    /// The longest path in nanoseconds.
    pub path: u64,
    /// The longest path of a thread that is done sooner without the finding, if that was there to the end: the others may as
    /// well do what they do for as long as the program runs.
    pub touched: Option<u64>,
    /// CPU nanoseconds.
    pub work: u64,
    /// The run as it was less all that was taken out, of every thread: a path leads through each piece once at most.
    pub rest: u64,
}

impl Length {
    /// The least time that this takes on so many CPUs, in nanoseconds; if work takes only so much of its CPU time.
    pub fn least(&self, cpus: usize, warm: f64) -> f64 {
        let path = self.touched.unwrap_or(self.path).max(self.rest);
        (path as f64).max(warm * self.work as f64 / cpus.max(1) as f64)
    }
}

/// Who has slept finds the caches cold. Without waits its work takes less CPU time, in measured fixes down to so much (eight clients of
/// PostgreSQL that queue for one lock, or for one each).
const WARM: f64 = 0.85;
/// So long it takes at most to fill a CPU's caches again, in nanoseconds: a megabyte or two. Who seldom waits finds them warm.
const REFILL: u64 = 100_000;

/// If the unchanged run's own path explains less of the time than this, something else sets the pace.
const EXPLAINED: f64 = 0.5;
/// Of so small a rest nothing is known: of the measured fixes that were promised more than six times as fast, most gained a third of that.
const LEAST: f64 = 0.16;

/// How many times faster the run could be without finding `n`, at most; `None` where that can't be said.
pub fn bound(lengths: &Lengths, n: usize) -> Option<f64> {
    let duration = lengths.duration as f64;
    let cold = (REFILL * lengths.returns) as f64 / lengths.unchanged.work.max(1) as f64;
    let left = lengths.without.get(n).copied().flatten()?.least(lengths.cpus, WARM.max(1.0 - cold));
    let explained = lengths.unchanged.least(lengths.cpus, 1.0) >= EXPLAINED * duration;
    (explained && left >= LEAST * duration).then(|| (duration / left).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(path: u64, work: u64) -> Length {
        Length { path, work, ..Length::default() }
    }

    fn lengths(unchanged: Length, left: Length) -> Lengths {
        Lengths { unchanged, without: vec![Some(left), None], duration: 100, cpus: 2, returns: 1 }
    }

    #[test]
    fn a_run_is_no_shorter_than_its_path_nor_than_its_work_on_all_cpus() {
        let unchanged = length(100, 120);
        assert_eq!(bound(&lengths(unchanged, length(50, 20)), 0), Some(2.0));
        assert_eq!(bound(&lengths(unchanged, length(10, 100)), 0), Some(2.0 / WARM));
        assert_eq!(bound(&lengths(unchanged, length(200, 0)), 0), Some(1.0));
    }

    #[test]
    fn who_seldom_waits_finds_warm_caches() {
        let seldom = Lengths { returns: 0, ..lengths(length(100, 120), length(10, 100)) };
        assert_eq!(bound(&seldom, 0), Some(2.0));
    }

    #[test]
    fn no_more_is_gained_than_was_taken_out() {
        // For 40 of its 100 it waited for something outside, which is on no path.
        let left = Length { rest: 80, ..length(40, 20) };
        assert_eq!(bound(&lengths(length(60, 30), left), 0), Some(1.25));
    }

    #[test]
    fn who_has_no_part_in_it_does_not_count() {
        let left = Length { touched: Some(40), ..length(100, 20) };
        assert_eq!(bound(&lengths(length(100, 120), left), 0), Some(2.5));
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        let unchanged = length(100, 120);
        let left = length(50, 20);
        assert_eq!(bound(&lengths(unchanged, left), 1), None, "nothing was taken out");
        assert_eq!(bound(&lengths(unchanged, left), 9), None);
        assert_eq!(bound(&lengths(unchanged, length(3, 3)), 0), None, "33 times is no bound");
        let paced = length(30, 60);
        assert_eq!(bound(&lengths(paced, left), 0), None, "something outside sets the pace");
    }
}
