//! Words of different threads at growing distance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdup_sync::Padded;

use super::atomics::plain_add;
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::case::Case;
use crate::knobs::{CPUS, Kind, Knob, ROUND_US, ROUNDS};
use crate::result::{Outcome, Series, Verdict};

/// Two threads, each with a word of its own.
pub const EXPERIMENT: Experiment = Experiment {
    name: "false-sharing",
    about: "two threads that write different words: what it costs by the distance of the words",
    axis: "distance, bytes",
    knobs: &[DISTANCES, CPUS, ROUNDS, ROUND_US],
    run,
};

const DISTANCES: Knob = Knob {
    name: "distances",
    about: "bytes between the two words, multiples of 8; 0 is the same word",
    kind: Kind::Counts { min: 0.0, max: 2048.0 },
    quick: "0,8,32,56,64,128,256",
    full: "0,8,16,24,32,40,48,56,64,96,128,192,256,512",
};

/// Words in the area: twice the largest distance.
const WORDS: usize = 512;

fn run(session: &mut Session) -> Result<Found> {
    let mut cases = Vec::new();
    for distance in session.values.counts("distances") {
        cases.push(pair("plain add", distance, plain_add));
        cases.push(pair("fetch_add", distance, |word| _ = word.fetch_add(1, Ordering::Relaxed)));
        cases.push(pair("store", distance, |word| word.store(1, Ordering::Relaxed)));
    }
    let ladder = session.measure(cases);
    let series = ladder.time_per_op();
    let verdict = verdict(&series, session.values.cpus().len());
    Ok(Found { series, notes: ladder.notes(), verdict })
}

fn pair(name: &str, distance: usize, operation: impl Fn(&AtomicU64) + Send + Sync + 'static) -> Case {
    let area: Arc<Padded<[AtomicU64; WORDS]>> = Arc::new(Padded::new(std::array::from_fn(|_| AtomicU64::new(0))));
    let body = move |who: usize, n| {
        let word = &area[who * distance / 8];
        (0..n).for_each(|_| operation(word));
    };
    Case::new(name, 2, body).at(distance as f64)
}

fn verdict(series: &[Series], cpus: usize) -> Verdict {
    if cpus < 2 {
        let because = "there is one CPU: two threads never write at the same time".to_owned();
        return Verdict { reproduced: false, because, advice: "allow the experiment two CPUs (--cpus)".to_owned() };
    }
    let at = |x: f64| Outcome::median_in(series, "fetch_add", x);
    let (Some(near), Some(far)) = (at(8.0).or(at(56.0)), at(256.0).or(at(128.0))) else {
        return Verdict::without_clean_rounds();
    };
    let fetch = series.iter().find(|s| s.name == "fetch_add");
    let free = fetch.and_then(|s| s.points.iter().find(|p| p.x > 0.0 && p.median < 1.5 * far)).map_or(0.0, |p| p.x);
    Verdict {
        reproduced: near > 1.5 * far,
        because: format!(
            "an atomic add takes {near:.1} ns with the other thread's word on the same cache line and {far:.1} ns with it far \
             away; {free} bytes are far enough"
        ),
        advice: "keep words of different threads 128 bytes apart (holdup_sync::Padded): lines are fetched in pairs"
            .to_owned(),
    }
}
