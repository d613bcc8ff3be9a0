//! Recognises scheduler events by their shape, for files whose formats were never written: a killed perf writes the
//! records, but not its file's end. Only the layout of kernels since 5.14 is known here.

use super::events::Role;
use crate::linux::cpus::MAX_CPUS;
use crate::linux::fields::{SwitchFields, WakeFields};
use crate::linux::format::Format;
use crate::linux::kernel::WakeKind;
use crate::linux::tracepoint::Tracepoint;

const COMMON: &str = "\
field:unsigned char common_flags;offset:2;size:1;signed:0;
field:int common_pid;offset:4;size:4;signed:1;
";
const SWITCH: &str = "name: sched_switch
field:char prev_comm[16];offset:8;size:16;signed:0;
field:pid_t prev_pid;offset:24;size:4;signed:1;
field:long prev_state;offset:32;size:8;signed:1;
field:char next_comm[16];offset:40;size:16;signed:0;
field:pid_t next_pid;offset:56;size:4;signed:1;
";
const WAKING: &str = "name: sched_waking
field:char comm[16];offset:8;size:16;signed:0;
field:pid_t pid;offset:24;size:4;signed:1;
field:int prio;offset:28;size:4;signed:1;
field:int target_cpu;offset:32;size:4;signed:1;
";
const MAX_PRIORITY: u32 = 139;

/// The name and the use of an event with a sample like `raw`; `None` if its shape is not known.
pub fn guess(raw: &[u8]) -> Option<(&'static str, Role)> {
    switch(raw).map(|role| ("sched:sched_switch", role)).or_else(|| Some(("sched:sched_waking", waking(raw)?)))
}

fn switch(raw: &[u8]) -> Option<Role> {
    // 64 bytes, and what pads them with their length to a multiple of eight.
    const LEN: usize = 68;
    let format = Format::parse("sched", &format!("{SWITCH}{COMMON}"))?;
    let value = |name: &str| format.field(name).map(|f| f.low(raw));
    let text = |name: &str| format.field(name).is_some_and(|f| is_comm(f.bytes(raw)));
    let fits = raw.len() == LEN && text("prev_comm") && text("next_comm") && value("prev_pid") == value("common_pid");
    fits.then(|| SwitchFields::of(&format).map(|f| Role::Tracepoint(Tracepoint::Switch(f))))?
}

fn waking(raw: &[u8]) -> Option<Role> {
    const LEN: usize = 36;
    let format = Format::parse("sched", &format!("{WAKING}{COMMON}"))?;
    let value = |name: &str| format.field(name).map_or(u32::MAX, |f| f.low(raw));
    let text = format.field("comm").is_some_and(|f| is_comm(f.bytes(raw)));
    let numbers = value("prio") <= MAX_PRIORITY && value("target_cpu") < MAX_CPUS.into();
    // Other events of this length are about the running thread itself.
    let fits = raw.len() == LEN && text && numbers && value("pid") != value("common_pid");
    fits.then(|| WakeFields::of(&format).map(|f| Role::Tracepoint(Tracepoint::Wake(WakeKind::Waking, f))))?
}

fn is_comm(bytes: &[u8]) -> bool {
    (1..16).contains(&bytes.len()) && bytes.iter().all(|b| !b.is_ascii_control())
}
