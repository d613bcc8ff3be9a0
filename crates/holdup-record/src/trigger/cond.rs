//! The conditions and how they are written.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use holdup_base::numbers;

/// A condition under which a recording ends, or a flight recorder keeps what it has.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// `idle 50% 200ms`: for that long, on average, this share of the CPUs or more had nothing to run, while a thread of the
    /// target waited in `futex` or uninterruptibly all that time, and no longer than ten seconds before.
    Idle {
        /// From 0 to 1.
        share: f64,
        /// How long.
        time: Duration,
    },
    /// `queue 20ms [NAME]`: a thread was ready for that long without a CPU.
    Queue {
        /// How long at least.
        time: Duration,
        /// Of a thread or process; `None` for any of the target.
        name: Option<String>,
    },
    /// `wait 5s NAME [any]`: a thread waited for that long, or still does.
    Wait {
        /// How long at least.
        time: Duration,
        /// Of a thread or process.
        name: String,
        /// Waits of every kind; else those in `futex` and uninterruptible ones.
        any: bool,
    },
    /// `psi cpu|io|memory [some|full] 20%`: the average of ten seconds in /proc/pressure goes above it.
    Pressure {
        /// Of what.
        of: Resource,
        /// All tasks at once, not only some.
        full: bool,
        /// From 0 to 1.
        share: f64,
    },
    /// `log PATH TEXT`: a line with this text is added to a file.
    Log {
        /// The file, which may not be there yet, and may be replaced by a new one.
        path: PathBuf,
        /// Part of the line.
        text: String,
    },
    /// `file PATH`: something of that name appears.
    File {
        /// The path.
        path: PathBuf,
    },
}

/// What /proc/pressure tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// CPU time.
    Cpu,
    /// Disks and other devices.
    Io,
    /// Memory.
    Memory,
}

impl Resource {
    const ALL: [Resource; 3] = [Resource::Cpu, Resource::Io, Resource::Memory];

    /// Its word, which is also the name of the kernel's file.
    pub fn word(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Io => "io",
            Resource::Memory => "memory",
        }
    }
}

/// The conditions that there are, for a sentence about one that is none.
const FORMS: &str = "write idle 50% 200ms, queue 20ms [NAME], wait 5s NAME [any], psi cpu|io|memory [some|full] 20%, \
                     log PATH TEXT or file PATH";
/// The shortest times that are told from 20 ms of records at once.
const LEAST: Duration = Duration::from_millis(1);

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let (word, rest) = split(text);
        match word {
            "idle" => idle(rest),
            "queue" => queue(rest),
            "wait" => wait(rest),
            "psi" => pressure(rest),
            "log" => {
                let (path, text) = split(rest);
                let known = !path.is_empty() && !text.is_empty();
                known
                    .then(|| Condition::Log { path: path.into(), text: text.into() })
                    .ok_or_else(|| bad(text, "log PATH TEXT"))
            }
            "file" if !rest.is_empty() => Ok(Condition::File { path: rest.into() }),
            _ => Err(format!("{text:?} is no condition; {FORMS}")),
        }
    }
}

fn idle(rest: &str) -> Result<Condition, String> {
    match words(rest).as_slice() {
        [share, time] => Ok(Condition::Idle { share: percent(share)?, time: length(time)? }),
        _ => Err(bad(rest, "idle SHARE TIME, such as idle 50% 200ms")),
    }
}

fn queue(rest: &str) -> Result<Condition, String> {
    let (time, name) = split(rest);
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Condition::Queue { time: length(time)?, name })
}

fn wait(rest: &str) -> Result<Condition, String> {
    let (time, name) = split(rest);
    let (name, any) = match name.rsplit_once(char::is_whitespace) {
        Some((name, "any")) => (name.trim_end(), true),
        _ => (name, false),
    };
    if name.is_empty() {
        return Err(bad(
            rest,
            "wait TIME NAME, such as wait 5s postgres: every machine has threads that wait for long",
        ));
    }
    Ok(Condition::Wait { time: length(time)?, name: name.to_owned(), any })
}

fn pressure(rest: &str) -> Result<Condition, String> {
    let (of, full, share) = match words(rest).as_slice() {
        [of, share] | [of, "some", share] => (*of, false, *share),
        [of, "full", share] => (*of, true, *share),
        _ => return Err(bad(rest, "psi cpu|io|memory [some|full] SHARE, such as psi io full 20%")),
    };
    let known = Resource::ALL.into_iter().find(|resource| resource.word() == of);
    let of = known.ok_or_else(|| format!("the kernel tells pressure of cpu, io and memory, not of {of:?}"))?;
    Ok(Condition::Pressure { of, full, share: percent(share)? })
}

/// The first word and the rest.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn bad(what: &str, form: &str) -> String {
    format!("{what:?} is not enough or too much; write {form}")
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').and_then(|number| number.parse().ok());
    let share = number.filter(|share| (0.0..=100.0).contains(share) && *share > 0.0);
    share.map(|share| share / 100.0).ok_or_else(|| format!("{text:?} is not a share above 0 and up to 100%; write 50%"))
}

fn length(text: &str) -> Result<Duration, String> {
    let (number, unit) = numbers::split_unit(text);
    let nanos = numbers::nanos_of(unit).zip(number.parse::<f64>().ok()).map(|(unit, number)| unit * number);
    let time = nanos.and_then(|nanos| Duration::try_from_secs_f64(nanos / 1e9).ok());
    let time = time.ok_or_else(|| format!("{text:?} is not a length of time; write 200ms or 5s"))?;
    let fits = time >= LEAST && time <= Duration::from_secs(86_400 * 365);
    fits.then_some(time).ok_or_else(|| format!("{text:?} cannot be watched for; 1ms is the least, and a year the most"))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Idle { share, time } => write!(f, "idle {}% {time:?}", share * 100.0),
            Condition::Queue { time, name: None } => write!(f, "queue {time:?}"),
            Condition::Queue { time, name: Some(name) } => write!(f, "queue {time:?} {name}"),
            Condition::Wait { time, name, any } => write!(f, "wait {time:?} {name}{}", if *any { " any" } else { "" }),
            Condition::Pressure { of, full, share } => {
                write!(f, "psi {} {} {}%", of.word(), if *full { "full" } else { "some" }, share * 100.0)
            }
            Condition::Log { path, text } => write!(f, "log {} {text}", path.display()),
            Condition::File { path } => write!(f, "file {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written_alike() {
        for text in [
            "idle 50% 200ms",
            "queue 20ms",
            "queue 20ms nginx",
            "wait 5s postgres",
            "wait 1.5s tokio worker any",
            "psi io full 20%",
            "psi cpu some 12.5%",
            "log /var/log/syslog out of memory",
            "file /tmp/go now",
        ] {
            let condition: Condition = text.parse().expect(text);
            assert_eq!(condition.to_string(), text);
        }
        assert_eq!("psi memory 1%".parse::<Condition>().unwrap().to_string(), "psi memory some 1%");
        let any = "wait 2 a b any".parse::<Condition>().unwrap();
        assert_eq!(any, Condition::Wait { time: Duration::from_secs(2), name: "a b".into(), any: true });
    }

    #[test]
    fn what_is_none_is_a_sentence() {
        for (text, what) in [
            ("", "is no condition; write idle"),
            ("often", "is no condition"),
            ("idle 50%", "idle SHARE TIME"),
            ("idle 0% 1s", "is not a share"),
            ("idle 101% 1s", "is not a share"),
            ("idle 50 1s", "is not a share"),
            ("queue", "is not a length of time"),
            ("queue 3 weeks x", ""),
            ("queue 5us", "1ms is the least"),
            ("queue 1e99s", "is not"),
            ("wait 5s", "every machine"),
            ("wait 5s any x any any", ""),
            ("psi disk 5%", "\"disk\""),
            ("psi io most 5%", "psi cpu|io|memory"),
            ("log /x", "log PATH TEXT"),
            ("file", "is no condition"),
        ] {
            match text.parse::<Condition>() {
                Ok(_) => assert!(what.is_empty(), "{text}"),
                Err(error) => assert!(error.contains(what) && error.lines().count() == 1, "{text}: {error}"),
            }
        }
    }
}
