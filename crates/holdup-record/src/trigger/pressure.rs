//! What the kernel says of stalls: /proc/pressure.

use std::fs;

use holdup_trace::{Error, Result};

use super::cond::{Condition, Resource};

/// An average that is looked at.
#[derive(Debug)]
pub(crate) struct Pressure {
    condition: Condition,
    of: Resource,
    full: bool,
    share: f64,
    /// Whether it was above when it was looked at last.
    above: bool,
}

impl Pressure {
    /// # Errors
    /// If this kernel tells nothing of pressure.
    pub(crate) fn new(of: Resource, full: bool, share: f64) -> Result<Pressure> {
        let condition = Condition::Pressure { of, full, share };
        let pressure = Pressure { condition, of, full, share, above: false };
        match pressure.read() {
            Some(_) => Ok(pressure),
            None => Err(Error::Unsupported(format!(
                "This kernel tells no pressure (/proc/pressure/{}): it lacks CONFIG_PSI, or psi=1 on its command line.",
                of.word()
            ))),
        }
    }

    fn read(&self) -> Option<f64> {
        average(&fs::read_to_string(format!("/proc/pressure/{}", self.of.word())).ok()?, self.full)
    }

    /// What to say if it has just risen above.
    pub(crate) fn look(&mut self) -> Option<String> {
        let now = self.read()?;
        let was_above = std::mem::replace(&mut self.above, now > self.share);
        (self.above && !was_above).then(|| format!("{}: it is {:.1}%", self.condition, now * 100.0))
    }
}

/// The average of ten seconds, from 0 to 1.
fn average(text: &str, full: bool) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(if full { "full " } else { "some " }))?;
    let number = line.split(' ').find_map(|word| word.strip_prefix("avg10="))?;
    number.parse::<f64>().ok().map(|percent| percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_ten_seconds_is_found() {
        let text =
            "some avg10=12.50 avg60=1.00 avg300=0.10 total=123\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=4\n";
        assert_eq!((average(text, false), average(text, true)), (Some(0.125), Some(0.0025)));
        assert_eq!(average("some avg10=1.00 total=1", true), None);
        assert_eq!(average("nonsense", false), None);
    }
}
