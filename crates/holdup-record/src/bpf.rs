//! Loads and attaches the programs in the kernel.

use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Mutex;

use holdup_trace::{Error, Result};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::kernel::Kernel;
use crate::layout::Config;
use crate::privilege::unsupported;
use crate::rings::Rings;

/// The committed object is aligned as its ELF headers want it.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../bpf/recorder.bpf.o"));

/// Hooks without which there is no recording.
const REQUIRED: [&str; 2] = ["sched_switch", "sched_waking"];

/// Kernel frames of a BPF program at a tracepoint: the program itself and the way to it.
pub(crate) const OWN_FRAMES: u32 = 2;

/// Sizes of the buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub cpus: usize,
    pub slots: u64,
    pub stack_bytes: u32,
}

/// The loaded programs. They run while their links live.
pub(crate) struct Programs {
    object: Object,
    links: Vec<Link>,
    /// By which hooks events are recorded.
    pub hooks: Vec<String>,
}

impl Programs {
    /// Loads those programs whose hooks `kernel` has.
    pub(crate) fn load(kernel: &Kernel, config: &Config, sizes: Sizes) -> Result<Self> {
        if let Some(missing) = REQUIRED.iter().find(|t| !kernel.has(t)) {
            return Err(unsupported(&format!("The kernel has no tracepoint {missing}")));
        }
        LOG.lock().map(|mut log| log.clear()).ok();
        libbpf_rs::set_print(Some((PrintLevel::Debug, keep_log)));
        let mut open = ObjectBuilder::default()
            .name("holdup")
            .and_then(|b| b.open_memory(&OBJECT.0))
            .map_err(|e| unsupported(&format!("The BPF programs cannot be read ({e})")))?;
        configure(&mut open, config, sizes).map_err(|e| unsupported(&format!("BPF maps cannot be set up ({e})")))?;
        let mut hooks = Vec::new();
        for mut program in open.progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            let wanted = match section.strip_prefix("tp_btf/") {
                Some("sys_exit") => !kernel.has("sched_exit_tp") && kernel.has("sys_exit"),
                Some(tracepoint) => kernel.has(tracepoint),
                None => true,
            };
            program.set_autoload(wanted);
            if std::env::var_os("HOLDUP_BPF_LOG").is_some() {
                program.set_log_level(4);
            }
            if let (true, Some(tracepoint)) = (wanted, section.strip_prefix("tp_btf/")) {
                hooks.push(format!("tp_btf:{tracepoint}"));
            }
        }
        let object = open
            .load()
            .map_err(|e| unsupported(&format!("The kernel refuses the BPF programs ({e}; {})", reason())))?;
        Ok(Programs { object, links: Vec::new(), hooks })
    }

    /// Maps the rings of records.
    pub(crate) fn rings(&self, sizes: Sizes) -> Result<Rings> {
        let map = self.map("rings")?;
        Rings::map(map.as_fd(), sizes.cpus, sizes.slots)
            .map_err(|e| Error::Unsupported(format!("The buffers for records cannot be mapped: {e}")))
    }

    /// A map by its name.
    pub(crate) fn map(&self, name: &str) -> Result<MapHandle> {
        let map = self.object.maps().find(|m| m.name() == name);
        map.and_then(|m| MapHandle::try_from(&m).ok())
            .ok_or_else(|| Error::Unsupported(format!("The BPF object lacks its map {name}.")))
    }

    /// Attaches all tracepoints. From here on events are recorded.
    pub(crate) fn attach(&mut self) -> Result<()> {
        for program in self.object.progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            if !program.autoload() || !section.starts_with("tp_btf/") {
                continue;
            }
            let link = program
                .attach()
                .map_err(|e| unsupported(&format!("The BPF program for {section} cannot be attached ({e})")))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Samples by a perf event.
    pub(crate) fn attach_sampling(&mut self, event: &crate::perf::Event) -> Result<()> {
        let attach = |p: libbpf_rs::ProgramMut<'_>| p.attach_perf_event(event.duplicate().ok()?).ok();
        let link = self.program("on_sample").and_then(attach);
        let link = link.ok_or_else(|| unsupported("The BPF program for CPU samples cannot be attached"))?;
        self.links.push(link);
        Ok(())
    }

    fn program(&self, name: &str) -> Option<libbpf_rs::ProgramMut<'_>> {
        self.object.progs_mut().find(|p| p.name() == name)
    }

    /// Ends recording.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
    }

    /// Takes the stacks of the threads that wait now; quietly none where the kernel cannot.
    pub(crate) fn take_open_waits(&self) {
        let iterator = self.program("on_end").and_then(|p| p.attach().ok());
        if let Some(mut iterator) = iterator.and_then(|link| libbpf_rs::Iter::new(&link).ok()) {
            let _ = iterator.read_to_end(&mut Vec::new());
        }
    }

    /// Makes the kernel write all stacks anew, under new hashes.
    pub(crate) fn set_epoch(&self, epoch: u64) {
        if let Some(map) = self.object.maps().find(|m| m.name().to_string_lossy().ends_with(".bss")) {
            let _ = map.update(&0u32.to_ne_bytes(), &epoch.to_ne_bytes(), MapFlags::ANY);
        }
    }
}

/// What libbpf had to say about a failure. HOLDUP_BPF_LOG=1 prints all of it.
static LOG: Mutex<String> = Mutex::new(String::new());

#[expect(clippy::needless_pass_by_value, reason = "the library's signature")]
fn keep_log(_: PrintLevel, text: String) {
    if std::env::var_os("HOLDUP_BPF_LOG").is_some() {
        eprint!("{text}");
    }
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&text);
    }
}

/// The first failure in the log.
fn reason() -> String {
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    let line = log
        .lines()
        .find(|l| l.contains("not allowed") || (l.contains("failed") && !l.contains("optional")))
        .or_else(|| log.lines().next());
    line.unwrap_or("libbpf says no more").trim().to_owned()
}

fn configure(open: &mut OpenObject, config: &Config, sizes: Sizes) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "rings" => {
                map.set_value_size(Rings::value_size(sizes.slots) as u32)?;
                map.set_max_entries(sizes.cpus as u32)?;
            }
            "stacks" => map.set_max_entries(sizes.stack_bytes)?,
            name if name.ends_with(".rodata") => map.set_initial_value(&config.bytes())?,
            _ => {}
        }
    }
    Ok(())
}
