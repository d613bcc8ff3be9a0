//! `scenarios/truth.toml`, and the programs that it speaks of.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use holdup_analysis::report::FindingKind;
use regex::Regex;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::holdup::Finding;

/// The scenarios of `scenarios/truth.toml`.
#[derive(Deserialize)]
pub struct Truths {
    pub scenario: Vec<Truth>,
}

/// What must be said of one scenario.
#[derive(Debug, Deserialize)]
pub struct Truth {
    pub name: String,
    #[serde(default)]
    pub beside: bool,
    pub kind: Vec<FindingKind>,
    #[serde(default)]
    pub function: String,
    #[serde(default)]
    pub thread: String,
    /// Upper limit of held-up CPU seconds as a share of all; with it, "no finding" is right too.
    pub held_up_at_most: Option<f64>,
}

impl Truth {
    /// Whether the first finding says it.
    pub fn is_met_by(&self, first: Option<&Finding>) -> Result<bool> {
        let Some(first) = first else { return Ok(self.held_up_at_most.is_some()) };
        Ok(self.kind.contains(&first.kind)
            && Regex::new(&self.function)?.is_match(first.function())
            && Regex::new(&self.thread)?.is_match(first.thread()))
    }
}

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
