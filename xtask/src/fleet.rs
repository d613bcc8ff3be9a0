//! `cargo xtask fleet`: makes a data set of many hosts and days, with a regression planted on some of them.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use holdup_analysis::{NoDisassembler, Options};
use holdup_base::output::{Readers, Tree};
use holdup_export::Source;
use holdup_export::dataset::{ABOUT, Origin, parcel};
use holdup_synth::Fleet;

use crate::take_number;

/// Fills the folder that `args` name.
pub fn run(args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let hosts = take_number(&mut args, "--hosts", 200)?;
    let fleet = Fleet {
        hosts,
        days: take_number(&mut args, "--days", 7)?,
        worse_from: take_number(&mut args, "--worse-from", 5)?,
        worse: take_number(&mut args, "--worse", hosts / 10)?,
        events: take_number(&mut args, "--events", 4000)?,
    };
    ensure!(
        args.len() == 1 && !args[0].starts_with('-'),
        "fleet needs one folder: cargo xtask fleet DIR [--hosts N] [--days N] [--worse N] [--worse-from DAY]"
    );
    let begun = Instant::now();
    let tree = Tree::create(Path::new(&args[0]))?;
    tree.put(ABOUT.0, Readers::Umask, ABOUT.1.as_bytes())?;
    let options = Options::default();
    let mut traces = 0;
    fleet.each(|trace| {
        let source = Source { trace: &trace, name: "made", options: &options, disassembler: &NoDisassembler };
        let origin = Origin { file: "made", changed_ns: 0, label: "", with_recording: false };
        for object in parcel(&source, &origin)?.objects {
            tree.put(&object.key, Readers::Umask, object.bytes.as_slice())?;
        }
        traces += 1;
        anyhow::Ok(())
    })?;
    eprintln!("{}: {traces} traces in {:.1} s", args[0], begun.elapsed().as_secs_f64());
    Ok(true)
}
