//! How many sleep at a time.

mod common;

use std::sync::Arc;

use common::{FUTEX, POLL, READ, SLEEP, Schedule, WAIT4, WRITE};
use holdup_analysis::report::{Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    Image, ListenerEvent, Location, NameEvent, ParentEvent, SwitchState, Symbolizer, Trace, WakeContext,
};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;
struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], at: u64) -> Vec<Location> {
        let function = ["query", "take", "serve", "pthread_cond_wait"][(at / 0x1000) as usize - 1];
        let module = if at < 0x4000 { "/bin/app" } else { "/usr/lib/libc.so.6" };
        vec![Location { function: function.into(), module: module.into(), ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// How long each sleeps, in milliseconds.
const SLEPT: f64 = 20.0;

/// Whoever has slept lets the next one in and waits for its turn: of eight threads so many sleep at a time as `starts` has, each
/// since then.
fn pool(starts: &[f64]) -> Finding {
    pool_until(f64::INFINITY, starts, &[])
}

/// The same, but for one of them that lets nobody in from `until` on; they wait for their turn at `waits`.
fn pool_until(until: f64, starts: &[f64], waits: &[u64]) -> Finding {
    let end = 1200.0;
    let mut s = Schedule::new(8, end).thread(1, "app").in_focus();
    for tid in 10..18 {
        s = s.thread(tid, &format!("worker-{tid}"));
    }
    let mut queue: std::collections::VecDeque<u32> = (10..18).collect();
    // When who wakes on which CPU.
    let mut asleep: Vec<(f64, u16, u32)> = Vec::new();
    for (cpu, &at) in (0..).zip(starts) {
        let tid = queue.pop_front().unwrap();
        s = s.waits_at(tid, cpu, [at, at + 0.01], SLEEP, &[0x1000]);
        asleep.push((at + 0.01 + SLEPT, cpu, tid));
    }
    loop {
        asleep.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (t, cpu, tid) = asleep.pop().unwrap();
        if t + 1.0 > end {
            break;
        }
        s = s.wakes(t, cpu, 0, tid, WakeContext::Timer, 0).switch(t + 0.01, cpu, 0, RUNS, -1, tid);
        queue.push_back(tid);
        if !waits.is_empty() {
            // Somebody asks it for the next, and it waits for its turn.
            s = s.waits_at(tid, cpu, [t + 0.02, t + 0.021], READ, &[0x3010]).by(t + 0.5, 7, 1, tid);
            s = s.waits_at(tid, 7, [t + 0.51, t + 0.52], FUTEX, waits);
        }
        if t > until && asleep.len() + 1 == starts.len() {
            continue;
        }
        let next = queue.pop_front().unwrap();
        if waits.is_empty() {
            s = s.futex(t + 0.02, tid, 0).by(t + 0.03, cpu, tid, next).switch(t + 0.04, cpu, tid, SLEEPS, FUTEX, 0);
        } else {
            s = s.by(t + 0.0205, cpu, tid, next);
        }
        s = s.waits_at(next, cpu, [t + 0.05, t + 0.06], SLEEP, &[0x1000]);
        asleep.push((t + 0.06 + SLEPT, cpu, next));
    }
    let answer = explain(&s.finish_with(&mut Namer), "x", &Options::default(), &NoDisassembler).unwrap();
    let found = answer.findings.iter().find(|f| f.kind == FindingKind::SleepPolling);
    found.unwrap_or_else(|| panic!("{:#?}", answer.findings)).clone()
}

#[test]
fn as_many_as_are_let_in() {
    let two = pool(&[0.0, 7.0]);
    assert!(two.title.contains(", 2 at a time, in the middle of their work"), "{}", two.title);
    assert!(two.advice.starts_with("Never more than 2 at once: find what lets no more in"), "{}", two.advice);

    let one = pool(&[0.0]);
    assert!(one.title.contains(", one at a time, in the middle of their work"), "{}", one.title);
    assert!(one.advice.starts_with("Never two at once: "), "{}", one.advice);
}

#[test]
fn those_who_sleep_let_in_who_waits_for_its_turn() {
    let found = pool_until(600.0, &[0.0, 7.0], &[0x4010, 0x2010]);
    assert!(!found.title.contains("at a time"), "{}", found.title);
    assert!(found.advice.starts_with("Those that sleep let in those that wait in take: have more"), "{found:#?}");
}

#[test]
fn where_most_of_them_sleep_nobody_keeps_them_out() {
    let most = pool(&[0.0, 3.0, 6.0, 9.0, 12.0]);
    assert!(!most.title.contains("at a time"), "{}", most.title);
}

const WEB: [(u64, &str); 8] = [
    (0x1000, "ask"),
    (0x2000, "next_request"),
    (0x3000, "serve"),
    (0x4000, "load"),
    (0x5000, "get_connection"),
    (0xffff_ffff_8100_0000, "ep_poll"),
    (0xffff_ffff_8100_1000, "anon_pipe_read"),
    (0xffff_ffff_8100_2000, "tcp_recvmsg"),
];

/// A client has two requests under way at a web server, which asks a service; that answers each after 30 ms, by a timer of its loop. The web
/// server has a thread for each request, which takes it at `takes`, or one loop for all. It asks so often for each request, by these files. The service waits at `serves`.
fn asks_by(web: [u32; 2], takes: &[u64], often: usize, files: [u16; 2], serves: &[u64]) -> Finding {
    first(&requests(web, takes, often, files, serves), None)
}

fn first(trace: &Trace, focus: Option<&str>) -> Finding {
    let options = Options { focus: focus.map(str::to_owned), ..Options::default() };
    let answer = explain(trace, "x", &options, &NoDisassembler).unwrap();
    answer.findings.first().unwrap_or_else(|| panic!("{answer:#?}")).clone()
}

fn requests(web: [u32; 2], takes: &[u64], often: usize, files: [u16; 2], serves: &[u64]) -> Trace {
    requests_at(&[0x1000], web, takes, often, files, serves)
}

/// The same where it asks at `asks`.
fn requests_at(asks: &[u64], web: [u32; 2], takes: &[u64], often: usize, files: [u16; 2], serves: &[u64]) -> Trace {
    let end = 1000.0;
    let mut s = Schedule::new(4, end).thread(1, "sh");
    for (pid, tid, name) in [(20, 20, "service"), (30, 30, "web"), (30, 31, "web"), (40, 40, "client")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid != 40 });
        s.builder.push(0, ParentEvent { pid, parent: 1 });
    }
    let call = if web[0] == web[1] { POLL } else { READ };
    for (request, tid) in web.into_iter().enumerate() {
        let cpu = 1 + request as u16;
        for asked in 1.. {
            let b = 1.0 + 15.0 * request as f64 + 30.5 * (asked - 1) as f64;
            if b + 31.0 >= end {
                break;
            }
            s = s.waits_at(tid, cpu, [b, b + 0.2], call, asks);
            s = s.wakes(b + 0.1, cpu, tid, 20, WakeContext::Task, files[request]);
            s = s.waits_at(20, 0, [b + 0.1, b + 0.3], POLL, serves);
            s = s.wakes(b + 30.0, 0, 0, 20, WakeContext::Timer, 0).by(b + 30.1, 0, 20, tid);
            s = s.waits_at(20, 0, [b + 30.0, b + 30.3], POLL, serves);
            if asked % often == 0 {
                s = s.waits_at(tid, cpu, [b + 30.1, b + 30.4], call, takes).by(b + 30.2, cpu, tid, 40);
                s = s.waits_at(40, 3, [b + 30.2, b + 30.6], POLL, &[0x4000]).by(b + 30.5, 3, 40, tid);
            }
        }
    }
    s.finish_with(&mut common::Namer(&WEB))
}

/// A pool lies in the middle, whoever is looked at.
#[test]
fn who_lets_no_more_through_need_not_be_in_focus() {
    let trace = requests([30, 31], &[0x2000], 1, [8, 9], &[0x3000]);
    for focus in ["client", "web", "service"] {
        let title = first(&trace, Some(focus)).title;
        assert!(title.contains(", asked by web 2 at a time (in ask)"), "{focus}: {title}");
    }
}

#[test]
fn who_reads_from_a_pipe_beside_him_asks_nothing() {
    let title = |asks: &[u64]| first(&requests_at(asks, [30, 31], &[0x2000], 1, [8, 9], &[0x3000]), None).title;
    let by_socket = title(&[0xffff_ffff_8100_2000, 0x1000]);
    assert!(by_socket.contains(", asked by web"), "{by_socket}");
    let title = title(&[0xffff_ffff_8100_1000, 0x1000]);
    assert!(title.contains("slept for") && !title.contains("asked by"), "{title}");
}

#[test]
fn who_lets_no_more_through_is_told_by_those_who_ask() {
    let pool = asks_by([30, 31], &[0x2000], 1, [8, 9], &[0x3000]);
    assert!(pool.title.starts_with("service slept for"), "{}", pool.title);
    assert!(pool.title.contains(", asked by web 2 at a time (in ask), while others waited for it"), "{}", pool.title);
    assert!(pool.advice.starts_with("web, in ask, never asks more than 2 at once: always the same 2 threads do so."));

    // One function that waits for clients, too, called on another way.
    let shared = asks_by([30, 31], &[0x1000, 0x2000], 1, [8, 9], &[0x3000]);
    assert!(shared.title.contains(", asked by web 2 at a time"), "{}", shared.title);

    // Though hardly anybody else wakes it, which asks for each request again and again.
    for often in [1, 12] {
        let looped = asks_by([30, 30], &[0x1000], often, [0, 0], &[0x3000]);
        assert!(looped.title.starts_with("service slept for"), "{}", looped.title);
        assert!(!looped.title.contains("asked by"), "a loop may ask for several: {}", looped.title);
    }
}

#[test]
fn of_a_loop_the_connections_tell_how_many_it_may_ask() {
    let event_loop = [0xffff_ffff_8100_0000, 0x3000];
    let two = asks_by([30, 30], &[0x1000], 1, [8, 9], &event_loop);
    assert!(two.title.contains("before it answered, asked by web over 2 connections; "), "{}", two.title);
    let one = asks_by([30, 30], &[0x1000], 1, [8, 8], &event_loop);
    assert!(one.title.contains("before it answered, asked by web over one connection; "), "{}", one.title);
    assert!(
        one.advice.starts_with("web asks over no more than one connection. If it waits for each answer"),
        "{}",
        one.advice
    );
}

/// A service with one thread sleeps in each of the requests that a load generator's loop makes. Of each `often`-th it is told by the loop,
/// for which it waits; the others have come meanwhile, by whatever connections.
fn busy_service(often: usize) -> Finding {
    let end = 1000.0;
    let mut s = Schedule::new(2, end);
    for (pid, name) in [(20, "service"), (30, "web")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid: pid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid == 20 });
    }
    for asked in 0..32 {
        let b = 1.0 + 31.0 * asked as f64;
        s = s.waits_at(30, 1, [b, b + 0.3], POLL, &[0xffff_ffff_8100_0000, 0x3000]);
        if asked % often == 0 {
            s = s.waits_at(20, 0, [b - 0.5, b - 0.3], POLL, &[0x3000]).wakes(b + 0.1, 1, 30, 20, WakeContext::Task, 8);
        }
        s = s.waits_at(20, 0, [b + 0.1, b + 0.4], SLEEP, &[0x4000]).wakes(b + 30.0, 0, 0, 20, WakeContext::Timer, 0);
        s = s.by(b + 30.2, 0, 20, 30);
    }
    first(&s.finish_with(&mut common::Namer(&WEB)), Some("web"))
}

#[test]
fn who_is_asked_while_he_works_does_not_know_over_how_many_connections() {
    let each = busy_service(1);
    assert!(each.title.contains(", asked by web over one connection,"), "{}", each.title);
    let seldom = busy_service(8);
    assert!(seldom.title.contains(" slept for 947.2 ms, one at a time, while"), "{}", seldom.title);
}

#[test]
fn who_finds_no_room_to_write_into_asks_nothing() {
    let mut s = Schedule::new(2, 1000.0);
    for (pid, name) in [(20, "service"), (30, "web")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid: pid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid == 20 });
    }
    for line in 0..48 {
        let b = 1.0 + 20.0 * f64::from(line);
        s = s.waits_at(30, 1, [b, b + 0.3], WRITE, &[0x1000]);
        s = s.waits_at(20, 0, [b, b + 0.1], SLEEP, &[0x4000]).wakes(b + 19.7, 0, 0, 20, WakeContext::Timer, 0);
        s = s.by(b + 19.9, 0, 20, 30);
    }
    let found = first(&s.finish_with(&mut common::Namer(&WEB)), Some("web"));
    assert!(found.title.starts_with("service slept for 931.2 ms, one at a time, while"), "{}", found.title);
}

#[test]
fn who_cannot_send_does_not_wait_for_input() {
    let names = vec![(0x1000, "upload"), (0xffff_ffff_8100_0000, "sk_stream_wait_memory")].leak();
    let mut s = Schedule::new(1, 1000.0).thread(10, "uploader").in_focus();
    for part in 0..48 {
        let b = 1.0 + 20.0 * f64::from(part);
        s = s.waits_at(10, 0, [b, b + 0.3], WRITE, &[0xffff_ffff_8100_0010, 0x1010]);
        s = s.wakes(b + 19.7, 0, 0, 10, WakeContext::SoftIrq, common::NET_RX);
    }
    let found = first(&s.finish_with(&mut common::Namer(names)), None);
    let did = "uploader could not send for 9";
    assert!(found.title.starts_with(did) && found.title.contains("or the way to it, took no more"), "{}", found.title);
    assert!(found.advice.starts_with("See what takes it so slowly"), "{}", found.advice);
}

const FLOCK: i16 = 73;
const PHP: [(u64, &str); 5] = [
    (0x1000, "session_start"),
    (0x2000, "next"),
    (0x4000, "load"),
    (0xffff_ffff_8100_0000, "ep_poll"),
    (0xffff_ffff_8200_0000, "locks_lock_inode_wait"),
];

/// Four clients ask four processes of a server by a web server's loop. Each sleeps for 20 ms with the session's lock, for which the others
/// wait.
fn one_session() -> Finding {
    let end = 1000.0;
    let mut s = Schedule::new(8, end);
    let threads = (20..24).map(|tid| (tid, "php")).chain([(30, "web")]).chain((40..44).map(|tid| (tid, "client")));
    for (pid, name) in threads {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid: pid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid < 40 });
    }
    for round in 0..45 {
        let (b, k) = (1.0 + 22.0 * f64::from(round), round % 4);
        let (php, next, client) = (20 + k, 20 + (k + 1) % 4, 40 + k);
        let cpu = k as u16;
        s = s.waits_at(php, cpu, [b, b + 0.2], SLEEP, &[0x4000]).wakes(b + 20.0, cpu, 0, php, WakeContext::Timer, 0);
        s = s.waits_at(php, cpu, [b + 20.1, b + 20.95], FLOCK, &[0xffff_ffff_8200_0000, 0x1000]);
        s = s.by(b + 20.2, cpu, php, 30).by(b + 20.9, cpu, php, next);
        s = s.waits_at(30, 6, [b + 20.3, b + 20.6], POLL, &[0xffff_ffff_8100_0000, 0x2000]).by(b + 20.4, 6, 30, client);
        s = s.waits_at(client, 7, [b + 20.5, b + 20.7], POLL, &[0x2000]);
    }
    first(&s.finish_with(&mut common::Namer(&PHP)), None)
}

#[test]
fn the_lock_that_lets_one_in_at_a_time_is_told() {
    let found = one_session();
    let told = "4 php processes slept for 891.0 ms, one at a time, with a lock that programs set on a file (flock, fcntl), while others";
    assert!(found.title.starts_with(told), "{}", found.title);
    assert!(found.advice.contains("Keep the file's lock in load for shorter"), "{}", found.advice);
}

/// A web server's threads ask a service two at a time, each for 30 ms: who has been answered lets the next one of six in.
#[test]
fn where_the_others_wait_for_their_turn_is_told() {
    let end = 1000.0;
    let mut s = Schedule::new(4, end);
    for (pid, tid, name) in (30..36).map(|tid| (30, tid, "web")).chain([(20, 20, "service"), (40, 40, "client")]) {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid != 40 });
    }
    for tid in 32..36 {
        let begin = 0.1 * f64::from(tid - 31);
        s = s.waits_at(tid, 1, [begin, begin + 0.05], FUTEX, &[0x5000]);
    }
    let mut turn: std::collections::VecDeque<u32> = (32..36).collect();
    let (mut b, mut cpu) = (1.0, 1);
    let mut asking = std::collections::VecDeque::from([30, 31]);
    while b + 40.0 < end {
        let tid = asking.pop_front().unwrap();
        s = s.waits_at(tid, cpu, [b, b + 0.2], READ, &[0x1000]).by(b + 0.1, cpu, tid, 20);
        s = s.waits_at(20, 0, [b + 0.1, b + 0.3], POLL, &[0x3000]);
        s = s.wakes(b + 30.0, 0, 0, 20, WakeContext::Timer, 0).by(b + 30.1, 0, 20, tid);
        s = s.waits_at(20, 0, [b + 30.0, b + 30.3], POLL, &[0x3000]);
        let next = turn.pop_front().unwrap();
        s = s.waits_at(tid, cpu, [b + 30.1, b + 30.4], READ, &[0x2000]);
        s = s.by(b + 30.2, cpu, tid, 40).by(b + 30.3, cpu, tid, next);
        s = s.waits_at(40, 3, [b + 30.2, b + 30.6], POLL, &[0x4000]).by(b + 30.5, 3, 40, tid);
        s = s.waits_at(tid, cpu, [b + 30.6, b + 30.7], FUTEX, &[0x5000]);
        turn.push_back(tid);
        asking.push_back(next);
        (b, cpu) = (b + 15.5, 3 - cpu);
    }
    let trace = s.finish_with(&mut common::Namer(&WEB));
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let first = answer.findings.first().unwrap_or_else(|| panic!("{answer:#?}"));
    assert!(first.title.contains(", asked by web 2 at a time (others waited in get_connection)"), "{}", first.title);
    assert!(
        first.advice.contains("others of it wait meanwhile in get_connection: let more in there"),
        "{}",
        first.advice
    );
}

/// Two processes of a database wait for a row of each other's, until a time-out ends it for the first; a client waits for either.
#[test]
fn two_that_wait_for_each_other_are_told() {
    const NAMES: [(u64, &str); 4] =
        [(0x1000, "ProcSleep"), (0x2000, "PQgetResult"), (0x3000, "ReadCommand"), (0x4000, "LockAcquireExtended")];
    let mut s = Schedule::new(6, 1000.0);
    for (pid, name) in [(20, "postgres"), (21, "postgres"), (40, "psql"), (41, "psql"), (42, "bash"), (43, "make")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid: pid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid < 40 });
    }
    for (k, cpu) in [(0, 0), (1, 1)] {
        s = s.waits_at(20 + k, cpu, [0.2, 0.4], READ, &[0x3000]);
        s = s.waits_at(40 + k, 2 + cpu, [0.8, 1.2], READ, &[0x2000]).by(1.0, 2 + cpu, 40 + k, 20 + k);
        s = s.waits_at(42 + k, 4 + cpu, [0.8, 0.9], WAIT4, &[0x2000]);
        s = s.waits_at(20 + k, cpu, [1.1, 1.3], if k == 0 { SLEEP } else { FUTEX }, &[0x1000, 0x4010]);
    }
    s = s.wakes(990.0, 0, 0, 20, WakeContext::Timer, 0).waits_at(20, 0, [990.1, 992.0], READ, &[0x3000]);
    s = s.by(991.0, 0, 20, 21).by(991.5, 0, 20, 40).waits_at(21, 1, [991.1, 992.0], READ, &[0x3000]);
    s = s.by(991.6, 1, 21, 41).waits_at(40, 2, [991.6, 992.0], READ, &[0x2000]);
    s = s.waits_at(41, 3, [991.7, 992.0], READ, &[0x2000]).by(991.8, 2, 40, 42).waits_at(
        42,
        4,
        [991.9, 992.0],
        WAIT4,
        &[0x2000],
    );
    s = s.by(991.95, 4, 42, 43).waits_at(43, 5, [992.0, 992.1], WAIT4, &[0x2000]);
    let found = first(&s.finish_with(&mut common::Namer(&NAMES)), None);
    let told = "postgres slept for 988.7 ms in tries to get a row or table lock of PostgreSQL, while others waited for one of its own;";
    assert!(found.title.starts_with(told), "{}", found.title);
    assert!(found.advice.contains("(a deadlock, which a time-out ends)"), "{}", found.advice);
}
