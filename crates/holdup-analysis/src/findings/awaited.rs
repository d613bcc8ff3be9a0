//! Whom a server waits for while it keeps a lock: its client, which forgets that others wait, too; or what the network of this machine held back.

use holdup_trace::{Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::doing::{Doing, each_wait};
use super::spans::merged;
use super::tally::{Group, Tally};
use super::turns;
use crate::intervals::{Place, Wait};
use crate::report::Activity;
use crate::turns::Delays;

/// What is waited for for most of the time.
pub(super) enum Awaited {
    Client(Client),
    /// A message of this program, which lay in this machine's kernel meanwhile.
    HeldBack(StringId),
}

/// A client, and what it did for most of the time in which its server waited for it.
pub(super) struct Client {
    process: StringId,
    doing: Doing,
}

/// Less of the time than this share is known to be one client's: then nothing is said of it.
const MOSTLY: f64 = 0.5;

/// What it is for each lock whose keeper waits for something. O(waits × locks).
pub(super) fn awaited(context: &Context, groups: &[(Group, Tally)]) -> FxHashMap<Group, Awaited> {
    let waits = |group: &Group, tally: &Tally| match group {
        Group::Outside(..) => true,
        _ => group.is_lock() && tally.activity() == Activity::Waited,
    };
    let waiting = groups.iter().filter(|(group, tally)| waits(group, tally));
    let pairs = context.learned.turns.held_back().pairs();
    let sender = |tally| held_back(context, &pairs, tally);
    let held_back = waiting.filter_map(|(group, tally)| Some((*group, Awaited::HeldBack(sender(tally)?))));
    let clients = of_locks(context, groups).into_iter().map(|(group, client)| (group, Awaited::Client(client)));
    clients.chain(held_back).collect()
}

/// The program of which the network held messages back for most of the time, where `pairs` are those that receive and that send such.
/// O(pairs + spans).
fn held_back(context: &Context, pairs: &[(ThreadIdx, ThreadIdx, Delays)], tally: &Tally) -> Option<StringId> {
    let theirs = pairs.iter().filter(|(receiver, ..)| tally.ends().contains_key(receiver));
    let mut of: FxHashMap<StringId, u64> = FxHashMap::default();
    theirs.for_each(|(_, sender, delays)| *of.entry(context.program(*sender)).or_default() += delays.lasted());
    let (sender, ns) = of.into_iter().max_by_key(|(sender, ns)| (*ns, std::cmp::Reverse(*sender)))?;
    let (_, waited) = merged(tally.spans(&context.blame.spans, |_| true).collect(), 0);
    (ns as f64 > MOSTLY * waited as f64).then_some(sender)
}

/// Who it is for each lock whose keeper mostly waits for one program that the trace shows, be it that nothing but who waits for whom tells of
/// the lock.
fn of_locks(context: &Context, groups: &[(Group, Tally)]) -> FxHashMap<Group, Client> {
    let waits_within = |(group, tally): &&(Group, Tally)| {
        group.is_lock() && tally.activity() == Activity::Waited || keeps_siblings_waiting(context, group, tally)
    };
    let mut locks: Vec<_> = groups.iter().filter(waits_within).map(|(g, tally)| (g, Meanwhile::of(tally))).collect();
    if locks.is_empty() {
        return FxHashMap::default();
    }
    // Each thread's wait that began last.
    let mut last: FxHashMap<ThreadIdx, Wait> = FxHashMap::default();
    let followed = each_wait(
        context,
        |_| true,
        |wait| {
            locks.iter_mut().for_each(|(_, meanwhile)| meanwhile.add_next(context, wait, &last));
            last.insert(wait.thread, *wait);
        },
    );
    // Where nothing but who waits for whom tells of the lock, it is none that a client keeps who waits itself, perhaps for this server.
    let is_busy = |client: &Client| !matches!(client.doing, Doing::Waits(_));
    let known = locks.into_iter().filter_map(|(group, meanwhile)| Some((*group, meanwhile.client()?)));
    let known = known.filter(|(group, client)| group.is_lock() || is_busy(client));
    followed.map(|()| known.collect()).unwrap_or_default()
}

/// Whether a server waits for whoever gives it work while threads of its own that are in the middle of theirs wait for it.
fn keeps_siblings_waiting(context: &Context, group: &Group, tally: &Tally) -> bool {
    let servers: FxHashSet<StringId> = tally.ends().keys().map(|thread| context.program(*thread)).collect();
    // Elsewhere it waits for what it has asked for.
    let is_at_home = || context.timeline.place(tally.main_site(context.classifier)) == Place::Home;
    matches!(group, Group::Outside(..))
        && is_at_home()
        && tally.ends().keys().all(|thread| context.is_server(*thread))
        && tally.threads.iter().any(|thread| servers.contains(&context.program(*thread)))
}

impl Awaited {
    /// What is said of it after "waiting for", where `own` is whose client it is: `its`.
    pub(super) fn words(&self, context: &Context, own: &str) -> String {
        match self {
            Awaited::Client(Client { process, doing }) => {
                format!("{own} client {}, which {}", context.trace.text(*process), doing.past(context))
            }
            Awaited::HeldBack(sender) => format!(
                "what the network held back of {}'s messages (Nagle and delayed acknowledgement)",
                context.trace.text(*sender)
            ),
        }
    }

    /// What to do about it.
    pub(super) fn advice(&self, context: &Context) -> String {
        match self {
            Awaited::Client(Client { process, doing }) => format!(
                "End the transaction, or let the lock go, before {} {}, or give it a time-out.",
                context.trace.text(*process),
                doing.present(context)
            ),
            Awaited::HeldBack(sender) => turns::no_delay(context.trace.text(*sender)),
        }
    }
}

/// What the clients do while one that keeps the lock waits for them.
struct Meanwhile {
    /// Who waits for clients, and where.
    sites: FxHashSet<(ThreadIdx, StackId)>,
    /// Since when, and until when, each client is waited for.
    open: FxHashMap<ThreadIdx, (u64, u64)>,
    /// By program.
    did: FxHashMap<StringId, FxHashMap<Doing, Nanos>>,
}

impl Meanwhile {
    fn of(tally: &Tally) -> Meanwhile {
        let sites = tally.subjects().map(|key| (key.thread, key.site)).collect();
        Meanwhile { sites, open: FxHashMap::default(), did: FxHashMap::default() }
    }

    /// The wait that begins next, where `last` has each thread's one before.
    fn add_next(&mut self, context: &Context, wait: &Wait, last: &FxHashMap<ThreadIdx, Wait>) {
        if let Some(&window) = self.open.get(&wait.thread) {
            self.add_wait(context, wait, window);
        }
        if !self.sites.contains(&(wait.thread, wait.stack)) {
            return;
        }
        let (client, window) = (wait.waker, (wait.start, wait.woken));
        if client.is_real() && context.program(client) != context.program(wait.thread) {
            self.add(context, client, Doing::Runs, Nanos(wait.woken.saturating_sub(wait.start)));
            if let Some(before) = last.get(&client) {
                self.add_wait(context, before, window);
            }
            self.open.insert(client, window);
        }
    }

    /// What of a client's wait lies within that time.
    fn add_wait(&mut self, context: &Context, wait: &Wait, (from, to): (u64, u64)) {
        let within = |a: u64, b: u64| Nanos(b.min(to).saturating_sub(a.max(from)));
        self.add(context, wait.thread, Doing::of(context, wait), within(wait.start, wait.woken));
        self.add(context, wait.thread, Doing::Ready, within(wait.woken, wait.resumed));
    }

    /// What a client does; while it does anything else it does not work.
    fn add(&mut self, context: &Context, client: ThreadIdx, doing: Doing, time: Nanos) {
        let did = self.did.entry(context.program(client)).or_default();
        *did.entry(doing).or_default() += time;
        if doing != Doing::Runs {
            let ran = did.entry(Doing::Runs).or_default();
            ran.0 = ran.0.saturating_sub(time.0);
        }
    }

    fn client(self) -> Option<Client> {
        let all: Nanos = self.did.values().flat_map(FxHashMap::values).copied().sum();
        let each = self.did.iter().flat_map(|(process, did)| did.iter().map(|(doing, time)| (*time, *process, *doing)));
        let (time, process, doing) = each.max_by_key(|(time, ..)| *time)?;
        (time.amount() > all.amount() * MOSTLY).then_some(Client { process, doing })
    }
}
