//! What is settled before a recording begins: sizes of buffers, what the kernel's programs are told, events, the header.

use holdup_spool::Header;
use holdup_trace::Result;

use crate::attach;
use crate::bpf::{Programs, Sizes};
use crate::budget::Budget;
use crate::child::Child;
use crate::kernel::Kernel;
use crate::layout::{CHUNK, Config, Control, MAX_CHUNKS, Round};
use crate::namespace::{Namespace, Place};
use crate::options::{Options, Target};
use crate::perf::{Event, Mappings};
use crate::{clock, limits, proc};

/// Buffers of mappings, each with its CPU.
pub(crate) type MappingsByCpu = Vec<(usize, Mappings)>;

/// Sampling events and buffers of mappings for each CPU. Machines without either are recorded all the same.
pub(crate) fn open_events(freq: u32, programs: &mut Programs) -> Result<(MappingsByCpu, Vec<Event>)> {
    let cpus = proc::online_cpus();
    let cycles = crate::perf::has_cycles();
    let mappings = open_each(&cpus, |cpu| Ok((cpu, Mappings::open(cpu)?)))?;
    let wanted: &[usize] = if freq > 0 && programs.can_sample() { &cpus } else { &[] };
    let samples = open_each(wanted, |cpu| Event::sampling(cpu, freq, cycles))?;
    if !mappings.is_empty() {
        programs.hooks.push("perf:mmap2".into());
    }
    if !samples.is_empty() {
        programs.hooks.push(format!("perf:{}", if cycles { "cycles" } else { "cpu-clock" }));
    }
    Ok((mappings, samples))
}

/// Samples a CPU that came back, as far as it can be had.
pub(crate) fn sample(freq: u32, programs: &mut Programs, cpu: usize) {
    if freq > 0
        && let Ok(event) = Event::sampling(cpu, freq, crate::perf::has_cycles())
    {
        let _ = programs.attach_sampling(&event);
    }
}

/// Opens something for each CPU. Those that cannot are left out, unless it is for want of descriptors.
fn open_each<T>(cpus: &[usize], open: impl Fn(usize) -> std::io::Result<T>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for &cpu in cpus {
        match open(cpu) {
            Ok(one) => all.push(one),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                return Err(limits::too_many_files(cpus.len(), &format!("is reached ({e})")));
            }
            Err(_) => {}
        }
    }
    Ok(all)
}

/// Threads that may have open spans at once: 6 MB of the kernel's memory. Where there are more, some spans end unseen and are counted.
const SPAN_THREADS: u32 = 8192;

/// Connections that are remembered at once, 12 MB of the kernel's memory. Of more those are forgotten that were not used longest.
const CONNECTIONS: u32 = 65_536;

pub(crate) fn sizes(options: &Options) -> Result<Sizes> {
    let cpus = libbpf_rs::num_possible_cpus()
        .map_err(|e| holdup_trace::Error::Unsupported(format!("The number of CPUs cannot be read: {e}.")))?;
    let share = proc::memory() / 8 / cpus as u64;
    let bytes = ((options.buffer_mb_per_cpu as u64) << 20).min(share).min(1 << 30);
    let slots = (bytes / 24).max(4096);
    let slots = if slots.is_power_of_two() { slots } else { slots.next_power_of_two() / 2 };
    let stack_bytes = (options.stack_buffer_mb.clamp(1, 1024) as u32) << 20;
    let span_threads = if options.spans.is_empty() { 1 } else { SPAN_THREADS };
    let connections = if options.sockets.is_some() { CONNECTIONS } else { 1 };
    let marking_threads = if options.markers { SPAN_THREADS } else { 1 };
    Ok(Sizes { cpus, slots, stack_bytes: stack_bytes.next_power_of_two(), span_threads, marking_threads, connections })
}

pub(crate) fn config(options: &Options, kernel: &Kernel, namespace: Namespace, sizes: Sizes) -> Config {
    let rate = options.stack_mb_per_s << 20;
    Config {
        slot_mask: sizes.slots - 1,
        side_mask: crate::rings::Rings::side_slots(sizes.slots) - 1,
        min_wait: options.min_wait.0,
        // In units of 2^20 ns, a little more than a millisecond.
        stack_rate: rate / 954,
        stack_burst: rate / 2,
        late_ack: kernel.late_ack,
        preempt_delta: kernel.preempt_delta.unwrap_or(0),
        namespace: namespace.number,
        own: namespace.own,
        chunks: ((options.stack_kb * 1024).div_ceil(CHUNK) + 1).clamp(2, MAX_CHUNKS) as u32,
        has_state_argument: kernel.has_state_argument.into(),
        skip_frames: crate::bpf::OWN_FRAMES,
        no_storage: kernel.storage_would_sleep.into(),
        no_stacks: kernel.stacks_would_sleep.into(),
        no_interpreters: 0,
        sockets: options.sockets.map_or(0, |sockets| 1 + u32::from(sockets.with_text)),
        markers: options.markers.into(),
    }
}

pub(crate) fn control(budget: &Budget, place: Place, epoch: u64, interpreters: u64) -> Control {
    Control {
        epoch,
        allowance: budget.allowance(),
        sample_allowance: budget.sample_allowance(),
        always: budget.is_unlimited().into(),
        span_shift: budget.span_shift(),
        round: Round::Waits as u32,
        interpreters,
        self_tgid: place.tgid,
        level: place.level,
    }
}

pub(crate) fn header(options: &Options, programs: &Programs, child: Option<&Child>, sizes: Sizes) -> Header {
    let (command, focus_pids) = match &options.target {
        Target::System => (Vec::new(), Vec::new()),
        Target::Pids(pids) => (Vec::new(), attach::with_descendants(pids)),
        Target::Command { argv } => {
            let argv = argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
            let about = attach::with_descendants(&options.about);
            (argv, if about.is_empty() { child.iter().map(|c| c.pid()).collect() } else { about })
        }
    };
    Header {
        start_ns: clock::now(),
        time_of_day_ns: clock::time_of_day(),
        host: proc::host(),
        cpus: proc::online_cpus().into_iter().max().map_or(sizes.cpus, |n| n + 1) as u16,
        hooks: programs.hooks.clone(),
        min_wait_ns: options.min_wait.0,
        sample_period_ns: 0,
        command,
        focus_pids,
        recorder_pid: std::process::id(),
    }
}
