//! Recorders that are killed.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;

use super::Row;
use super::scene::{Scene, now_s, random_pause, signal, spool};

/// The end of a recording that may be missing, in seconds: a round, and what a busy machine is late.
const LAST_ROUND: f64 = 0.25;

/// Kills it; how much of the end is missing in the spool that is left.
fn missing(scene: &Scene, mut recorder: Child, output: &Path) -> Result<f64> {
    let at = now_s()?;
    signal(&recorder, Signal::SIGKILL)?;
    recorder.wait()?;
    Ok(at - scene.look(&spool(output))?.end_s)
}

fn killed(scene: &Scene, times: usize, what: &'static str, options: &[&str]) -> Result<Row> {
    let (mut worst, mut open) = (0.0_f64, 0);
    for n in 0..times {
        let output = scene.fresh("kill")?.join("t.holdup");
        let recorder = scene.start(&output, options)?;
        random_pause(Duration::from_secs(3), n);
        worst = worst.max(missing(scene, recorder, &output)?);
        open += usize::from(scene.opens(&spool(&output)));
    }
    let lost = format!("the last {:.0} ms at most", worst * 1e3);
    Ok(Row { what, times, lost, open, results: times, is_good: worst < LAST_ROUND })
}

pub fn kill(scene: &Scene, times: usize) -> Result<Row> {
    killed(scene, times, "`kill -9` of the recorder at a random moment", &[])
}

pub fn kill_ring(scene: &Scene, times: usize) -> Result<Row> {
    killed(
        scene,
        times,
        "the same of a flight recorder (`--ring 1s --ring-size 64MB`)",
        &["--ring", "1s", "--ring-size", "64MB"],
    )
}

/// What was recorded is in the spool, or the result is there.
pub fn kill_converting(scene: &Scene, times: usize) -> Result<Row> {
    let (mut open, mut while_converting) = (0, 0);
    for n in 0..times {
        let output = scene.fresh("kill-converting")?.join("t.holdup");
        let mut recorder = scene.start(&output, &[])?;
        std::thread::sleep(Duration::from_secs(1));
        signal(&recorder, Signal::SIGINT)?;
        random_pause(Duration::from_millis(600), n);
        signal(&recorder, Signal::SIGKILL)?;
        recorder.wait()?;
        let left = spool(&output);
        while_converting += usize::from(left.exists() && !output.exists());
        open += usize::from(scene.opens(if output.exists() { &output } else { &left }));
    }
    let lost = format!("nothing ({while_converting} times the trace was not yet written, and the spool was there)");
    Ok(Row { what: "`kill -9` while the recording is converted", times, lost, open, results: times, is_good: true })
}

/// The next recorder into the same file goes on, and what was left can be read.
pub fn left_behind(scene: &Scene, times: usize) -> Result<Row> {
    let (mut open, mut said) = (0, 0);
    let kinds: [&[&str]; 2] = [&[], &["--ring", "1s"]];
    for n in 0..times {
        let output = scene.fresh("left")?.join("t.holdup");
        let mut recorder = scene.start(&output, kinds[n % 2])?;
        std::thread::sleep(Duration::from_secs(2));
        signal(&recorder, Signal::SIGKILL)?;
        recorder.wait()?;
        let next = scene.record(&output, &[], &["true"])?;
        let aside = output.with_file_name("t.holdup.spool.1");
        let words = String::from_utf8_lossy(&next.stderr).into_owned();
        said += usize::from(next.status.success() && words.contains("t.holdup.spool.1"));
        open += usize::from(scene.opens(&output)) + usize::from(scene.opens(&aside));
    }
    let lost = format!("nothing; the next recorder said {said} times of {times} where it is");
    let what = "a spool that a killed recorder left, plain and with segments";
    Ok(Row { what, times, lost, open, results: 2 * times, is_good: said == times })
}
