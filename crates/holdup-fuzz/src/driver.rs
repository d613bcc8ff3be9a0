//! Damages seeds and runs a target on them, for a while.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{fs, io};

use holdup_testing::damage::{Random, mutate};

use crate::{Target, panics};

/// When a run ends, and what no single input may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the run goes on.
    pub time: Duration,
    /// The number of the first input: input n of a seed is always the same.
    pub first: u64,
    /// How many inputs at most.
    pub count: u64,
    /// How long one input may take by the clock, on a machine that does other things as well.
    pub each: Duration,
    /// How much memory the process may have used at its peak, in bytes.
    pub memory: u64,
}

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// How many inputs were tried.
    pub inputs: u64,
    /// How long that took.
    pub elapsed: Duration,
    /// The longest that one took.
    pub slowest: Duration,
    /// The most memory that the process used so far, in bytes.
    pub memory: u64,
    /// The first input that failed, where the run ended.
    pub failure: Option<Failure>,
}

/// An input that failed.
#[derive(Debug)]
pub struct Failure {
    /// Its number.
    pub input: u64,
    /// The file that it is kept in.
    pub path: PathBuf,
    /// What happened.
    pub what: String,
}

/// Runs the target on damaged seeds. The input that is being tried is always in `folder`, so that it is there even if it ends the
/// process.
///
/// # Errors
/// If nothing can be written there.
pub fn run(target: &Target, seed: u64, limits: &Limits, folder: &Path) -> io::Result<Run> {
    fs::create_dir_all(folder)?;
    let last = folder.join(format!("{}-last", target.name));
    let seeds = (target.seeds)();
    let watch = Watch::start(target.name, limits.each, &last);
    let (start, mut slowest, mut inputs, mut failure) = (Instant::now(), Duration::ZERO, 0, None);
    while inputs < limits.count && start.elapsed() < limits.time && failure.is_none() {
        let input = limits.first + inputs;
        let bytes = damaged(target, &seeds, seed, input);
        fs::write(&last, &bytes)?;
        watch.current.store(input + 1, Relaxed);
        let begin = Instant::now();
        let panicked = panics::of(|| (target.body)(&bytes));
        slowest = slowest.max(begin.elapsed());
        inputs += 1;
        let large = || (peak_memory() > limits.memory).then(|| format!("it used {} MB", peak_memory() >> 20));
        if let Some(what) = panicked.or_else(large) {
            let path = folder.join(format!("{}-{seed}-{input}", target.name));
            fs::write(&path, &bytes)?;
            failure = Some(Failure { input, path, what });
        }
    }
    drop(watch);
    fs::remove_file(&last)?;
    Ok(Run { inputs, elapsed: start.elapsed(), slowest, memory: peak_memory(), failure })
}

/// Input number `input`: the first ones are the seeds as they are.
fn damaged(target: &Target, seeds: &[Vec<u8>], seed: u64, input: u64) -> Vec<u8> {
    if let Some(sound) = seeds.get(input as usize) {
        return sound.clone();
    }
    let mut random = Random::new(seed.rotate_left(32) ^ input);
    let mut bytes = seeds[random.below(seeds.len())].clone();
    // Most of it keeps its length, so that what follows is still where headers say.
    let may_resize = random.below(if target.mend.is_some() { 8 } else { 2 }) == 0;
    for _ in 0..=random.below(4) {
        mutate(&mut bytes, &mut random, may_resize);
    }
    match target.mend {
        Some(mend) if random.below(8) > 0 => mend(&mut bytes),
        _ => {}
    }
    bytes
}

/// In bytes; 0 where the system does not tell.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Ends the process if one input takes too long: nothing else ends an endless loop.
struct Watch {
    /// The number of the input that is being tried, from 1.
    current: Arc<AtomicU64>,
    _end: mpsc::Sender<()>,
}

impl Watch {
    fn start(name: &'static str, each: Duration, last: &Path) -> Watch {
        let (current, last) = (Arc::new(AtomicU64::new(0)), last.to_owned());
        let (end, ended) = mpsc::channel::<()>();
        let seen = Arc::clone(&current);
        std::thread::spawn(move || {
            let mut before = seen.load(Relaxed);
            while ended.recv_timeout(each) == Err(mpsc::RecvTimeoutError::Timeout) {
                let now = seen.load(Relaxed);
                if now == before {
                    eprintln!("{name}: an input took more than {} s: {}", each.as_secs(), last.display());
                    std::process::exit(1);
                }
                before = now;
            }
        });
        Watch { current, _end: end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks where the fourth byte says so, and grows on the fifth.
    fn fragile(bytes: &[u8]) {
        assert!(bytes.get(3) != Some(&0xff), "a byte too many");
    }

    const LIMITS: Limits = Limits {
        time: Duration::from_secs(600),
        first: 0,
        count: 5000,
        each: Duration::from_secs(600),
        memory: 1 << 40,
    };

    #[test]
    fn a_panic_is_found_kept_and_found_again_by_its_number() {
        let target = Target { name: "fragile", body: fragile, seeds: || vec![vec![0; 64]], mend: None };
        let folder = tempfile::tempdir().expect("dir");
        let ran = run(&target, 1, &LIMITS, folder.path()).expect("room");
        let failure = ran.failure.expect("one of many");
        assert!(failure.what.contains("a byte too many") && ran.inputs == failure.input + 1, "{failure:?}");
        let kept = fs::read(&failure.path).expect("kept");
        assert_eq!(kept[3], 0xff);
        let again = Limits { first: failure.input, count: 1, ..LIMITS };
        let ran = run(&target, 1, &again, folder.path()).expect("room");
        assert_eq!(ran.failure.map(|f| f.input), Some(failure.input));
        assert_eq!(fs::read_dir(folder.path()).expect("dir").count(), 1, "only what failed is kept");
    }

    /// Catches its own panic, as readers do around the parsers of others.
    fn careful(bytes: &[u8]) {
        drop(std::panic::catch_unwind(|| fragile(bytes)));
    }

    #[test]
    fn a_panic_of_ours_that_is_caught_is_found_as_well() {
        let target = Target { name: "careful", body: careful, seeds: || vec![vec![0; 64]], mend: None };
        let folder = tempfile::tempdir().expect("dir");
        let ran = run(&target, 1, &LIMITS, folder.path()).expect("room");
        assert!(ran.failure.is_some_and(|f| f.what.contains("a byte too many") && f.what.contains("driver.rs")));
    }

    #[test]
    fn memory_beyond_the_limit_is_a_failure() {
        let target = Target { name: "large", body: |_| {}, seeds: || vec![vec![0; 64]], mend: None };
        let folder = tempfile::tempdir().expect("dir");
        let ran = run(&target, 1, &Limits { memory: 1, ..LIMITS }, folder.path()).expect("room");
        assert!(ran.failure.is_some_and(|f| f.input == 0 && f.what.contains("MB")));
    }

    #[test]
    fn every_seed_is_sound_and_most_damage_is_read() {
        for target in crate::TARGETS {
            let seeds = (target.seeds)();
            assert!(seeds.len() > 1, "{}", target.name);
            seeds.iter().for_each(|seed| (target.body)(seed));
        }
        let read = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().expect("file");
            fs::write(file.path(), bytes).expect("write");
            holdup_trace::file::read(file.path()).is_ok()
        };
        let target = crate::TARGETS.into_iter().find(|t| t.name == "holdup_file").expect("it is one");
        let seeds = (target.seeds)();
        let opened = (100..200).filter(|&input| read(&damaged(&target, &seeds, 1, input))).count();
        assert!(opened > 10, "{opened} of 100");
    }
}
