//! `cargo xtask tidy`: rules of the repository that no compiler checks.

mod arrows;
mod circles;
mod features;
mod kinds;
mod layout;
mod links;
mod packages;
mod places;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// Checks everything; prints each complaint. Whether there was none.
pub fn run(root: &Path) -> Result<bool> {
    let files = repository_files(root)?;
    let mut complaints = arrows::check(root)?;
    complaints.extend(circles::check(root, &files)?);
    complaints.extend(layout::check(root)?);
    complaints.extend(features::check(root)?);
    complaints.extend(sources::check(root, &files)?);
    complaints.extend(places::check(root, &files)?);
    complaints.extend(links::check(root, &files)?);
    complaints.extend(kinds::check(root, &files)?);
    complaints.extend(packages::check(root)?);
    complaints.iter().for_each(|c| eprintln!("{c}"));
    println!("tidy: {} files, {} complaints", files.len(), complaints.len());
    Ok(complaints.is_empty())
}

/// What git tracks or would track, relative to `root`.
fn repository_files(root: &Path) -> Result<Vec<PathBuf>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(args).current_dir(root).output()?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let names = String::from_utf8(output.stdout)?;
    let files = names.split('\0').filter(|n| !n.is_empty()).map(PathBuf::from);
    Ok(files.filter(|f| root.join(f).is_file()).collect())
}

fn has_extension(file: &Path, extensions: &[&str]) -> bool {
    file.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e))
}
