//! What a pause costs on this machine, and the unit of `SpinWait` made from it: with the processor's own pause, and with
//! one that is ten times slower.

use std::hint::spin_loop;
use std::time::Instant;

use holdup_sync::Calibration;

fn main() {
    let origin = Instant::now();
    let slow = || (0..10).for_each(|_| spin_loop());
    show("the processor's pause", &Calibration::measure(spin_loop, || origin.elapsed()), &spin_loop);
    show("ten times slower", &Calibration::measure(slow, || origin.elapsed()), &slow);
}

/// Measures units for themselves, apart from the calibration: the least of 200 runs of 1000 units.
fn show(name: &str, calibration: &Calibration, pause: &dyn Fn()) {
    let run = || {
        let start = Instant::now();
        (0..1000 * calibration.pauses_per_unit()).for_each(|_| pause());
        start.elapsed().as_nanos() as f64 / 1000.0
    };
    let unit = (0..200).map(|_| run()).fold(f64::INFINITY, f64::min);
    println!(
        "{name}: a pause of {:.2} ns, {} to a unit of {unit:.1} ns, {} units between two looks",
        calibration.pause_ns(),
        calibration.pauses_per_unit(),
        calibration.max_units()
    );
}
