//! The shapes of lines: an event's first line, and a frame of its call chain.

/// The first line of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The thread's name.
    pub comm: &'a str,
    /// Its process, where that is printed.
    pub pid: Option<u32>,
    /// The thread.
    pub tid: u32,
    /// The CPU, where that is printed.
    pub cpu: Option<u32>,
    /// Nanoseconds.
    pub time: u64,
    /// The sample's period, where that is printed.
    pub period: Option<u64>,
    /// The event's name.
    pub event: &'a str,
    /// What follows it.
    pub text: &'a str,
}

/// A frame of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The address.
    pub address: u64,
    /// The function; empty if perf did not know it.
    pub function: &'a str,
    /// Bytes from the function's start.
    pub offset: u64,
    /// The file; `inlined` for a function that has no frame of its own.
    pub module: &'a str,
}

/// The next word, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    (!word.is_empty()).then_some((word, rest))
}

/// `comm 12/34 [000] 15451.072139:  1001001  sched:sched_switch: …`
pub fn head(line: &str) -> Option<Head<'_>> {
    let mut rest = line;
    let mut before: [Option<(&str, usize)>; 3] = [None; 3];
    loop {
        let (found, behind) = word(rest)?;
        let start = line.len() - rest.trim_start().len();
        if let Some(time) = found.strip_suffix(':').and_then(time) {
            // Its name may look like anything; what stands before a time is a CPU or a thread, or flags behind one of them.
            if let Some(head) = self::behind_time(line, before, time, behind) {
                return Some(head);
            }
        }
        before = [Some((found, start)), before[0], before[1]];
        rest = behind;
    }
}

fn behind_time<'a>(line: &'a str, before: [Option<(&'a str, usize)>; 3], time: u64, rest: &'a str) -> Option<Head<'a>> {
    let [last, second, _] = before;
    let cpu = |word: Option<(&str, usize)>| word?.0.strip_prefix('[')?.strip_suffix(']')?.parse::<u32>().ok();
    let (cpu, thread) = match cpu(last) {
        Some(cpu) => (Some(cpu), second?),
        None => (None, last?),
    };
    let (pid, tid) = match thread.0.split_once('/') {
        Some((pid, tid)) => (Some(number(pid)?), number(tid)?),
        None => (None, number(thread.0)?),
    };
    let comm = line.get(..thread.1)?.trim();
    let (mut event, mut text) = word(rest)?;
    let period = event.parse().ok();
    if period.is_some() {
        (event, text) = word(text)?;
    }
    // Records that are no samples: `PERF_RECORD_FORK(1:1):(0:0)`, `PERF_RECORD_COMM: perf:1/1`.
    let record = event.starts_with("PERF_RECORD_");
    let event = if record { rest.trim() } else { event.strip_suffix(':').filter(|event| !event.is_empty())? };
    Some(Head { comm, pid, tid, cpu, time, period, event, text: text.trim() })
}

/// perf prints -1 for what has no process.
fn number(text: &str) -> Option<u32> {
    if text == "-1" { Some(u32::MAX) } else { text.parse().ok() }
}

/// Nanoseconds of `15451.072139`: six digits or nine behind the point.
fn time(text: &str) -> Option<u64> {
    const NANOS: u64 = 1_000_000_000;
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !matches!(fraction.len(), 6 | 9) || !digits(fraction) || !digits(seconds) {
        return None;
    }
    let unit = if fraction.len() == 6 { 1000 } else { 1 };
    let nanos = fraction.parse::<u64>().ok()? * unit;
    seconds.parse::<u64>().ok()?.checked_mul(NANOS)?.checked_add(nanos)
}

/// `ffffffff813aa9c4 try_to_wake_up+0x3a4 ([kernel.kallsyms])`, where function and file may be missing.
pub fn frame(line: &str) -> Option<Frame<'_>> {
    let (address, rest) = word(line)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (name, module) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((name, module)) => (name, module),
        None => match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(module) => ("", module),
            None => (rest, ""),
        },
    };
    let at = name.rsplit_once("+0x").and_then(|(name, offset)| Some((name, u64::from_str_radix(offset, 16).ok()?)));
    let (function, offset) = at.unwrap_or((name, 0));
    let function = if function == "[unknown]" { "" } else { function };
    Some(Frame { address, function, offset, module })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines() {
        let all =
            head("opt cgu.0  5409/5410  [001] 15451.076152:    1001001   cpu-clock/freq=999/:  ff main+0x1 (/a b)");
        let expected = Head {
            comm: "opt cgu.0",
            pid: Some(5409),
            tid: 5410,
            cpu: Some(1),
            time: 15_451_076_152_000,
            period: Some(1_001_001),
            event: "cpu-clock/freq=999/",
            text: "ff main+0x1 (/a b)",
        };
        assert_eq!(all, Some(expected));
        let bare = head("  a 1.000001: b  7 2.000000003: sched:sched_waking: comm=x pid=1").expect("an event");
        assert_eq!((bare.comm, bare.tid, bare.cpu, bare.time), ("a 1.000001: b", 7, None, 2_000_000_003));
        assert_eq!((bare.event, bare.text), ("sched:sched_waking", "comm=x pid=1"));
        let record = head("perf 1 [000] 0.000000: PERF_RECORD_COMM: process_api:1/1").expect("a record");
        assert_eq!(record.event, "PERF_RECORD_COMM: process_api:1/1");
        for other in ["", "hello 12 world", "12:30:01.123456: x: y", "a 1 [000] 1.5: x: y", "a b [000] 1.000000: x: y"]
        {
            assert_eq!(head(other), None, "{other}");
        }
    }

    #[test]
    fn frames() {
        let f = |line| frame(line).map(|f| (f.address, f.function, f.offset, f.module));
        assert_eq!(f("\tff a::b<c>+0x10 (/usr/lib/x y.so)"), Some((255, "a::b<c>", 16, "/usr/lib/x y.so")));
        assert_eq!(f(" 146f2c [unknown] (/usr/bin/perf)"), Some((0x14_6f2c, "", 0, "/usr/bin/perf")));
        assert_eq!(f(" 10 (anonymous namespace)::x (inlined)"), Some((16, "(anonymous namespace)::x", 0, "inlined")));
        assert_eq!((f(" 10 main"), f(" 10")), (Some((16, "main", 0, "")), Some((16, "", 0, ""))));
        assert_eq!((f("main.c:10"), f("")), (None, None));
    }
}
