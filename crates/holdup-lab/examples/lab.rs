//! One experiment, and its outcome as JSON: the lab without the rest of the program, built in seconds.
//!
//! `cargo run --release -p holdup-lab --example lab -- EXPERIMENT [--quick] [KNOB=VALUE…] [--plots FOLDER]`

use std::path::Path;

use holdup_lab::knobs::Values;
use holdup_lab::machine::Machine;
use holdup_lab::{experiments, plot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    args.retain(|arg| arg != "--quick");
    let plots = args.iter().position(|arg| arg == "--plots").map(|at| args.drain(at..).nth(1));
    let experiment = experiments::find(args.first().ok_or("name an experiment")?)?;
    let mut values = Values::new(experiment.knobs, quick);
    for setting in &args[1..] {
        let (knob, value) = setting.split_once('=').ok_or("write settings as KNOB=VALUE")?;
        values.set(knob, value)?;
    }
    let machine = Machine::this();
    let outcome = experiment.perform(values, quick, &machine, &mut |_| ())?;
    if let Some(folder) = plots {
        let folder = folder.ok_or("--plots needs a folder")?;
        plot::draw(&outcome, &machine.caption(), plot::outputs(experiment.name, Path::new(&folder))?)?;
    }
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
