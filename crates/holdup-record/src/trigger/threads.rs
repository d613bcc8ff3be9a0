//! What the threads of the machine do now, and the conditions about it.

use std::collections::VecDeque;

use holdup_base::text::clean;
use holdup_spool::{Happening, Left, What};
use rustc_hash::FxHashMap;

use super::Fired;
use super::cond::Condition;
use super::idle::{Idle, Window};
use super::names::{Named, Whose};

/// A wait that began longer ago than this before the CPUs became idle is taken for one at home: a pool without work.
const RECENT: u64 = 10_000_000_000;

/// The threads that are not known to run, and the conditions.
#[derive(Debug)]
pub(crate) struct Threads {
    /// Bounded by the threads that there are: who ends is forgotten.
    known: FxHashMap<u32, Thread>,
    whose: Whose,
    idle: Vec<(Condition, Idle)>,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    pid: u32,
    state: State,
    since: u64,
    /// The longest time of a condition that this wait was told for: one that lasts is told once.
    told: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Waits(Left),
}

/// A condition about single threads.
#[derive(Debug)]
struct Rule {
    condition: Condition,
    least: u64,
    named: Option<Named>,
    /// Of waits: of every kind.
    any: bool,
    is_queue: bool,
}

impl Threads {
    /// `None` if no condition is about threads.
    pub(crate) fn new(conditions: &[Condition], whose: Whose, cpus: usize, t: u64) -> Option<Threads> {
        let (mut idle, mut rules) = (Vec::new(), Vec::new());
        for condition in conditions {
            match condition {
                Condition::Idle { share, time } => idle.push((condition.clone(), Idle::new(*share, *time, cpus, t))),
                Condition::Queue { time, name } => {
                    let (least, named) = (time.as_nanos() as u64, name.as_deref().map(Named::new));
                    rules.push(Rule { condition: condition.clone(), least, named, any: true, is_queue: true });
                }
                Condition::Wait { time, name, any } => {
                    let (least, named) = (time.as_nanos() as u64, Some(Named::new(name)));
                    rules.push(Rule { condition: condition.clone(), least, named, any: *any, is_queue: false });
                }
                Condition::Pressure { .. } | Condition::Log { .. } | Condition::File { .. } => {}
            }
        }
        let is_any = !idle.is_empty() || !rules.is_empty();
        is_any.then(|| Threads { known: FxHashMap::default(), whose, idle, rules })
    }

    /// What threads do is not known any more; how they are called is.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.idle.iter_mut().for_each(|(_, idle)| idle.forget());
    }

    pub(crate) fn name(&mut self, pid: u32, tid: u32, name: &str) {
        self.rules.iter_mut().filter_map(|rule| rule.named.as_mut()).for_each(|named| named.name(pid, tid, name));
    }

    /// Something happens, later than what happened before.
    pub(crate) fn happen(&mut self, happening: &Happening, fired: &mut VecDeque<Fired>) {
        let t = happening.t;
        self.advance(t, fired);
        match &happening.what {
            What::Switch { cpu, from, pid, left, to } => {
                self.idle.iter_mut().for_each(|(_, idle)| idle.switch(*cpu, t, *to == 0));
                self.leaves(t, *from, *pid, *left);
                if let Some(thread) = self.known.remove(to).filter(|thread| thread.state == State::Ready) {
                    self.ends(*to, &thread, t, fired);
                }
            }
            What::Ready { tid } => {
                let Some(thread) = self.known.get_mut(tid) else { return };
                if matches!(thread.state, State::Waits(_)) {
                    let before =
                        std::mem::replace(thread, Thread { state: State::Ready, since: t, told: 0, ..*thread });
                    self.ends(*tid, &before, t, fired);
                }
            }
            What::Fork { parent, parent_pid, pid, tid } => {
                self.whose.fork(*parent_pid, *pid);
                self.rules.iter_mut().filter_map(|r| r.named.as_mut()).for_each(|n| n.fork(*parent, *pid, *tid));
            }
            What::Name { pid, tid, name } => self.name(*pid, *tid, name),
            What::Exit { tid } => {
                self.known.remove(tid);
                self.whose.exit(*tid);
                self.rules.iter_mut().filter_map(|rule| rule.named.as_mut()).for_each(|named| named.exit(*tid));
            }
        }
    }

    fn leaves(&mut self, t: u64, tid: u32, pid: u32, left: Left) {
        let state = match left {
            Left::Ready => State::Ready,
            Left::Futex | Left::Uninterruptibly | Left::Asleep => State::Waits(left),
            Left::Away => return,
        };
        if tid != 0 {
            self.known.insert(tid, Thread { pid, state, since: t, told: 0 });
        }
    }

    /// A thread was ready, or waited, until `t`.
    fn ends(&self, tid: u32, thread: &Thread, t: u64, fired: &mut VecDeque<Fired>) {
        let rule = self.rules.iter().find(|rule| rule.holds(&self.whose, tid, thread, t));
        fired.extend(rule.map(|rule| Fired { t, why: rule.why(tid, thread, t, false) }));
    }

    /// Looks for threads that still wait at `t`: O(threads).
    pub(crate) fn scan(&mut self, t: u64, fired: &mut VecDeque<Fired>) {
        self.advance(t, fired);
        if self.rules.is_empty() {
            return;
        }
        for (tid, thread) in &mut self.known {
            for rule in &self.rules {
                if rule.holds(&self.whose, *tid, thread, t) {
                    fired.push_back(Fired { t, why: rule.why(*tid, thread, t, true) });
                    thread.told = rule.least;
                }
            }
        }
    }

    fn advance(&mut self, t: u64, fired: &mut VecDeque<Fired>) {
        for (condition, idle) in &mut self.idle {
            let Some(window) = idle.advance(t) else { continue };
            let waits = |(_, thread): &(&u32, &Thread)| is_held_up(thread, &self.whose, window);
            if let Some((tid, thread)) = self.known.iter().find(waits) {
                idle.tell();
                let (share, who) = (window.share * 100.0, label(*tid));
                let how = if thread.state == State::Waits(Left::Futex) { "in futex" } else { "uninterruptibly" };
                fired.push_back(Fired {
                    t,
                    why: format!("{condition}: {share:.0}% of the CPUs were idle while {who} waited {how}"),
                });
            }
        }
    }
}

/// Whether a thread of the target waits for something that other threads or devices do, and has not done so for long.
fn is_held_up(thread: &Thread, whose: &Whose, window: Window) -> bool {
    let is_work = matches!(thread.state, State::Waits(Left::Futex | Left::Uninterruptibly));
    is_work
        && thread.since <= window.begin
        && thread.since.saturating_add(RECENT) >= window.begin
        && whose.is_target(thread.pid)
}

impl Rule {
    fn holds(&self, whose: &Whose, tid: u32, thread: &Thread, t: u64) -> bool {
        let is_such = match thread.state {
            State::Ready => self.is_queue,
            State::Waits(Left::Asleep) => !self.is_queue && self.any,
            State::Waits(_) => !self.is_queue,
        };
        is_such
            && t.saturating_sub(thread.since) >= self.least
            && self.least > thread.told
            && match &self.named {
                Some(named) => named.has(thread.pid, tid) && !whose.is_ours(thread.pid),
                None => whose.is_target(thread.pid),
            }
    }

    fn why(&self, tid: u32, thread: &Thread, t: u64, lasts: bool) -> String {
        let time = holdup_base::numbers::duration(t.saturating_sub(thread.since) as f64 / 1e9);
        let (who, has) = (label(tid), if lasts { "has" } else { "had" });
        match thread.state {
            State::Ready => format!("{}: {who} {has} been ready for {time} without a CPU", self.condition),
            State::Waits(_) => format!("{}: {who} {has} waited for {time}", self.condition),
        }
    }
}

/// A thread by number, and by name if it is there.
fn label(tid: u32) -> String {
    let name = std::fs::read(format!("/proc/{tid}/comm")).ok();
    let name = name.map(|name| clean(String::from_utf8_lossy(&name).trim_end_matches('\n')).into_owned());
    name.map_or(format!("thread {tid}"), |name| format!("thread {tid} ({name})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// No thread has such a number.
    const A: u32 = 0xff_0001;
    const B: u32 = 0xff_0002;

    /// The texts of what fires.
    struct Scene {
        threads: Threads,
        fired: VecDeque<Fired>,
    }

    impl Scene {
        fn new(conditions: &[&str], focus: &[u32]) -> Scene {
            let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
            let threads = Threads::new(&conditions, Whose::new(focus, 1), 2, 0).unwrap();
            Scene { threads, fired: VecDeque::new() }
        }

        fn at(&mut self, ms: u64, what: What) {
            self.threads.happen(&Happening { t: ms * MS, what }, &mut self.fired);
        }

        fn switch(&mut self, ms: u64, cpu: u16, from: u32, left: Left, to: u32) {
            self.at(ms, What::Switch { cpu, from, pid: from, left, to });
        }

        fn scan(&mut self, ms: u64) {
            self.threads.scan(ms * MS, &mut self.fired);
        }

        fn take(&mut self) -> Vec<(u64, String)> {
            self.fired.drain(..).map(|f| (f.t / MS, f.why)).collect()
        }
    }

    #[test]
    fn who_is_ready_for_long_is_told_at_its_end_or_meanwhile() {
        let mut scene = Scene::new(&["queue 20ms"], &[]);
        scene.switch(10, 0, A, Left::Ready, B);
        scene.switch(29, 0, B, Left::Asleep, A);
        assert_eq!(scene.take(), []);
        scene.at(40, What::Ready { tid: B });
        scene.switch(61, 1, 0, Left::Away, B);
        let expected = format!("queue 20ms: thread {B} had been ready for 21.0 ms without a CPU");
        assert_eq!(scene.take(), [(61, expected)]);
        scene.switch(70, 0, A, Left::Ready, 0);
        scene.scan(100);
        scene.scan(200);
        let told = scene.take();
        assert!(told.len() == 1 && told[0].1.contains("has been ready for 30.0 ms"), "{told:?}");
    }

    #[test]
    fn waits_of_a_name_are_told_once() {
        let mut scene = Scene::new(&["wait 1s server", "wait 3s server any"], &[]);
        scene.threads.name(A, A, "server");
        scene.switch(0, 0, A, Left::Futex, 0);
        scene.switch(0, 1, B, Left::Futex, 0);
        scene.scan(900);
        assert_eq!(scene.take(), []);
        scene.scan(1100);
        scene.scan(1300);
        assert_eq!(scene.take(), [(1100, format!("wait 1s server: thread {A} has waited for 1.10 s"))]);
        scene.scan(3100);
        assert!(scene.take()[0].1.starts_with("wait 3s server any"), "a longer one");
        scene.at(4000, What::Ready { tid: A });
        assert_eq!(scene.take(), [], "all is told");
        // Asleep counts for `any` alone.
        scene.switch(5000, 0, A, Left::Asleep, 0);
        scene.at(7000, What::Ready { tid: A });
        assert_eq!(scene.take(), []);
        scene.switch(7000, 0, 0, Left::Away, A);
        scene.switch(7001, 0, A, Left::Asleep, 0);
        scene.at(10_500, What::Ready { tid: A });
        assert_eq!(scene.take().len(), 1);
    }

    #[test]
    fn idle_cpus_count_while_somebody_waits_who_worked_just_now() {
        let stall = |left: Left, focus: &[u32], late: u64| {
            let mut scene = Scene::new(&["idle 90% 200ms"], focus);
            scene.switch(10, 1, 0, Left::Away, 0);
            scene.switch(100, 0, A, left, B);
            scene.switch(100 + late, 0, B, Left::Asleep, 0);
            for ms in (0..10).map(|i| 100 + late + i * 50) {
                scene.scan(ms);
            }
            scene.take()
        };
        let told = stall(Left::Futex, &[], 0);
        assert!(told.len() == 1 && told[0].1.contains(&format!("while thread {A} waited in futex")), "{told:?}");
        assert_eq!(stall(Left::Uninterruptibly, &[A], 0).len(), 1);
        assert_eq!(stall(Left::Asleep, &[], 0), []);
        assert_eq!(stall(Left::Futex, &[B], 0), [], "not of the target");
        assert_eq!(stall(Left::Futex, &[], 11_000), [], "it has waited for long");
    }

    #[test]
    fn who_ends_is_forgotten_and_so_is_all_after_a_loss() {
        let mut scene = Scene::new(&["wait 1s x any"], &[]);
        scene.threads.name(A, A, "x");
        for n in 0..1000 {
            scene.at(n, What::Fork { parent: A, parent_pid: A, pid: B + n as u32, tid: B + n as u32 });
            scene.switch(n, 0, B + n as u32, Left::Asleep, 0);
            scene.at(n, What::Exit { tid: B + n as u32 });
        }
        assert_eq!(scene.threads.known.len(), 0);
        scene.switch(1000, 0, A, Left::Futex, 0);
        scene.threads.forget();
        scene.at(9000, What::Ready { tid: A });
        scene.scan(9000);
        assert_eq!(scene.take(), []);
    }
}
