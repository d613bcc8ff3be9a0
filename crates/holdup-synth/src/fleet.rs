//! Traces of many hosts and days, with a regression planted on some of them.

use holdup_trace::{Destination, Result, Trace};

use crate::{Shape, Spec, generate};

/// 2026-11-02, in nanoseconds since 1970.
const FIRST_DAY_NS: u64 = 20_759 * DAY_NS;
const DAY_NS: u64 = 86_400_000_000_000;

/// A fleet: each host is recorded once a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// Hosts, of three kernels in turn.
    pub hosts: u32,
    /// Days from 2026-11-02 on.
    pub days: u32,
    /// From which day on, 1 for the first, the regression is there; 0 for never.
    pub worse_from: u32,
    /// On how many hosts: the last ones.
    pub worse: u32,
    /// Switches and wake-ups of each trace.
    pub events: u64,
}

impl Fleet {
    /// Calls `then` with each trace, day after day. Stops where that fails.
    ///
    /// # Errors
    /// If the numbers are out of bounds; else as `then`.
    pub fn each<E: From<holdup_trace::Error>>(
        &self,
        mut then: impl FnMut(Trace) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for day in 0..self.days {
            for host in 0..self.hosts {
                then(self.trace(host, day)?)?;
            }
        }
        Ok(())
    }

    /// That of a host on a day, both from 0 on: servers that mostly wait for requests, each fourth a dispatcher that works alone at times. The
    /// regression makes the threads of such a server queue for one lock.
    ///
    /// # Errors
    /// If the numbers are out of bounds.
    pub fn trace(&self, host: u32, day: u32) -> Result<Trace> {
        let gets_worse = self.worse_from > 0 && host + self.worse >= self.hosts;
        let shape = match host % 4 {
            _ if gets_worse && day + 1 >= self.worse_from => Shape::Lock,
            1 if !gets_worse => Shape::Hub,
            _ => Shape::Pool,
        };
        let seed = u64::from(day) << 32 | u64::from(host);
        let spec = Spec { shape, cpus: 4, threads: 24, events: self.events, seed, losses: 0 };
        let mut trace = generate(&spec, &Destination::Memory)?.trace;
        let meta = &mut trace.meta;
        meta.host.name = format!("web-{host:03}");
        meta.host.os = format!("Linux 6.{}.0", [1, 12, 18][host as usize % 3]);
        // Each host at another time of the day.
        let at = FIRST_DAY_NS + u64::from(day) * DAY_NS + u64::from(host) % 86_000 * 1_000_000_000;
        meta.time_of_day_ns = Some(at.saturating_sub(meta.start_ns));
        Ok(trace)
    }
}
