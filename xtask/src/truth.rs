//! `scenarios/truth.toml`, and the programs that it speaks of.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

/// Reads `scenarios/truth.toml`.
pub fn read_truth<T: DeserializeOwned>(root: &Path) -> Result<T> {
    let text = fs::read_to_string(root.join("scenarios/truth.toml"))?;
    toml::from_str(&text).context("scenarios/truth.toml")
}

/// Fails if one of `names` is not among those `known`.
pub fn check_names<'a>(names: &[String], known: impl Iterator<Item = &'a str>) -> Result<()> {
    let known: Vec<&str> = known.collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    ensure!(unknown.is_none(), "no {} in scenarios/truth.toml", unknown.map_or("", |n| n));
    Ok(())
}

/// Builds the programs `names` in the folder `programs`.
pub fn build<'a>(root: &Path, flags: &[&str], programs: &Path, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let built = Command::new(root.join("scenarios/build.sh")).args(flags).arg(programs).args(names).status()?;
    ensure!(built.success(), "scenarios/build.sh failed");
    Ok(())
}
