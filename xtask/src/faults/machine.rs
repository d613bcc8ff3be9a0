//! What happens to the machine and to the recorder beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::Row;
use super::scene::{Scene, end, now_s, signal, spool, words};
use crate::load;

/// A small file system that is gone afterwards.
struct Small(PathBuf);

impl Small {
    fn mount(folder: PathBuf, size: &str) -> Result<Small> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&folder)
            .status()?;
        ensure!(status.success(), "no tmpfs can be mounted");
        Ok(Small(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// This program, as something to record.
fn this(args: &[&str]) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(load::COMMAND).args(args).spawn().context("a load")
}

/// Something that fills buffers and spools until it is killed.
fn busy() -> Result<Child> {
    Command::new("sh").args(["-c", "while :; do /bin/true; done"]).spawn().context("sh")
}

fn stop(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn full(scene: &Scene, times: usize, what: &'static str, size: &str, options: &[&str]) -> Result<Row> {
    let (mut open, mut told, mut late) = (0, 0, 0.0_f64);
    for _ in 0..times {
        let small = Small::mount(scene.fresh("full")?, size)?;
        let output = small.0.join("t.holdup");
        let load = busy()?;
        let recorder = scene.start(&output, options);
        let ended = recorder.and_then(|recorder| {
            // It ends by itself.
            let output = recorder.wait_with_output()?;
            Ok((now_s()?, words(&output)))
        });
        stop(load);
        let (at, words) = ended?;
        let left = if output.exists() { output.clone() } else { spool(&output) };
        told += usize::from(words.contains("cannot be written") || words.contains("No space left"));
        late = late.max(at - scene.look(&left)?.end_s);
        open += usize::from(scene.opens(&left));
    }
    let lost = format!(
        "what came after the disk was full: the recording ended {told} times of {times} with a sentence that says so"
    );
    Ok(Row { what, times, lost, open, results: times, is_good: told == times })
}

pub fn disk_full(scene: &Scene, times: usize) -> Result<Row> {
    full(scene, times, "a full disk (tmpfs of 6 MB)", "6m", &["--duration", "60s"])
}

pub fn disk_full_ring(scene: &Scene, times: usize) -> Result<Row> {
    full(
        scene,
        times,
        "a full disk under a flight recorder (6 MB, `--ring 60s`)",
        "6m",
        &["--ring", "60s", "--duration", "60s"],
    )
}

/// Events that find no room while the recorder is stopped are counted.
pub fn stopped(scene: &Scene, times: usize) -> Result<Row> {
    let (mut open, mut lost, mut events) = (0, 0, 0);
    for _ in 0..times {
        let output = scene.fresh("stopped")?.join("t.holdup");
        let load = busy()?;
        // A small buffer, so that there is something to lose.
        let recorder = scene.start(&output, &["--buffer", "1"])?;
        std::thread::sleep(Duration::from_secs(1));
        signal(&recorder, Signal::SIGSTOP)?;
        std::thread::sleep(Duration::from_secs(5));
        signal(&recorder, Signal::SIGCONT)?;
        std::thread::sleep(Duration::from_secs(1));
        let ended = end(recorder)?;
        stop(load);
        ensure!(ended.status.success(), "{}", words(&ended));
        let seen = scene.look(&output)?;
        (lost, events) = (lost + seen.lost, events + seen.native);
        open += usize::from(scene.opens(&output));
    }
    let lost = format!("{lost} of {} records and stacks, all counted as losses", events + lost);
    Ok(Row {
        what: "SIGSTOP of the recorder for 5 s, under load, with `--buffer 1`",
        times,
        lost,
        open,
        results: times,
        is_good: true,
    })
}

/// A CPU goes and comes back.
pub fn cpu_offline(scene: &Scene, times: usize) -> Result<Row> {
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    ensure!(switch.exists(), "this kernel cannot take a CPU away");
    let (mut open, mut lost) = (0, 0);
    for _ in 0..times {
        let output = scene.fresh("offline")?.join("t.holdup");
        let load = this(&["stalls", "6", "2"])?;
        let recorder = scene.start(&output, &[])?;
        std::thread::sleep(Duration::from_secs(1));
        let off = fs::write(switch, "0");
        std::thread::sleep(Duration::from_secs(1));
        let on = fs::write(switch, "1");
        std::thread::sleep(Duration::from_secs(1));
        let ended = end(recorder)?;
        stop(load);
        off.context("cpu1 cannot be taken offline")?;
        on.context("cpu1 does not come back")?;
        ensure!(ended.status.success(), "{}", words(&ended));
        lost += scene.look(&output)?.lost;
        open += usize::from(scene.opens(&output));
    }
    let lost = format!("{lost} losses: what was mapped there in the fifth of a second after it came back");
    Ok(Row { what: "a CPU goes offline and comes back", times, lost, open, results: times, is_good: true })
}

/// Both record.
pub fn two_recorders(scene: &Scene, times: usize) -> Result<Row> {
    let (mut open, mut lost, mut least) = (0, 0, u64::MAX);
    for _ in 0..times {
        let folder = scene.fresh("two")?;
        let outputs = ["a.holdup", "b.holdup"].map(|name| folder.join(name));
        let load = this(&["stalls", "6", "2"])?;
        let first = scene.start(&outputs[0], &["--duration", "4s"])?;
        let second = scene.start(&outputs[1], &["--duration", "4s"])?;
        let ended = [first.wait_with_output()?, second.wait_with_output()?];
        stop(load);
        ensure!(ended.iter().all(|o| o.status.success()), "one of them failed");
        let seen = [scene.look(&outputs[0])?, scene.look(&outputs[1])?];
        lost += seen[0].lost + seen[1].lost;
        least = least.min(seen[0].events).min(seen[1].events);
        open += outputs.iter().filter(|path| scene.opens(path)).count();
    }
    let lost = format!("{lost} records and stacks; each had {least} switches or more in its 4 s");
    Ok(Row { what: "two recorders at once", times, lost, open, results: 2 * times, is_good: least > 1000 })
}

/// The second one is refused before it does anything.
pub fn same_file(scene: &Scene, times: usize) -> Result<Row> {
    let (mut open, mut refused) = (0, 0);
    for _ in 0..times {
        let output = scene.fresh("same")?.join("t.holdup");
        let recorder = scene.start(&output, &[])?;
        let second = scene.record(&output, &[], &["true"])?;
        refused += usize::from(second.status.code() == Some(3) && words(&second).contains("another holdup"));
        ensure!(end(recorder)?.status.success(), "the first one failed");
        open += usize::from(scene.opens(&output));
    }
    let lost = format!("nothing: the second one was refused {refused} times of {times}");
    Ok(Row {
        what: "a second recorder into the same file",
        times,
        lost,
        open,
        results: times,
        is_good: refused == times,
    })
}
