//! CPUs that come back: the kernel ends a CPU's perf events when it goes.

use crate::proc;

/// Which CPUs were there at the last look, and which of them were not before.
#[derive(Debug)]
pub(crate) struct Online {
    there: Vec<usize>,
    fresh: Vec<usize>,
}

impl Online {
    /// Those of now.
    pub(crate) fn now() -> Online {
        Online { there: proc::online_cpus(), fresh: Vec::new() }
    }

    /// Those that had just come at the last look: by now the kernel has made them ready for events, too.
    pub(crate) fn came(&mut self) -> Vec<usize> {
        self.replace(proc::online_cpus())
    }

    fn replace(&mut self, now: Vec<usize>) -> Vec<usize> {
        let fresh = now.iter().copied().filter(|cpu| !self.there.contains(cpu)).collect();
        self.there = now;
        let mut came = std::mem::replace(&mut self.fresh, fresh);
        came.retain(|cpu| self.there.contains(cpu));
        came
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_and_comes_is_told_once() {
        let mut online = Online { there: vec![0, 1, 2], fresh: Vec::new() };
        let looks = [vec![0, 2], vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2]].map(|now| online.replace(now));
        assert_eq!(looks, [vec![], vec![], vec![1], vec![]]);
        assert!(online.replace(vec![0]).is_empty() && online.replace(vec![0, 1]).is_empty());
        assert!(online.replace(vec![0]).is_empty(), "it has gone again");
    }
}
