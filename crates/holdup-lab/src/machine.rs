//! What the results depend on.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::harness::{affinity, clock};
use crate::pause;

/// The machine that an experiment ran on.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: Vec<usize>,
    /// Operating system, version and architecture.
    pub kernel: String,
    /// The hypervisor, as far as it shows; empty on bare metal.
    pub hypervisor: String,
    /// Rate of the time stamp counter in GHz.
    pub tsc_ghz: f64,
    /// Duration of the processor's spin hint (`pause`, `isb`), in nanoseconds.
    pub pause_ns: f64,
}

impl Machine {
    /// Asks this machine; takes about 30 ms.
    pub fn this() -> Machine {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cpu: cpu_model(&info),
            cpus: affinity::allowed(),
            kernel: format!("Linux {} {}", release.trim(), std::env::consts::ARCH),
            hypervisor: hypervisor(&info),
            tsc_ghz: clock::ticks_per_ns(),
            pause_ns: pause::measure(500).median,
        }
    }

    /// One line for captions.
    pub fn caption(&self) -> String {
        let virtual_machine = if self.hypervisor.is_empty() { "" } else { ", virtual" };
        let cpus = self.cpus.len();
        let plural = if cpus == 1 { "" } else { "s" };
        format!("{}, {cpus} CPU{plural}{virtual_machine}, {}, pause {:.1} ns", self.cpu, self.kernel, self.pause_ns)
    }
}

/// The processor's name in a /proc/cpuinfo.
pub fn cpu_model(info: &str) -> String {
    let name = ["model name", "Model", "CPU part"].iter().find_map(|key| field(info, key));
    name.unwrap_or("unknown processor").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of the first line with this key in a /proc/cpuinfo.
pub fn field<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    let line = info.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == key))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

fn hypervisor(info: &str) -> String {
    let in_flags = field(info, "flags").is_some_and(|f| f.split(' ').any(|f| f == "hypervisor"));
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    match (in_flags, vendor.trim()) {
        (false, _) => String::new(),
        (true, "") => "unknown hypervisor".to_owned(),
        (true, vendor) => vendor.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_comes_from_cpuinfo() {
        let info =
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R)  Xeon(R) @ 2.50GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpu_model(info), "Intel(R) Xeon(R) @ 2.50GHz");
        assert_eq!(cpu_model(""), "unknown processor");
        assert_eq!(field(info, "flags"), Some("fpu hypervisor"));
    }
}
