use holdup_trace::{
    BlockIoEvent, BlockedEvent, Cpu, Destination, LockId, NameEvent, SwitchEvent, SwitchState, TraceBuilder, WakeEvent,
};

use super::*;
use crate::report::Title;

const US: u64 = 1000;
const DISK: u32 = 254 << 20;
const FLUSH: u64 = (1 << 40) - 1;

/// A trace of requests, in microseconds.
struct Schedule(TraceBuilder);

impl Schedule {
    fn new() -> Self {
        let mut builder = TraceBuilder::new(&Destination::Memory).unwrap();
        for (tid, name) in
            [(10, "logger"), (11, "other"), (20, "kworker/0:1H-kblockd"), (21, "jbd2/vda-8"), (22, "kworker/1:2")]
        {
            let name = builder.string(name);
            builder.push(0, NameEvent { pid: tid, tid, name });
        }
        Schedule(builder)
    }

    fn io(mut self, at: u64, device: u32, sector: u64, bytes: u32, tid: u32) -> Self {
        let issue = tid != 0;
        self.0.push(at * US, BlockIoEvent { device, sector, bytes, tid, issue });
        self
    }

    /// A request from `from` to `to`.
    fn request(self, (from, to): (u64, u64), sector: u64, bytes: u32, tid: u32) -> Self {
        self.io(from, DISK, sector, bytes, tid).io(to, DISK, sector, bytes, 0)
    }

    /// `tid` waits, with a stack, until `waker` wakes it.
    fn wait(mut self, from: u64, to: u64, tid: u32, waker: u32) -> Self {
        let (lock, none) = (LockId::NONE, holdup_trace::ChainId::NONE);
        let switch = |prev, next, state| SwitchEvent {
            cpu: Cpu(0),
            prev,
            next,
            state,
            io_wait: true,
            syscall: 74,
            lock,
            chain: none,
        };
        let (context, target) = (WakeContext::Task, Cpu::NONE);
        self.0.push(from * US, switch(tid, 0, SwitchState::Uninterruptible));
        self.0
            .push(to * US, WakeEvent { cpu: Cpu(1), waker, wakee: tid, context, source: 0, target, lock, chain: none });
        self.0.push(to * US + 1, switch(0, tid, SwitchState::Runnable));
        let chain = self.0.chain(tid, &[1], &[2]);
        self.0.push(to * US + 1, BlockedEvent { tid, chain, lock });
        self
    }

    /// The facts of a finding that is about the thread 10 from 100 to 200 µs and from 300 to 400 µs.
    fn facts(self) -> Option<DiskFacts> {
        let trace = self.0.finish(None).unwrap();
        let thread = |tid| ThreadIdx(trace.threads.tid.iter().position(|t| *t == tid).unwrap() as u32);
        let within = vec![(100 * US, 200 * US), (300 * US, 400 * US)];
        let mut watch = Watch { threads: [thread(10)].into_iter().collect(), within, ..Watch::default() };
        let kernel: Vec<ThreadIdx> = [20, 21, 22].map(thread).into();
        measure(&trace, |t| kernel.contains(&t), (0, 1000 * US), &mut [&mut watch]);
        watch.facts(&trace, Amount::seconds)
    }
}

fn only(facts: Option<DiskFacts>) -> DiskDevice {
    let mut devices = facts.expect("facts").devices;
    assert_eq!(devices.len(), 1, "{devices:?}");
    devices.remove(0)
}

#[test]
fn requests_of_the_waiting_threads_count_while_they_wait() {
    let s = Schedule::new();
    // Of its own: 30 and 50 µs, one behind the other; then one elsewhere, and one outside of the windows.
    let s = s.request((100, 130), 800, 4096, 10).request((140, 190), 808, 4096, 10).request((310, 320), 4000, 8192, 10);
    let s = s.request((500, 600), 9000, 4096, 10).request((150, 160), 5000, 4096, 11);
    let device = only(s.facts());
    assert_eq!((device.device.as_str(), device.requests, device.flushes, device.bytes), ("254:0", 3, 0, 16384));
    assert!((device.mean_s - 30e-6).abs() < 1e-9 && (device.longest_s - 50e-6).abs() < 1e-9, "{device:?}");
    assert!((device.sequential_share - 1.0 / 3.0).abs() < 1e-9, "{device:?}");
    assert_eq!(device.by, [DiskIssuer { thread: "logger".to_owned(), requests: 3 }]);
}

#[test]
fn another_program_that_asks_for_more_at_the_same_time_is_told() {
    let s = Schedule::new().request((110, 150), 800, 4096, 10).request((120, 190), 9000, 1 << 20, 11);
    let s = s.request((500, 600), 20000, 1 << 20, 11);
    let device = only(s.facts());
    assert_eq!((device.requests, device.bytes), (1, 4096));
    let other = device.others.first().expect("another one");
    assert_eq!((other.process.as_str(), other.requests, other.bytes), ("other", 1, 1 << 20));
    let told = |lasted_s| {
        let title = Title::new("logger waited for the disk for a while", "1 thread stood still");
        let mut finding = Finding { title, lasted_s, ..Finding::default() };
        add(&mut finding, Some(DiskFacts { devices: vec![device.clone()] }), None);
        finding
    };
    let busy = told(100e-6);
    assert_eq!(busy.title, "logger waited for the disk for a while, which other used, too; 1 thread stood still");
    assert!(busy.advice.starts_with("See whether other has to use the disk at the same time"), "{}", busy.advice);
    assert!(busy.doubts.is_empty(), "{:?}", busy.doubts);

    // Of that neither can have made it wait for two seconds.
    let idle = told(2.0);
    assert_eq!(
        idle.title,
        "logger waited for the disk for a while, though that disk had next to nothing to do; 1 thread stood still"
    );
    assert!(idle.advice.starts_with("See what held its requests back: a limit"), "{}", idle.advice);
    assert_eq!(idle.doubts, ["the device had something to do for 110.0 µs of that at most"]);
}

#[test]
fn the_depth_counts_all_that_the_device_has_to_do() {
    let s =
        Schedule::new().request((110, 180), 1, 512, 11).request((120, 170), 2, 512, 11).request((130, 160), 9, 512, 10);
    assert_eq!(only(s.facts()).queue_depth, 3.0);
}

#[test]
fn threads_of_the_kernel_that_act_for_them_count_too() {
    // The worker of the block layer flushes; the journal's thread writes and wakes the logger; a worker that does neither.
    let s = Schedule::new().request((105, 110), 800, 4096, 10).request((110, 150), FLUSH, 0, 20);
    let s = s.request((120, 140), 6000, 4096, 21).wait(100, 160, 10, 21).request((125, 135), 7000, 4096, 22);
    // What the block layer's worker writes may be anybody's.
    let s = s.request((155, 158), 8000, 1 << 20, 20);
    let device = only(s.facts());
    assert_eq!((device.requests, device.flushes, device.bytes), (2, 1, 8192));
    let by: Vec<_> = device.by.iter().map(|i| (i.thread.as_str(), i.requests)).collect();
    assert_eq!(by, [("jbd2/vda-8", 1), ("kworker/0:1H-kblockd", 1), ("logger", 1)]);
}

#[test]
fn a_device_that_only_others_use_is_left_out() {
    let s = Schedule::new().request((110, 120), 1, 512, 11).request((110, 130), FLUSH, 0, 20);
    assert_eq!(s.facts(), None);
}

#[test]
fn ends_without_beginnings_and_beginnings_without_ends_are_no_requests() {
    // A completed one that nobody issued, one that never ends, and one that is issued again before its end was seen.
    let s = Schedule::new().io(110, DISK, 0, 0, 0).io(111, DISK, 77, 512, 10);
    let s = s.io(112, DISK, 88, 512, 10).request((150, 160), 88, 512, 10);
    let device = only(s.facts());
    assert_eq!((device.requests, device.queue_depth), (1, 3.0));
    assert!((device.longest_s - 10e-6).abs() < 1e-9, "{device:?}");
}

#[test]
fn more_open_requests_than_any_device_queues_are_forgotten() {
    let mut requests = Requests::default();
    let row = |sector, issue| holdup_trace::tables::BlockIo {
        t: holdup_trace::Timestamp::from_nanos_since_start(sector),
        device: DISK,
        sector,
        bytes: 512,
        thread: ThreadIdx(1),
        issue,
    };
    for sector in 0..200_000 {
        assert_eq!(requests.see(&row(sector, true)), None);
    }
    assert_eq!(requests.see(&row(5, false)), None, "it was forgotten");
    assert!(requests.see(&row(199_999, false)).is_some_and(|r| r.depth <= 1 << 16));
}

#[test]
fn a_device_in_words() {
    let device = DiskDevice {
        device: "8:0".to_owned(),
        requests: 5932,
        flushes: 2954,
        bytes: 24 << 20,
        mean_s: 31e-6,
        longest_s: 2.1e-3,
        worked_at_most_s: 0.3,
        queue_depth: 1.04,
        sequential_share: 0.02,
        times_each: 1.0,
        by: vec![
            DiskIssuer { thread: "logger".to_owned(), requests: 5932 },
            DiskIssuer { thread: "kworker/0:1H-kblockd".to_owned(), requests: 2954 },
        ],
        others: Vec::new(),
    };
    let said = [
        "meanwhile the device 8:0 had 5,932 requests of 24.0 MB in all and 2,954 flushes of its cache, all over it: \
         31.0 µs each, 2.1 ms at most, 1.0 at a time",
        "issued by logger (5,932), kworker/0:1H-kblockd (2,954)",
    ];
    assert_eq!(sentences(&device), said);
}

#[test]
fn a_device_that_has_little_to_do_is_not_what_takes_the_time() {
    let disk = |requests| {
        let worked_at_most_s = 0.001 * requests as f64;
        let device = DiskDevice { requests, worked_at_most_s, ..DiskDevice::default() };
        Some(DiskFacts { devices: vec![device] })
    };
    let found = |requests| {
        let mut finding = Finding { lasted_s: 2.0, confidence: Confidence::High, ..Finding::default() };
        add(&mut finding, disk(requests), None);
        (finding.confidence, finding.doubts.len())
    };
    assert_eq!([found(100), found(1000)], [(Confidence::Medium, 1), (Confidence::High, 0)]);
}

#[test]
fn what_is_read_again_and_again_is_told() {
    // Three places, of which one is read twice, and the second half of the other with the first of the third.
    let (mega, sectors) = (1 << 20, (1 << 20) / 512);
    let s = Schedule::new().request((110, 120), 0, mega, 10).request((130, 140), 0, mega, 10);
    let device = only(s.request((150, 160), 3 * sectors / 2, mega, 10).facts());
    assert_eq!(device.times_each, 1.0);
    assert_eq!(only(Schedule::new().request((110, 120), 1, 4096, 10).facts()).times_each, 4096.0 / f64::from(mega));
}

#[test]
fn more_places_than_are_remembered_are_not_counted() {
    let mut places = Places::default();
    let row = |sector, issue, bytes| holdup_trace::tables::BlockIo {
        t: holdup_trace::Timestamp::from_nanos_since_start(1),
        device: DISK,
        sector,
        bytes,
        thread: ThreadIdx(1),
        issue,
    };
    let request = |sector, bytes| {
        let mut requests = Requests::default();
        requests.see(&row(sector, true, bytes));
        requests.see(&row(sector, false, bytes)).expect("it ends")
    };
    places.add(&request(u64::MAX, u32::MAX));
    places.add(&request(0, u32::MAX));
    assert!(places.times_each(1 << 30) > 0.0);
    (0..5000).for_each(|n| places.add(&request(n << 17, u32::MAX)));
    assert_eq!(places.times_each(1 << 50), 0.0);
}

#[test]
fn why_it_is_read_again_is_told_where_memory_is_short() {
    let told = |times_each, is_limit| {
        let device = DiskDevice { requests: 10_000, worked_at_most_s: 10.0, times_each, ..DiskDevice::default() };
        let title = Title::new("logger waited for the disk for 2.00 s", "1 thread stood still");
        let mut finding = Finding { title, lasted_s: 2.0, ..Finding::default() };
        add(&mut finding, Some(DiskFacts { devices: vec![device] }), Some(&Shortage { share: 0.4, is_limit }));
        (finding.title, finding.advice)
    };
    let (title, advice) = told(20.0, true);
    assert!(title.contains(" for 2.00 s, again and again for the same, as memory was short; "), "{title}");
    assert!(advice.starts_with("Its control group may have no more memory (memory.max"), "{advice}");
    assert!(told(20.0, false).1.starts_with("The machine is short of memory"));
    // Once through a large file.
    assert!(!told(1.0, true).0.contains("memory"));
}
