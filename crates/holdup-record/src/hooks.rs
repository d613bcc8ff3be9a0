//! Which programs are loaded on this kernel, and what its lacks mean for the recording.

use holdup_trace::Result;

use crate::kernel::Kernel;
use crate::privilege::unsupported;

/// Programs without which there is no recording.
const REQUIRED: [&str; 2] = ["on_switch", "on_waking"];

/// Where a thread is seen that comes back from a wait, the best first. One of them is used.
const RESUME: [&str; 3] = ["on_resume", "on_schedule", "on_sys_exit"];

/// Those that see requests and answers on sockets, and their tracepoints.
const SOCKETS: [(&str, &str); 4] = [
    ("on_data_ready", "sk_data_ready"),
    ("on_receive", "sock_recv_length"),
    ("on_send", "sock_send_length"),
    ("on_socket_state", "inet_sock_set_state"),
];

/// That which sees lines that are written to a `trace_marker`.
const MARKERS: &str = "on_write";

/// Those that tell of threads that begin, end and take other names.
pub(crate) const BIRTHS: [&str; 3] = ["on_fork", "on_exit", "on_rename"];

/// What is missing from a recording without a program.
const LOST: [(&str, &str); 16] = [
    ("on_schedule", NO_WAITS),
    ("on_irq_entry", NO_SOURCES),
    ("on_irq_exit", NO_SOURCES),
    ("on_softirq_entry", NO_SOURCES),
    ("on_softirq_exit", NO_SOURCES),
    ("on_timer_entry", NO_SOURCES),
    ("on_timer_exit", NO_SOURCES),
    ("on_contention_begin", NO_LOCKS),
    ("on_contention_end", NO_LOCKS),
    ("on_block_issue", NO_DISKS),
    ("on_block_complete", NO_DISKS),
    ("on_block_insert", "for whom the kernel's workers ask disks"),
    ("on_fork", "who started a thread"),
    ("on_rename", "names that threads take while it records"),
    ("on_sample", "samples of the CPUs"),
    ("on_look", "stacks of threads that wait when it begins or ends"),
];

const NO_WAITS: &str = "stacks of waits";
const NO_SOURCES: &str = "which interrupts and timers wake threads";
const NO_LOCKS: &str = "which locks of the kernel threads wait for";
const NO_DISKS: &str = "single requests to disks";

/// Which programs are loaded.
#[derive(Debug, Clone)]
pub(crate) struct Choice<'a> {
    kernel: &'a Kernel,
    sockets: bool,
    markers: bool,
    refused: Vec<String>,
}

impl<'a> Choice<'a> {
    /// All that `kernel` has the hooks for; those for `sockets` and `markers` only if they are wanted.
    ///
    /// # Errors
    /// If they are, and the kernel has none.
    pub(crate) fn new(kernel: &'a Kernel, sockets: bool, markers: bool) -> Result<Self> {
        let section = |name| SOCKETS.into_iter().find(|(program, _)| *program == name).map_or("", |(_, hook)| hook);
        let missing = ["on_receive", "on_send"].into_iter().map(section).find(|hook| !kernel.has(hook));
        let refused = |what: String| unsupported(&format!("Linux {} does not tell {what}", kernel.release));
        if let Some(hook) = missing.filter(|_| sockets) {
            let why = format!("it has no tracepoint {hook}; 6.3 is the first that has");
            return Err(refused(format!("what is read from sockets ({why}): do without --span net")));
        }
        if markers && !kernel.has("sys_enter") {
            return Err(refused(
                "what programs write (it has no tracepoint sys_enter): do without --span marker".into(),
            ));
        }
        Ok(Choice { kernel, sockets, markers, refused: Vec::new() })
    }

    /// Whether to load the program called `name` of `section`.
    pub(crate) fn wants(&self, name: &str, section: &str) -> bool {
        let is_unasked = (is_of_sockets(name) && !self.sockets) || (name == MARKERS && !self.markers);
        if self.is_spared(name) || is_unasked {
            return false;
        }
        match RESUME.contains(&name) {
            true => self.resume() == Some(name),
            false => self.can_have(name, section),
        }
    }

    /// Where the preemption count tells that a softirq runs, its end need not be told: on loopback that is each message's.
    fn is_spared(&self, name: &str) -> bool {
        name == "on_softirq_exit" && self.kernel.preempt_delta.is_some()
    }

    fn can_have(&self, name: &str, section: &str) -> bool {
        let is_there = match section.split_once('/') {
            Some(("tp_btf", tracepoint)) => self.kernel.has(tracepoint),
            Some(("fexit", function)) => self.kernel.has_function(function),
            _ => true,
        };
        is_there && !self.refused.iter().any(|refused| refused == name)
    }

    /// The best hook for threads that come back from a wait.
    fn resume(&self) -> Option<&'static str> {
        let sections = ["tp_btf/sched_exit_tp", "fexit/schedule", "tp_btf/sys_exit"];
        RESUME.into_iter().zip(sections).find(|(name, section)| self.can_have(name, section)).map(|(name, _)| name)
    }

    /// Does without the program `name`, which the kernel refuses. False if that cannot be, as it was asked for.
    pub(crate) fn is_without(&mut self, name: &str) -> bool {
        let is_asked = (self.sockets && is_of_sockets(name)) || (self.markers && name == MARKERS);
        let can = !REQUIRED.contains(&name) && !is_asked && !self.refused.iter().any(|refused| refused == name);
        if can {
            self.refused.push(name.to_owned());
        }
        can
    }

    /// One sentence for all that the recording does not tell on this kernel, of whose programs `loaded` were.
    pub(crate) fn lacks(&self, loaded: &[String]) -> Option<String> {
        let is_loaded = |name: &str| loaded.iter().any(|l| l == name);
        let mut lost: Vec<&str> = Vec::new();
        for (name, what) in LOST {
            let is_there = if name == "on_schedule" { RESUME.iter().any(|r| is_loaded(r)) } else { is_loaded(name) };
            if !is_there && !self.is_spared(name) && !lost.contains(&what) {
                lost.push(what);
            }
        }
        if self.kernel.stacks_would_sleep {
            lost.retain(|what| *what != NO_WAITS);
            lost.insert(0, "stacks, for which this real-time kernel's buffers may sleep where nothing may");
        }
        (!lost.is_empty()).then(|| format!("Linux {} does not tell {}", self.kernel.release, lost.join("; ")))
    }
}

fn is_of_sockets(name: &str) -> bool {
    SOCKETS.iter().any(|(program, _)| *program == name)
}

/// The first program that a log of libbpf says has failed.
pub(crate) fn failed(log: &str) -> Option<&str> {
    let lines = log.lines().filter(|line| line.contains("failed") && !line.contains("optional"));
    lines.filter_map(|line| line.split_once("prog '")?.1.split_once('\'')).map(|(name, _)| name).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(tracepoints: &[&str], functions: &[&str]) -> Kernel {
        let own = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        Kernel {
            tracepoints: own(tracepoints),
            functions: own(functions),
            release: "6.1.0".into(),
            ..Kernel::default()
        }
    }

    const SECTIONS: [&str; 3] = ["tp_btf/sched_exit_tp", "fexit/schedule", "tp_btf/sys_exit"];

    fn resumes(choice: &Choice<'_>) -> Vec<&'static str> {
        RESUME.into_iter().zip(SECTIONS).filter(|(name, section)| choice.wants(name, section)).map(|(n, _)| n).collect()
    }

    #[test]
    fn one_hook_sees_threads_come_back_and_the_next_best_stands_in() {
        let all = kernel(&["sched_exit_tp", "sys_exit"], &["schedule"]);
        assert_eq!(resumes(&Choice::new(&all, false, false).unwrap()), ["on_resume"]);
        let old = kernel(&["sys_exit"], &["schedule"]);
        let mut choice = Choice::new(&old, false, false).unwrap();
        assert_eq!(resumes(&choice), ["on_schedule"]);
        assert!(choice.is_without("on_schedule") && !choice.is_without("on_schedule"), "and not for ever");
        assert_eq!(resumes(&choice), ["on_sys_exit"]);
        assert!(choice.is_without("on_sys_exit"));
        assert!(resumes(&choice).is_empty());
        assert!(!choice.is_without("on_switch"), "nothing stands in for it");
    }

    #[test]
    fn what_is_missing_is_one_sentence() {
        let kernel = kernel(&[], &[]);
        let choice = Choice::new(&kernel, false, false).unwrap();
        let all: Vec<String> = LOST.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(choice.lacks(&all), None);
        let told = |without: &[&str]| {
            let left: Vec<String> = all.iter().filter(|n| !without.contains(&n.as_str())).cloned().collect();
            choice.lacks(&left).unwrap()
        };
        assert_eq!(
            told(&["on_contention_begin", "on_contention_end", "on_schedule"]),
            "Linux 6.1.0 does not tell stacks of waits; which locks of the kernel threads wait for"
        );
        assert_eq!(told(&["on_rename"]), "Linux 6.1.0 does not tell names that threads take while it records");
    }

    #[test]
    fn what_is_spared_is_not_missing() {
        let spared = |preempt_delta| {
            let kernel = Kernel { preempt_delta, ..kernel(&["softirq_exit"], &[]) };
            let choice = Choice::new(&kernel, false, false).unwrap();
            let left: Vec<String> =
                LOST.iter().map(|(n, _)| (*n).to_owned()).filter(|n| n != "on_softirq_exit").collect();
            (choice.wants("on_softirq_exit", "tp_btf/softirq_exit"), choice.lacks(&left).is_some())
        };
        assert_eq!(spared(Some(1)), (false, false));
        assert_eq!(spared(None), (true, true));
    }

    #[test]
    fn the_program_that_fails_is_found_in_what_libbpf_says() {
        let log = "libbpf: optional failed nothing\nlibbpf: prog 'on_contention_begin': BPF program load failed: -EINVAL\n\
                   libbpf: prog 'on_contention_begin': failed to load: -EINVAL\nlibbpf: failed to load object 'holdup'\n";
        assert_eq!(failed(log), Some("on_contention_begin"));
        assert_eq!(failed("libbpf: map 'rings': failed to create: -EPERM"), None);
        assert_eq!(failed(""), None);
    }

    #[test]
    fn sockets_are_looked_at_only_if_that_is_wanted() {
        let new = kernel(&["sk_data_ready", "sock_recv_length", "sock_send_length"], &[]);
        let wants = |sockets| Choice::new(&new, sockets, false).unwrap().wants("on_receive", "tp_btf/sock_recv_length");
        assert!(wants(true) && !wants(false));
        let refused = Choice::new(&kernel(&[], &[]), true, false).unwrap_err().to_string();
        assert!(refused.contains("Linux 6.1.0 does not tell") && refused.contains("sock_recv_length"), "{refused}");
        let mut choice = Choice::new(&new, true, false).unwrap();
        assert!(!choice.is_without("on_receive"), "what was asked for is not left out in silence");
    }

    #[test]
    fn markers_are_looked_at_only_if_that_is_wanted() {
        let new = kernel(&["sys_enter"], &[]);
        let wants = |markers| Choice::new(&new, false, markers).unwrap().wants("on_write", "tp_btf/sys_enter");
        assert!(wants(true) && !wants(false));
        assert!(!Choice::new(&new, false, true).unwrap().is_without("on_write"));
        let refused = Choice::new(&kernel(&[], &[]), false, true).unwrap_err().to_string();
        assert!(refused.contains("does not tell what programs write"), "{refused}");
    }
}
