//! Loads and attaches the programs in the kernel.

use std::io::Read;
use std::os::fd::AsFd;

use holdup_base::text::clean;
use holdup_spool::Side;
use holdup_trace::{Error, Nanos, Result};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, UprobeOpts};

use crate::breakpoint::{self, Way};
use crate::hooks::{self, Choice};
use crate::kernel::Kernel;
use crate::layout::{Config, Control, Round};
use crate::listening;
use crate::namespace::{Namespace, Place};
use crate::options::Options;
use crate::privilege::{self, unsupported};
use crate::probes::{self, Probe};
use crate::rings::Rings;
use crate::said;

/// The committed object is aligned as its ELF headers want it.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

/// The object's bytes, packed by `build.rs`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.lz4"));
const OBJECT_BYTES: usize = include!(concat!(env!("OUT_DIR"), "/size.rs"));

fn object() -> Result<Box<Aligned<[u8; OBJECT_BYTES]>>> {
    let mut object = Box::new(Aligned([0; OBJECT_BYTES]));
    let unpacked = lz4_flex::block::decompress_into(OBJECT, &mut object.0);
    unpacked.map_err(|e| Error::Bug(format!("the BPF object cannot be unpacked ({e})")))?;
    Ok(object)
}

/// The first Linux whose verifier takes the programs: 5.17 loops, 5.19 pointers of unknown length.
const OLDEST: (u32, u32) = (5, 19);
/// The first kernel that was seen to look through what walks interpreters' frames. 6.1 takes minutes under emulation, and refuses nothing.
const WALKS_INTERPRETERS: (u32, u32) = (6, 12);

/// Kernel frames of a BPF program at a tracepoint: the program itself and the way to it.
pub(crate) const OWN_FRAMES: u32 = 2;

/// Sizes of the buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub cpus: usize,
    pub slots: u64,
    pub stack_bytes: u32,
    /// Threads whose open spans are remembered at once.
    pub span_threads: u32,
    /// Threads whose markers are remembered at once.
    pub marking_threads: u32,
    /// Connections that are remembered at once.
    pub connections: u32,
}

/// The loaded programs. They run while their links live.
pub(crate) struct Programs {
    object: Object,
    links: Vec<Link>,
    /// Those of births, which come before all others and go after them: each that is seen to run is told.
    births: Vec<Link>,
    /// By which hooks events are recorded.
    pub hooks: Vec<String>,
    /// One sentence on what this kernel does not tell.
    pub lacks: Option<String>,
    /// Where spans begin and end.
    spans: Vec<Probe>,
    /// What a breakpoint costs.
    pub breakpoint: Nanos,
}

/// Why the programs could not be loaded.
struct Refused {
    /// The one that the kernel refuses, if it is one.
    program: Option<String>,
    error: Error,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused { program: None, error }
    }
}

impl Programs {
    /// Loads those programs whose hooks `kernel` has and that it does not refuse.
    pub(crate) fn load(kernel: &Kernel, config: &Config, sizes: Sizes) -> Result<Self> {
        if let Some(missing) = ["sched_switch", "sched_waking"].iter().find(|t| !kernel.has(t)) {
            return Err(unsupported(&format!("The kernel has no tracepoint {missing}")));
        }
        let mut choice = Choice::new(kernel, config.sockets > 0, config.markers > 0)?;
        let plain = Config { no_interpreters: 1, ..*config };
        let walks_interpreters = config.no_interpreters == 0 && !kernel.is_before(WALKS_INTERPRETERS);
        loop {
            let with_interpreters = walks_interpreters.then(|| Programs::attempt(&choice, config, sizes));
            if let Some(Ok(programs)) = with_interpreters {
                return Ok(programs);
            }
            let refused = match Programs::attempt(&choice, &plain, sizes) {
                Ok(programs) => return Ok(Programs { lacks: Some(programs.lacks_interpreters(kernel)), ..programs }),
                Err(refused) => refused,
            };
            if refused.program.is_some_and(|name| choice.is_without(&name)) {
                continue;
            }
            if kernel.is_before(OLDEST) {
                let (major, minor) = OLDEST;
                let what = format!("Recording needs Linux {major}.{minor} or later, and this is {}", kernel.release);
                return Err(unsupported(&what));
            }
            return Err(privilege::locked_down().unwrap_or(refused.error));
        }
    }

    fn attempt(choice: &Choice<'_>, config: &Config, sizes: Sizes) -> std::result::Result<Self, Refused> {
        said::keep();
        let bytes = object()?;
        let mut open = ObjectBuilder::default()
            .name("holdup")
            .and_then(|b| b.open_memory(&bytes.0))
            .map_err(|e| unsupported(&format!("The BPF programs cannot be read ({e})")))?;
        configure(&mut open, config, sizes).map_err(|e| unsupported(&format!("BPF maps cannot be set up ({e})")))?;
        let (mut hooks, mut loaded) = (Vec::new(), Vec::new());
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let section = program.section().to_string_lossy().into_owned();
            let wanted = choice.wants(&name, &section);
            program.set_autoload(wanted);
            if std::env::var_os("HOLDUP_BPF_LOG").is_some() {
                program.set_log_level(4);
            }
            if wanted && let Some((kind @ ("tp_btf" | "fexit"), hook)) = section.split_once('/') {
                hooks.push(format!("{kind}:{hook}"));
            }
            if wanted {
                loaded.push(name);
            }
        }
        let object = open.load().map_err(|e| {
            let error = unsupported(&format!("The kernel refuses the BPF programs ({e}; {})", said::reason()));
            Refused { program: hooks::failed(&said::all()).map(str::to_owned), error }
        })?;
        let mut programs = Programs {
            object,
            links: Vec::new(),
            births: Vec::new(),
            hooks,
            lacks: choice.lacks(&loaded),
            spans: Vec::new(),
            breakpoint: Nanos(0),
        };
        // Only the attempt shows whether a kernel lets functions be traced. Until the others are attached it does nothing.
        programs
            .attach_those(|_, section| section.starts_with("fexit/"))
            .map_err(|error| Refused { program: Some("on_schedule".into()), error })?;
        Ok(programs)
    }

    /// What the kernel does not tell, with interpreted functions.
    fn lacks_interpreters(&self, kernel: &Kernel) -> String {
        let what = "functions of Python, Ruby and PHP";
        let alone = || format!("Linux {} does not tell {what}", kernel.release);
        self.lacks.as_ref().map_or_else(alone, |lacks| format!("{lacks}; {what}"))
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

    /// Attaches what tells of threads that begin, end and take names: whoever is not found in /proc after this is told by it.
    pub(crate) fn attach_births(&mut self) -> Result<()> {
        let others = self.links.len();
        self.attach_those(|name, _| hooks::BIRTHS.contains(&name))?;
        self.births = self.links.split_off(others);
        Ok(())
    }

    /// Attaches all other tracepoints, and where spans begin and end. From here on events are recorded.
    pub(crate) fn attach(&mut self, options: &Options) -> Result<()> {
        probes::check(&options.spans)?;
        if options.sockets.is_some() {
            listening::ports().into_iter().for_each(|port| self.serve(port));
        }
        self.attach_those(|name, section| section.starts_with("tp_btf/") && !hooks::BIRTHS.contains(&name))?;
        self.attach_spans(&options.spans)
    }

    /// Attaches the loaded programs that `is_one` picks by name and section.
    fn attach_those(&mut self, is_one: impl Fn(&str, &str) -> bool) -> Result<()> {
        for program in self.object.progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            if !program.autoload() || !is_one(&program.name().to_string_lossy(), &section) {
                continue;
            }
            let link = program
                .attach()
                .map_err(|e| unsupported(&format!("The BPF program for {section} cannot be attached ({e})")))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Whether the kernel took the program for samples.
    pub(crate) fn can_sample(&self) -> bool {
        self.program("on_sample").is_some_and(|program| program.autoload())
    }

    /// Samples by a perf event.
    pub(crate) fn attach_sampling(&mut self, event: &crate::perf::Event) -> Result<()> {
        let attach = |p: libbpf_rs::ProgramMut<'_>| p.attach_perf_event(event.duplicate().ok()?).ok();
        let link = self.program("on_sample").and_then(attach);
        let link = link.ok_or_else(|| unsupported("The BPF program for CPU samples cannot be attached"))?;
        self.links.push(link);
        Ok(())
    }

    /// What is read from connections to `port` are requests.
    fn serve(&self, port: u16) {
        if let Ok(ports) = self.map("ports") {
            let _ = ports.update(&u32::from(port).to_ne_bytes(), &[1], MapFlags::ANY);
        }
    }

    /// Begins to record spans.
    ///
    /// # Errors
    /// If the kernel refuses a probe: with which, and why.
    fn attach_spans(&mut self, probes: &[Probe]) -> Result<()> {
        if probes.is_empty() {
            return Ok(());
        }
        let (map, kinds) = (self.map("probes")?, probes::kinds(probes));
        for (id, probe) in probes.iter().enumerate() {
            let bad = |e: &dyn std::fmt::Display| {
                let (name, path) = (clean(&probe.name), probe.path.display().to_string());
                unsupported(&format!("The span {name} cannot be recorded in {} ({e})", clean(&path)))
            };
            map.update(&(id as u32).to_ne_bytes(), &probe.encode(kinds[id]), MapFlags::ANY).map_err(|e| bad(&e))?;
            let program = self.program("on_span").ok_or_else(|| bad(&"this kernel has no uprobes"))?;
            let opts = UprobeOpts {
                ref_ctr_offset: probe.semaphore as usize,
                cookie: id as u64,
                retprobe: probe.returns,
                ..UprobeOpts::default()
            };
            let link = program.attach_uprobe_with_opts(-1, &probe.path, probe.offset as usize, opts);
            self.links.push(link.map_err(|e| bad(&e))?);
        }
        self.hooks.push("uprobe".into());
        self.breakpoint = self.mean_breakpoint(probes);
        self.spans = probes.to_vec();
        Ok(())
    }

    /// What a breakpoint of `probes` costs on average.
    fn mean_breakpoint(&self, probes: &[Probe]) -> Nanos {
        let mut known: Vec<(Way, Nanos)> = Vec::new();
        let mut cost = |way: Way| match known.iter().find(|(of, _)| *of == way) {
            Some((_, cost)) => cost.0,
            None => {
                let cost = self.breakpoint(way).unwrap_or(breakpoint::USUAL);
                known.push((way, cost));
                cost.0
            }
        };
        let sum: u64 = probes.iter().map(|probe| cost(Way::at(&probe.path, probe.offset))).sum();
        Nanos(sum / probes.len().max(1) as u64)
    }

    /// Measured at a function of this program, whose calls the programs pass over.
    fn breakpoint(&self, way: Way) -> Option<Nanos> {
        let (path, offset) = way.place()?;
        let program = self.program("on_span")?;
        let attach = |retprobe| {
            let opts = UprobeOpts { cookie: u64::from(u32::MAX), retprobe, ..UprobeOpts::default() };
            program.attach_uprobe_with_opts(-1, path, offset, opts).ok()
        };
        let _both = [attach(false)?, attach(true)?];
        Some(way.cost())
    }

    fn program(&self, name: &str) -> Option<libbpf_rs::ProgramMut<'_>> {
        self.object.progs_mut().find(|p| p.name() == name)
    }

    /// Ends recording, at `t`; what has been counted of spans and not been told.
    pub(crate) fn detach(&mut self, t: u64) -> Vec<Side> {
        self.links.clear();
        self.births.clear();
        self.map("span_counts").map_or(Vec::new(), |counts| probes::untold(&self.spans, &counts, t))
    }

    /// Goes through all threads, for what `control` says; quietly nothing where the kernel cannot.
    pub(crate) fn look_at_all(&self, control: &Control) {
        self.control(control);
        let iterator = self.program("on_look").and_then(|p| p.attach().ok());
        if let Some(mut iterator) = iterator.and_then(|link| libbpf_rs::Iter::new(&link).ok()) {
            let _ = iterator.read_to_end(&mut Vec::new());
        }
    }

    /// Where this process lies in the whole machine, whose numbers the programs see.
    ///
    /// # Errors
    /// If the kernel cannot tell.
    pub(crate) fn place(&self, namespace: Namespace) -> Result<Place> {
        if namespace.is_whole() {
            return Ok(Place { tgid: namespace.own, level: 0 });
        }
        self.look_at_all(&Control { round: Round::Itself as u32, ..Control::default() });
        let map = self.object.maps().find(|m| m.name().to_string_lossy().ends_with(".bss"));
        let value = map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        let place = value.map(|bytes| Control::place(&bytes)).unwrap_or_default();
        if place.level == 0 {
            return Err(unsupported(
                "The kernel does not tell which processes are this container's: record from outside, or in a container \
                 that has the machine's processes (such as docker run --pid=host)",
            ));
        }
        Ok(place)
    }

    /// Tells the programs what has changed. A new epoch makes them write all stacks anew, under new hashes.
    pub(crate) fn control(&self, control: &Control) {
        if let Some(map) = self.object.maps().find(|m| m.name().to_string_lossy().ends_with(".bss")) {
            let _ = map.update(&0u32.to_ne_bytes(), &control.bytes(), MapFlags::ANY);
        }
    }
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
            "open_marks" | "keyed_marks" => map.set_max_entries(sizes.marking_threads)?,
            "connections" => map.set_max_entries(sizes.connections)?,
            "ports" if config.sockets > 0 => map.set_max_entries(1 << 16)?,
            "open_spans" => map.set_max_entries(sizes.span_threads)?,
            name if name.ends_with(".rodata") => map.set_initial_value(&config.bytes())?,
            _ => {}
        }
    }
    Ok(())
}
