//! What the disk did meanwhile: the requests behind a wait for it.

mod again;
mod requests;
#[cfg(test)]
mod tests;

use holdup_trace::{Amount, Nanos, StringId, ThreadIdx, Trace, WakeContext};
use rustc_hash::{FxHashMap, FxHashSet};

use super::tally::{Group, Tally};
use super::{Context, fault, flush};
use crate::label::{count, duration};
use crate::report::{Confidence, DiskDevice, DiskFacts, DiskIssuer, DiskNeighbour, Finding};
use again::{Places, Shortage};
use requests::{Request, Requests};

/// Devices and issuers that a finding names.
const NAMED: usize = 4;

/// So many flushes of a device's cache are no journal's that goes on by itself,
const MANY: u64 = 20;
/// and for so many of its requests each they take most of the time.
const FLUSHED: f64 = 0.3;

/// Puts what the disk did into the findings of `groups`. O(waits + samples + requests × groups that are about a disk).
pub(super) fn add_to_all(context: &Context, groups: &[(Group, Tally)], findings: &mut [Finding]) {
    let facts = facts(context, groups);
    let short = facts.iter().any(Option::is_some).then(|| Shortage::of(context)).flatten();
    for ((finding, facts), (group, tally)) in findings.iter_mut().zip(facts).zip(groups) {
        // What to do about memory that is swapped out is said already.
        let short = short.as_ref().filter(|_| !fault::is_swap(context, group, tally));
        // Who asks for it himself is told so already.
        let others_flush = |facts: &&DiskFacts| flushes(facts) && !flush::is_it(context, tally);
        if let Some(of_device) = facts.as_ref().filter(others_flush) {
            finding.title.add(&format!(", whose cache was flushed {} times", count(of_device.devices[0].flushes)));
            finding.advice = format!("{} {}", flush::OF_DEVICE, finding.advice);
        }
        add(finding, facts, short);
    }
}

/// Whether a device mostly had its cache flushed, so often that this is what takes the time.
fn flushes(facts: &DiskFacts) -> bool {
    facts.devices.first().is_some_and(|d| d.flushes >= MANY && d.flushes as f64 >= FLUSHED * d.requests as f64)
}

/// The facts for each of `groups`; none for those that are not about a disk. O(waits + requests × such groups).
fn facts(context: &Context, groups: &[(Group, Tally)]) -> Vec<Option<DiskFacts>> {
    let watch = |(group, tally): &(Group, Tally)| {
        matches!(group, Group::Disk(..)).then(|| {
            let threads = tally.by_thread.keys().copied().collect();
            Watch { threads, within: context.spans(tally, |_| true).0, ..Watch::default() }
        })
    };
    let mut watches: Vec<Option<Watch>> = groups.iter().map(watch).collect();
    if context.trace.block_ios.rows() > 0 && watches.iter().any(Option::is_some) {
        let mut open: Vec<&mut Watch> = watches.iter_mut().flatten().collect();
        let is_kernel = |thread| context.focus.is_kernel(thread);
        measure(context.trace, is_kernel, context.blame.window, &mut open);
    }
    let facts = |watch: Option<Watch>| watch.and_then(|w| w.facts(context.trace, |time| context.limits.once(time)));
    watches.into_iter().map(facts).collect()
}

/// Puts the facts into a finding and its evidence.
fn add(finding: &mut Finding, disk: Option<DiskFacts>, short: Option<&Shortage>) {
    let worked = |disk: &DiskFacts| disk.devices.iter().map(|d| d.worked_at_most_s).sum::<f64>();
    let idle = disk.as_ref().map(worked).filter(|worked| *worked < IDLE * finding.lasted_s);
    for device in disk.iter().flat_map(|disk| &disk.devices) {
        finding.evidence.extend(sentences(device));
        let other = device.others.first().filter(|other| idle.is_none() && matters(device, other));
        if let Some(other) = other {
            let process = &other.process;
            let what = format!("{} requests of {} in all", count(other.requests), size(other.bytes));
            finding.evidence.push(format!("meanwhile {process} had {what} to the same device"));
            finding.title.add(&format!(", which {process} used, too"));
            finding.advice = format!(
                "See whether {process} has to use the disk at the same time: let it wait (ionice, io.max), or give it another. {}",
                finding.advice
            );
        }
    }
    if let (Some(disk), Some(short)) = (&disk, short) {
        short.add(finding, disk);
    }
    if let Some(worked) = idle {
        finding.title.add(", though that disk had next to nothing to do");
        finding.advice = format!(
            "See what held its requests back: a limit on its control group's I/O (io.max, blkio.throttle), or the file system, such as a full \
             journal. {}",
            finding.advice
        );
        finding.doubts.push(format!("the device had something to do for {} of that at most", duration(worked)));
        // The order is that of doubt.
        finding.confidence = finding.confidence.max(Confidence::Medium);
    }
    finding.disk = disk;
}

/// Whether another program asked a device for so much more that requests had to wait for that.
fn matters(device: &DiskDevice, other: &DiskNeighbour) -> bool {
    other.bytes > device.bytes && other.took_s > took(device)
}

/// How long a device worked for a finding, in seconds.
fn took(device: &DiskDevice) -> f64 {
    device.mean_s * (device.requests + device.flushes) as f64
}

/// Less of the time of waits than this is not what the device takes.
const IDLE: f64 = 0.1;

/// One finding's view of the requests.
#[derive(Debug, Default)]
struct Watch {
    /// Who waits for the disk.
    threads: FxHashSet<ThreadIdx>,
    /// Threads of the kernel that ended such a wait: they act for those that waited.
    helpers: FxHashSet<ThreadIdx>,
    /// When, in nanoseconds, sorted and apart.
    within: Vec<(u64, u64)>,
    devices: FxHashMap<u32, Sum>,
}

/// What a finding's requests to one device add up to.
#[derive(Debug, Default)]
struct Sum {
    requests: u64,
    flushes: u64,
    bytes: u64,
    latency: Nanos,
    longest: Nanos,
    /// How long all requests took, whoever's.
    anybody: Nanos,
    /// Requests in flight when each of them was issued.
    depth: u64,
    sequential: u64,
    /// The megabytes of the device that were read or written.
    places: Places,
    /// Of which it is known that they are this finding's.
    own: u64,
    by: FxHashMap<ThreadIdx, u64>,
    /// By program.
    others: FxHashMap<StringId, Theirs>,
}

/// What the requests of another program add up to.
#[derive(Debug, Default)]
struct Theirs {
    requests: u64,
    bytes: u64,
    latency: Nanos,
}

impl Theirs {
    fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.bytes += u64::from(request.bytes);
        self.latency += Nanos(request.to - request.from);
    }
}

/// Gives each request to the watches that it concerns.
fn measure(trace: &Trace, is_kernel: impl Fn(ThreadIdx) -> bool, window: (u64, u64), watches: &mut [&mut Watch]) {
    for wait in trace.waits.iter().flatten() {
        if wait.context == WakeContext::Task && is_kernel(wait.waker) {
            for watch in watches.iter_mut().filter(|w| w.threads.contains(&wait.thread)) {
                watch.helpers.insert(wait.waker);
            }
        }
    }
    let workers = block_workers(trace, &is_kernel);
    let mut requests = Requests::default();
    for row in trace.block_ios.iter().flatten() {
        // One that ends behind the window, or began before it, is of another window.
        let Some(done) = requests.see(&row).filter(|r| r.from >= window.0 && r.to <= window.1) else { continue };
        for watch in watches.iter_mut() {
            let own = watch.threads.contains(&done.thread) || watch.helpers.contains(&done.thread);
            let flushes = done.bytes == 0 && workers.contains(&done.thread);
            if !watch.overlaps(&done) {
                continue;
            }
            let sum = watch.devices.entry(done.device).or_default();
            sum.anybody += Nanos(done.to - done.from);
            if own || flushes {
                sum.add(&done, own);
            } else if !is_kernel(done.thread) {
                // What the kernel writes back may be anybody's.
                let process = trace.threads.process.get(done.thread.index()).copied().unwrap_or_default();
                sum.others.entry(process).or_default().add(&done);
            }
        }
    }
}

/// The kernel's workers of the block layer: they flush the device's cache for whoever waits for that. They also issue what
/// others have queued, and whose that was cannot be told: it counts for nobody.
fn block_workers(trace: &Trace, is_kernel: impl Fn(ThreadIdx) -> bool) -> FxHashSet<ThreadIdx> {
    let is_worker = |name: &str| name.strip_prefix("kworker/").is_some_and(|rest| rest.contains("kblockd"));
    let all = (0..trace.threads.name.len()).map(|i| ThreadIdx(i as u32));
    all.filter(|t| is_kernel(*t) && is_worker(trace.text(trace.threads.name[t.index()]))).collect()
}

impl Watch {
    /// Whether a request was under way while somebody waited.
    fn overlaps(&self, request: &Request) -> bool {
        let next = self.within.partition_point(|span| span.1 < request.from);
        self.within.get(next).is_some_and(|span| span.0 <= request.to)
    }

    fn facts(self, trace: &Trace, once: impl Fn(Amount) -> f64) -> Option<DiskFacts> {
        let mut devices: Vec<(u32, Sum)> = self.devices.into_iter().filter(|(_, sum)| sum.own > 0).collect();
        devices.sort_by_key(|(device, sum)| (std::cmp::Reverse(sum.latency), *device));
        devices.truncate(NAMED);
        let devices: Vec<DiskDevice> =
            devices.into_iter().map(|(device, sum)| sum.facts(device, trace, &once)).collect();
        (!devices.is_empty()).then_some(DiskFacts { devices })
    }
}

impl Sum {
    fn add(&mut self, request: &Request, own: bool) {
        if request.bytes == 0 {
            self.flushes += 1;
        } else {
            self.requests += 1;
            self.sequential += u64::from(request.follows);
            self.places.add(request);
        }
        self.bytes += u64::from(request.bytes);
        let latency = Nanos(request.to - request.from);
        self.latency += latency;
        self.longest = self.longest.max(latency);
        self.depth += u64::from(request.depth);
        self.own += u64::from(own);
        *self.by.entry(request.thread).or_default() += 1;
    }

    fn facts(self, device: u32, trace: &Trace, once: impl Fn(Amount) -> f64) -> DiskDevice {
        let all = (self.requests + self.flushes).max(1) as f64;
        let mut by: FxHashMap<&str, u64> = FxHashMap::default();
        for (thread, n) in &self.by {
            let name = trace.threads.name.get(thread.index()).map_or("", |name| trace.text(*name));
            *by.entry(name).or_default() += n;
        }
        let mut by: Vec<DiskIssuer> =
            by.into_iter().map(|(thread, requests)| DiskIssuer { thread: thread.to_owned(), requests }).collect();
        by.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.thread.cmp(&b.thread)));
        by.truncate(NAMED);
        DiskDevice {
            device: format!("{}:{}", device >> 20, device & 0xf_ffff),
            requests: self.requests,
            flushes: self.flushes,
            bytes: self.bytes,
            mean_s: once(self.latency.amount() / all),
            longest_s: once(self.longest.amount()),
            worked_at_most_s: self.anybody.seconds(),
            queue_depth: self.depth as f64 / all,
            sequential_share: self.sequential as f64 / self.requests.max(1) as f64,
            times_each: self.places.times_each(self.bytes),
            by,
            others: self.others(trace),
        }
    }

    fn others(&self, trace: &Trace) -> Vec<DiskNeighbour> {
        let neighbour = |(process, theirs): (&StringId, &Theirs)| DiskNeighbour {
            process: trace.text(*process).to_owned(),
            requests: theirs.requests,
            bytes: theirs.bytes,
            took_s: theirs.latency.seconds(),
        };
        let mut others: Vec<DiskNeighbour> = self.others.iter().map(neighbour).collect();
        others.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.process.cmp(&b.process)));
        others.truncate(NAMED);
        others
    }
}

/// A device in words.
fn sentences(d: &DiskDevice) -> [String; 2] {
    let flushes = match d.flushes {
        0 => String::new(),
        1 => " and 1 flush of its cache".to_owned(),
        n => format!(" and {} flushes of its cache", count(n)),
    };
    let order = match d.sequential_share {
        s if s >= 0.9 => "one behind the other".to_owned(),
        s if s <= 0.1 => "all over it".to_owned(),
        s => format!("{:.0} % of them one behind the other", 100.0 * s),
    };
    let requests = if d.requests == 1 { "1 request".to_owned() } else { format!("{} requests", count(d.requests)) };
    let by: Vec<String> = d.by.iter().map(|i| format!("{} ({})", i.thread, count(i.requests))).collect();
    [
        format!(
            "meanwhile the device {} had {requests} of {} in all{flushes}, {order}: {} each, {} at most, {:.1} at a time",
            d.device,
            size(d.bytes),
            duration(d.mean_s),
            duration(d.longest_s),
            d.queue_depth,
        ),
        format!("issued by {}", by.join(", ")),
    ]
}

/// Bytes in words.
fn size(bytes: u64) -> String {
    match bytes {
        n if n < 1 << 20 => format!("{:.0} KB", n as f64 / 1024.0),
        n if n < 1 << 30 => format!("{:.1} MB", n as f64 / f64::from(1 << 20)),
        n => format!("{:.1} GB", n as f64 / f64::from(1 << 30)),
    }
}
