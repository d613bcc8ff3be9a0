//! `cargo xtask soak`: a flight recorder under load for as long as is wanted, with planted stalls; what it costs all the while.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::load;

/// A sample of the recorder.
struct Sample {
    at_s: f64,
    rss_mb: f64,
    ring_mb: f64,
    /// Of one CPU, since the sample before.
    cpu: f64,
}

/// Runs it. Whether memory and files stayed flat, and each stall is in a trace.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let minutes: f64 = crate::take_number(&mut args, "--minutes", 60.0)?;
    let every: f64 = crate::take_number(&mut args, "--every", 10.0)?;
    let ring = crate::take_option(&mut args, "--ring-size")?.unwrap_or_else(|| "64MB".into());
    let holdup =
        crate::take_option(&mut args, "--holdup")?.map_or_else(|| root.join("target/release/holdup"), PathBuf::from);
    ensure!(args.is_empty(), "what is {args:?}?");
    let folder = root.join("target/soak");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let seconds = minutes * 60.0;
    let stalls: Vec<f64> = [0.25, 0.5, 0.85].iter().map(|part| part * seconds).collect();
    let mut load = start_load(seconds, &stalls)?;
    let mut recorder = start_recorder(&holdup, &folder, &ring)?;
    let samples = watch(&mut recorder, &folder, seconds, every)?;
    kill(Pid::from_raw(recorder.id() as i32), Signal::SIGINT)?;
    let output = recorder.wait_with_output()?;
    let _ = load.kill();
    let _ = load.wait();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    fs::write(folder.join("recorder.txt"), &words)?;
    let table = table(&samples);
    fs::write(folder.join("samples.tsv"), &table)?;
    print!("{}", summary(&samples, &words));
    let found = traces(&holdup, &folder, stalls.len())?;
    Ok(output.status.success() && found && is_flat(&samples))
}

fn start_load(seconds: f64, stalls: &[f64]) -> Result<Child> {
    let at: Vec<String> = stalls.iter().map(f64::to_string).collect();
    let mut command = Command::new(std::env::current_exe()?);
    command.args([load::COMMAND, "stalls", &seconds.to_string(), &at.join(",")]);
    command.spawn().context("the load")
}

fn start_recorder(holdup: &Path, folder: &Path, ring: &str) -> Result<Child> {
    let mut command = Command::new(holdup);
    command.args(["record", "-a", "--ring", "30s", "--ring-size", ring, "--until", "wait 1s worker", "--count", "0"]);
    command.args(["--pause", "20s", "-o"]).arg(folder.join("soak.holdup"));
    command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().with_context(|| holdup.display().to_string())
}

fn watch(recorder: &mut Child, folder: &Path, seconds: f64, every: f64) -> Result<Vec<Sample>> {
    let begin = Instant::now();
    let mut samples = Vec::new();
    let mut before = (0.0, 0.0);
    while begin.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(Duration::from_secs_f64(every));
        ensure!(recorder.try_wait()?.is_none(), "the recorder has ended");
        let at_s = begin.elapsed().as_secs_f64();
        let (rss_mb, cpu_s) = usage(recorder.id())?;
        let cpu = (cpu_s - before.1) / (at_s - before.0);
        before = (at_s, cpu_s);
        samples.push(Sample { at_s, rss_mb, ring_mb: ring_mb(folder), cpu });
        fs::write(folder.join("samples.tsv"), table(&samples))?;
    }
    Ok(samples)
}

/// MB of resident memory, and CPU seconds.
fn usage(pid: u32) -> Result<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kb =
        status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((kb.unwrap_or(0.0) / 1024.0, (ticks(11) + ticks(12)) / 100.0))
}

/// MB of the spool and its segments.
fn ring_mb(folder: &Path) -> f64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let spools = files.filter(|f| f.file_name().to_string_lossy().contains(".spool"));
    spools.filter_map(|f| f.metadata().ok()).map(|m| m.len() as f64).sum::<f64>() / 1_048_576.0
}

fn table(samples: &[Sample]) -> String {
    let mut text = String::from("at_s\trss_mb\tring_mb\tcpu_percent\n");
    for s in samples {
        text += &format!("{:.0}\t{:.1}\t{:.1}\t{:.2}\n", s.at_s, s.rss_mb, s.ring_mb, s.cpu * 100.0);
    }
    text
}

fn mean(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
}

fn most(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).fold(0.0, f64::max)
}

/// The last quarter beside the second one: by then the ring is full and buffers have their size.
fn quarters(samples: &[Sample]) -> (&[Sample], &[Sample]) {
    let n = samples.len();
    (&samples[n / 4..n / 2], &samples[n - n / 4..])
}

fn is_flat(samples: &[Sample]) -> bool {
    let (early, late) = quarters(samples);
    let rss = |s: &Sample| s.rss_mb;
    let ring = |s: &Sample| s.ring_mb;
    mean(late, rss) <= mean(early, rss) * 1.05 && most(late, ring) <= most(early, ring) * 1.1
}

fn summary(samples: &[Sample], words: &str) -> String {
    let (early, late) = quarters(samples);
    let last = samples.last().map_or(0.0, |s| s.at_s);
    let mut text = format!("{:.1} min, {} samples\n", last / 60.0, samples.len());
    for (name, part) in [("second quarter", early), ("last quarter", late)] {
        text += &format!(
            "{name}: RSS {:.1} MB (most {:.1}), ring {:.1} MB (most {:.1}), {:.2} % of a CPU\n",
            mean(part, |s| s.rss_mb),
            most(part, |s| s.rss_mb),
            mean(part, |s| s.ring_mb),
            most(part, |s| s.ring_mb),
            mean(part, |s| s.cpu) * 100.0
        );
    }
    text + words
}

/// Whether there are as many traces as stalls, and each names one of its length.
fn traces(holdup: &Path, folder: &Path, stalls: usize) -> Result<bool> {
    let mut held = 0;
    for n in 1.. {
        let path = folder.join(format!("soak-{n}.holdup"));
        if !path.exists() {
            println!("{} traces, {held} with the stall; {stalls} stalls were planted", n - 1);
            return Ok(held >= stalls);
        }
        let longest = longest_wait(holdup, &path)?;
        let is_held = longest >= load::STALL.as_secs_f64() * 0.9;
        let verdict = if is_held { "" } else { ": it is not the planted one" };
        println!("{}: a worker waited for {longest:.2} s{verdict}", path.display());
        held += usize::from(is_held);
    }
    unreachable!("the loop returns")
}

/// The longest wait of a worker, in seconds.
fn longest_wait(holdup: &Path, trace: &Path) -> Result<f64> {
    let mut command = Command::new(holdup);
    command.arg("table").arg(trace).args(["waits", "--where", "thread == worker and kind == lock"]);
    let output = command.args(["--columns", "wait", "--sort", "-wait", "--top", "1", "--format", "csv"]).output()?;
    ensure!(output.status.success(), "{}: {}", trace.display(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(first_number(&String::from_utf8_lossy(&output.stdout)) / 1e9)
}

/// The first row of a table of one column.
fn first_number(csv: &str) -> f64 {
    csv.lines().nth(1).and_then(|line| line.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rss: impl Fn(usize) -> f64) -> Vec<Sample> {
        (0..100).map(|i| Sample { at_s: i as f64, rss_mb: rss(i), ring_mb: 60.0, cpu: 0.01 }).collect()
    }

    #[test]
    fn what_grows_is_not_flat() {
        assert!(is_flat(&samples(|i| if i < 20 { i as f64 } else { 20.0 })));
        assert!(!is_flat(&samples(|i| 20.0 + i as f64 / 10.0)));
        assert!(table(&samples(|_| 1.0)).lines().count() == 101);
    }

    #[test]
    fn the_first_row_is_read() {
        assert_eq!(first_number("wait\n1480078000\n"), 1_480_078_000.0);
        assert_eq!(first_number("wait\n"), 0.0);
    }
}
