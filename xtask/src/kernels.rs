//! `cargo xtask kernels`: is the same found on other kernels, and with many CPUs?
//!
//! Guests run under software emulation, so that no machine is needed but this one: tens of times slower than a real one, and a
//! CPU of theirs stands still where the host's are busy. Findings are compared, never times.

mod fetch;
mod guest;
mod image;
mod jobs;
mod row;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::holdup::Holdup;
use crate::{take_flag, take_number, take_option, truth};
use fetch::Kernel;
use guest::Guest;
use image::Image;
use jobs::{Guests, Job};
use row::Row;

/// Between these lines of a document stands the table.
const MARKS: [&str; 2] = ["<!-- kernels: begin -->", "<!-- kernels: end -->"];

/// How often a guest is booted whose emulation stumbles.
const ATTEMPTS: u32 = 4;

struct Options {
    holdup: Holdup,
    cpus: u32,
    many: u32,
    seconds: f64,
    patience: Duration,
    folder: PathBuf,
    programs: PathBuf,
}

/// Boots the kernels named in `args`, or all that apt offers. Whether all was found.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let options = Options {
        holdup: Holdup::new(root, take_option(&mut args, "--holdup")?)?,
        cpus: take_number(&mut args, "--cpus", 8)?,
        many: take_number(&mut args, "--many", 16)?,
        seconds: take_number(&mut args, "--seconds", 4.0)?,
        patience: Duration::from_secs(60 * take_number(&mut args, "--patience", 20)?),
        folder: root.join("target/kernels"),
        programs: root.join("target/scenarios"),
    };
    let only = take_option(&mut args, "--only")?;
    let table = take_option(&mut args, "--table")?;
    let mut jobs = jobs::all(root)?;
    if let Some(only) = &only {
        let only: Vec<&str> = only.split(',').collect();
        let unknown = only.iter().find(|name| !jobs.iter().any(|job| job.name == **name));
        ensure!(unknown.is_none(), "no recording is called {}", unknown.copied().unwrap_or_default());
        jobs.retain(|job| only.contains(&job.name));
    }
    let mut all_right = true;
    if !take_flag(&mut args, "--print") {
        let packages = if args.is_empty() { fetch::offered()? } else { args };
        let programs = jobs.iter().filter_map(|job| job.program);
        truth::build(root, &[], &options.programs, programs)?;
        for package in packages {
            let kernel = fetch::kernel(&options.folder, &package)?;
            all_right &= options.visit_all(&kernel, &jobs)?;
        }
    }
    let tables = row::tables(&row::read(&options.results())?);
    match table {
        Some(path) => put(&path, &tables)?,
        None => println!("{tables}"),
    }
    Ok(all_right)
}

impl Options {
    fn results(&self) -> PathBuf {
        self.folder.join("results")
    }

    fn visit_all(&self, kernel: &Kernel, jobs: &[Job]) -> Result<bool> {
        let mut all_right = true;
        for (guests, cpus, words) in [
            (Guests::Common, self.cpus, ""),
            (Guests::Many, self.many, ""),
            (Guests::Locked, 2, "lockdown=confidentiality"),
        ] {
            let jobs: Vec<&Job> = jobs.iter().filter(|job| job.guests == guests).collect();
            if !jobs.is_empty() && cpus > 0 {
                let row = self.visit(kernel, cpus, words, &jobs)?;
                println!("{}", row.in_words());
                all_right &= row.is_right();
            }
        }
        Ok(all_right)
    }

    fn visit(&self, kernel: &Kernel, cpus: u32, words: &str, jobs: &[&Job]) -> Result<Row> {
        let name = format!("{}-{cpus}", kernel.release);
        eprintln!("{name}: {}", jobs.iter().map(|job| job.name).collect::<Vec<_>>().join(", "));
        let (root, initrd) = (self.folder.join("root"), self.folder.join("initrd"));
        let mut programs: Vec<PathBuf> = jobs.iter().filter_map(|job| Some(self.programs.join(job.program?))).collect();
        programs.sort();
        programs.dedup();
        let lines: String = jobs.iter().map(|job| job.line(self.seconds)).collect();
        let image = Image { holdup: Path::new(self.holdup.path()), programs: &programs, jobs: &lines };
        image.make(kernel, &root, &initrd)?;
        let results = self.results().join(&name);
        let guest = Guest { image: &kernel.image, initrd: &initrd, cpus, words, patience: self.patience };
        for attempt in 1..=ATTEMPTS {
            guest.run(&results)?;
            if attempt == ATTEMPTS || !guest::stumbled(&results) {
                break;
            }
            eprintln!("{name}: the emulation ran stale code (an int3 that was gone): once more");
        }
        let row = Row::of(&kernel.release, cpus, jobs, &results, &self.holdup)?;
        fs::write(self.results().join(format!("{name}.json")), serde_json::to_vec_pretty(&row)?)?;
        Ok(row)
    }
}

/// Replaces what stands between [`MARKS`] in the document `path`.
fn put(path: &str, tables: &str) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let place = text.find(MARKS[0]).zip(text.find(MARKS[1]));
    let (begin, end) = place.with_context(|| format!("{path} has no {} and {}", MARKS[0], MARKS[1]))?;
    fs::write(path, format!("{}\n\n{tables}\n{}", &text[..begin + MARKS[0].len()], &text[end..]))?;
    Ok(())
}
