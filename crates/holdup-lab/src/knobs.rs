//! The parameters of an experiment: names, ranges, defaults, and what the user set.

use std::collections::BTreeMap;

use crate::harness::affinity;
use crate::{Error, Result, hint};

/// The most threads that an experiment starts.
const MAX_THREADS: f64 = 1024.0;

/// One parameter.
#[derive(Debug)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// What it does, with its unit.
    pub about: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// The default of a quick run.
    pub quick: &'static str,
    /// The default of a full run.
    pub full: &'static str,
}

/// What a knob may be set to. Lists are separated by commas.
#[derive(Debug)]
pub enum Kind {
    /// One number.
    Number {
        /// The least.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// Whole numbers; `auto` is 1, 2, 4, … up to the number of CPUs.
    Counts {
        /// The least.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// Some of these words; `all` is all of them.
    Words(&'static [&'static str]),
    /// CPUs of this machine; `all` is all that this process may use.
    Cpus,
}

/// How many threads.
pub const THREADS: Knob = Knob {
    name: "threads",
    about: "numbers of threads; auto is 1, 2, 4, … up to the CPUs",
    kind: Kind::Counts { min: 1.0, max: MAX_THREADS },
    quick: "auto",
    full: "auto",
};
/// Where they may run.
pub const CPUS: Knob =
    Knob { name: "cpus", about: "CPUs to run on, such as 0,1", kind: Kind::Cpus, quick: "all", full: "all" };
/// How often.
pub const ROUNDS: Knob = Knob {
    name: "rounds",
    about: "clean rounds wanted for each case",
    kind: Kind::Number { min: 1.0, max: 10_000.0 },
    quick: "25",
    full: "200",
};
/// How long.
pub const ROUND_US: Knob = Knob {
    name: "round_us",
    about: "length of a round in microseconds",
    kind: Kind::Number { min: 100.0, max: 1e6 },
    quick: "1000",
    full: "2000",
};

/// The knobs of one experiment with their values.
#[derive(Debug, Clone)]
pub struct Values {
    knobs: &'static [Knob],
    set: BTreeMap<&'static str, String>,
}

impl Values {
    /// The defaults.
    pub fn new(knobs: &'static [Knob], quick: bool) -> Self {
        let default = |k: &'static Knob| (k.name, if quick { k.quick } else { k.full }.to_owned());
        Values { knobs, set: knobs.iter().map(default).collect() }
    }

    /// Whether there is a knob of this name.
    pub fn has(&self, name: &str) -> bool {
        self.knobs.iter().any(|k| k.name == name)
    }

    /// Sets a knob.
    ///
    /// # Errors
    /// An unknown name, or a value outside its range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let knob = self.knobs.iter().find(|k| k.name == name).ok_or_else(|| unknown(name, self.knobs))?;
        check(knob, value)?;
        self.set.insert(knob.name, value.to_owned());
        Ok(())
    }

    /// All values, for the report: `auto` and `all` are written out.
    pub fn written_out(&self) -> BTreeMap<String, String> {
        let value = |knob: &Knob| match knob.kind {
            Kind::Counts { .. } => join(&self.counts(knob.name)),
            Kind::Cpus => join(&self.cpus()),
            Kind::Words(_) => self.words(knob.name).join(","),
            Kind::Number { .. } => self.text(knob.name).to_owned(),
        };
        self.knobs.iter().map(|k| (k.name.to_owned(), value(k))).collect()
    }

    /// A single number.
    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// A single whole number.
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A list of whole numbers.
    pub fn counts(&self, name: &str) -> Vec<usize> {
        match self.text(name) {
            "auto" => powers_up_to(self.cpus().len()),
            text => text.split(',').filter_map(|n| n.trim().parse::<f64>().ok()).map(|n| n as usize).collect(),
        }
    }

    /// Whether a list was left to the machine.
    pub fn is_auto(&self, name: &str) -> bool {
        self.text(name) == "auto"
    }

    /// A list of words.
    pub fn words(&self, name: &str) -> Vec<&'static str> {
        let Some(Knob { kind: Kind::Words(all), .. }) = self.knobs.iter().find(|k| k.name == name) else {
            return Vec::new();
        };
        let text = self.text(name);
        let chosen = |word: &&&str| text == "all" || text.split(',').any(|w| w.trim() == **word);
        all.iter().filter(chosen).copied().collect()
    }

    /// The CPUs of the experiment; all that this process may use where it has no such knob.
    pub fn cpus(&self) -> Vec<usize> {
        match self.set.get("cpus").map(String::as_str) {
            None | Some("all") => affinity::allowed(),
            Some(text) => text.split(',').filter_map(|n| n.trim().parse().ok()).collect(),
        }
    }

    fn text(&self, name: &str) -> &str {
        self.set.get(name).unwrap_or_else(|| panic!("the experiment declares no knob {name}"))
    }
}

fn unknown(name: &str, knobs: &[Knob]) -> Error {
    let names: Vec<&str> = knobs.iter().map(|k| k.name).collect();
    let near = hint(name, &names);
    Error::Usage(format!("there is no knob `{name}` here (there are {}){near}", names.join(", ")))
}

fn check(knob: &Knob, value: &str) -> Result<()> {
    match knob.kind {
        Kind::Number { min, max } => number_in(knob, value, min, max),
        Kind::Counts { .. } if value == "auto" => Ok(()),
        Kind::Counts { min, max } => value.split(',').try_for_each(|v| whole_in(knob, v.trim(), min, max)),
        Kind::Words(words) => check_words(knob, value, words),
        Kind::Cpus => check_cpus(value),
    }
}

fn number_in(knob: &Knob, value: &str, min: f64, max: f64) -> Result<()> {
    let number = value.parse::<f64>().ok().filter(|v| (min..=max).contains(v));
    let bad = || Error::Usage(format!("{}={value}: it has to be a number from {min} to {max}", knob.name));
    number.map(|_| ()).ok_or_else(bad)
}

fn whole_in(knob: &Knob, value: &str, min: f64, max: f64) -> Result<()> {
    let whole = value.parse::<f64>().is_ok_and(|v| v.fract() == 0.0);
    let bad = || Error::Usage(format!("{}={value}: it has to be whole numbers from {min} to {max}", knob.name));
    if whole { number_in(knob, value, min, max).map_err(|_| bad()) } else { Err(bad()) }
}

fn check_words(knob: &Knob, value: &str, words: &[&str]) -> Result<()> {
    let wrong = value.split(',').map(str::trim).find(|w| *w != "all" && !words.contains(w));
    let Some(word) = wrong else { return Ok(()) };
    let near = hint(word, words);
    Err(Error::Usage(format!("{}={word}: it has to be some of {}, or all{near}", knob.name, words.join(", "))))
}

fn check_cpus(value: &str) -> Result<()> {
    let allowed = affinity::allowed();
    let wrong = value.split(',').map(str::trim).find(|v| !v.parse().is_ok_and(|cpu| allowed.contains(&cpu)));
    match wrong {
        Some(cpu) if value != "all" => {
            Err(Error::Usage(format!("cpus={cpu}: this process may run on the CPUs {}", join(&allowed))))
        }
        _ => Ok(()),
    }
}

fn join(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// 1, 2, 4, … and `last`.
fn powers_up_to(last: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..).map(|p| 1 << p).take_while(|&n| n < last).collect();
    counts.push(last);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOBS: &[Knob] = &[
        THREADS,
        CPUS,
        ROUNDS,
        Knob { name: "kinds", about: "", kind: Kind::Words(&["std", "ticket"]), quick: "std", full: "all" },
    ];

    fn refusal(name: &str, value: &str) -> String {
        Values::new(KNOBS, true).set(name, value).expect_err("a refusal").to_string()
    }

    #[test]
    fn defaults_depend_on_haste() {
        assert_eq!(Values::new(KNOBS, true).words("kinds"), ["std"]);
        assert_eq!(Values::new(KNOBS, false).words("kinds"), ["std", "ticket"]);
        assert_eq!(Values::new(KNOBS, true).count("rounds"), 25);
    }

    #[test]
    fn nonsense_is_refused_in_a_sentence() {
        assert!(refusal("threads", "0").contains("from 1 to 1024"));
        assert!(refusal("threads", "1000000").contains("from 1 to 1024"));
        assert!(refusal("threads", "1.5").contains("whole"));
        assert!(refusal("threads", "").contains("whole"));
        assert!(refusal("cpus", "4095").contains("cpus=4095: this process may run"));
        assert!(refusal("rounds", "NaN").contains("number"));
        assert!(refusal("kinds", "tickets").contains("did you mean `ticket`?"));
        assert!(refusal("round", "1").contains("did you mean `rounds`?"));
    }

    #[test]
    fn lists_and_powers() {
        let mut values = Values::new(KNOBS, true);
        values.set("threads", "1, 3").expect("a list");
        assert_eq!(values.counts("threads"), [1, 3]);
        assert_eq!(powers_up_to(1), [1]);
        assert_eq!(powers_up_to(6), [1, 2, 4, 6]);
    }
}
