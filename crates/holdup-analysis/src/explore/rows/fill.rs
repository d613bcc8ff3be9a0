//! Fills columns from rows.

use std::sync::Arc;

use holdup_trace::{LockId, LockKind, StackId, StringId, Syscall, Table as _, ThreadIdx, Trace, WakeContext};
use rustc_hash::FxHashMap;

use super::instructions::Instructions;
use super::{Actor, Def, Get, Provider, frames};
use crate::explore::relation::{Column, Data, MISSING, Relation, Text};
use crate::explore::{Error, Explorer, Result, Scope};

/// Fills the columns `names` with the rows of `scope`. O(rows) for each column.
pub(super) fn fill<P: Provider>(explorer: &Explorer, names: &[String], scope: &Scope) -> Result<Relation> {
    let mut filling: Vec<Filling<P::Row>> = names.iter().map(|n| Filling::new::<P>(explorer, n)).collect();
    let mut rows = 0;
    P::scan(explorer, &mut |row| {
        if !scope.contains(P::thread(row), P::span(row)) {
            return Ok(());
        }
        rows += 1;
        if rows > u32::MAX as usize {
            return Err(Error::Question("more than 4 billion rows: narrow the question down with --window".to_owned()));
        }
        filling.iter_mut().for_each(|column| column.push(row));
        Ok(())
    })?;
    let columns = filling.into_iter().zip(names).map(|(f, name)| f.finish(name.clone()));
    Ok(Relation::new(columns.map(Arc::new).collect(), rows))
}

/// A column that is being filled.
struct Filling<'a, R: 'static> {
    def: &'static Def<R>,
    values: Values<'a, R>,
}

type Key<'a, R> = Box<dyn Fn(&R) -> u32 + 'a>;
type Name<'a> = Box<dyn Fn(u32) -> String + 'a>;

enum Values<'a, R: 'static> {
    Numbers(Box<dyn Fn(&R) -> u64 + 'a>, Vec<u64>),
    Words(fn(&R) -> &'static str, Coder),
    /// Texts that follow from an id; `memo` has the code of each id plus one.
    Named {
        key: Key<'a, R>,
        name: Name<'a>,
        memo: Vec<u32>,
        coder: Coder,
    },
}

impl<'a, R: 'static> Filling<'a, R> {
    fn new<P: Provider<Row = R>>(explorer: &'a Explorer, name: &str) -> Self {
        let (def, n) = find::<P>(name).expect("names are resolved before columns are filled");
        let trace = explorer.trace;
        let named =
            |key: Key<'a, R>, name: Name<'a>| Values::Named { key, name, memo: Vec::new(), coder: Coder::default() };
        let stack = |get: fn(&R) -> StackId, part| {
            let name = move |id| frames::text(trace, &explorer.classifier, StackId(id), part);
            named(Box::new(move |r| get(r).0), Box::new(name))
        };
        let values = match def.get {
            Get::Number(get) => Values::Numbers(Box::new(get), Vec::new()),
            Get::Word(get) => Values::Words(get, Coder::default()),
            Get::Text(get) => named(Box::new(move |r| get(r).0), Box::new(|id| trace.text(StringId(id)).to_owned())),
            Get::ThreadNumber(get, part) => {
                let number = move |r: &R| trace.thread(get(r)).map_or(MISSING, |t| u64::from(part(&t)));
                Values::Numbers(Box::new(number), Vec::new())
            }
            Get::Process(get) => named(actor_key(get), Box::new(|id| actor(trace, id, true))),
            Get::Thread(get) => named(actor_key(get), Box::new(|id| actor(trace, id, false))),
            Get::Stack(get, part) => stack(get, part),
            Get::StackAt(get, part) => stack(get, part(n)),
            Get::Instruction(get) => {
                let all = Instructions::new(trace, explorer.disassembler);
                named(Box::new(move |r| get(r).0), Box::new(move |id| all.text(StackId(id))))
            }
            Get::Lock(get) => named(Box::new(move |r| get(r).0), Box::new(|id| lock(trace, LockId(id)))),
            Get::Call(get) => named(Box::new(move |r| call_key(get(r))), Box::new(|key| call(trace, key))),
        };
        Filling { def, values }
    }

    fn push(&mut self, row: &R) {
        match &mut self.values {
            Values::Numbers(get, to) => to.push(get(row)),
            Values::Words(get, coder) => {
                let code = coder.code(get(row));
                coder.ids.push(code);
            }
            Values::Named { key, name, memo, coder } => {
                let id = key(row) as usize;
                if memo.len() <= id {
                    memo.resize(id + 1, 0);
                }
                if memo[id] == 0 {
                    memo[id] = coder.code(&name(id as u32)) + 1;
                }
                coder.ids.push(memo[id] - 1);
            }
        }
    }

    fn finish(self, name: String) -> Column {
        let data = match self.values {
            Values::Numbers(_, values) => Data::Numbers(values),
            Values::Words(_, coder) | Values::Named { coder, .. } => {
                Data::Text(Text { ids: coder.ids, values: Arc::new(coder.values) })
            }
        };
        Column { name, unit: self.def.info.unit, doc: self.def.info.doc, data }
    }
}

/// The column of that name, and the number behind its colon.
fn find<P: Provider>(name: &str) -> Option<(&'static Def<P::Row>, usize)> {
    P::COLUMNS.iter().find_map(|d| match d.info.name.strip_suffix('N') {
        Some(stem) if stem.ends_with(':') => Some((d, name.strip_prefix(stem)?.parse().ok()?)),
        _ => (d.info.name == name).then_some((d, 0)),
    })
}

/// Gives each text an id.
#[derive(Default)]
struct Coder {
    ids: Vec<u32>,
    values: Vec<Arc<str>>,
    known: FxHashMap<Arc<str>, u32>,
}

impl Coder {
    fn code(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.known.get(text) {
            return id;
        }
        let id = self.values.len() as u32;
        let text: Arc<str> = text.into();
        self.values.push(text.clone());
        self.known.insert(text, id);
        id
    }
}

/// Contexts come before threads.
const CONTEXTS: u32 = 8;

fn actor_key<'a, R: 'static>(get: fn(&R) -> Actor) -> Key<'a, R> {
    Box::new(move |r| match get(r) {
        Actor(ThreadIdx::NONE, context) => u32::from(context.code()).min(CONTEXTS - 1),
        Actor(thread, _) => thread.0.saturating_add(CONTEXTS),
    })
}

fn actor(trace: &Trace, key: u32, process: bool) -> String {
    if let Some(thread) = key.checked_sub(CONTEXTS) {
        let row = trace.thread(ThreadIdx(thread));
        return row.map_or(String::new(), |t| trace.text(if process { t.process } else { t.name }).to_owned());
    }
    match WakeContext::from_code(key as u8) {
        WakeContext::Task | WakeContext::Unknown => String::new(),
        context => format!("[{}]", context.name()),
    }
}

/// The lock's name or address.
fn lock(trace: &Trace, lock: LockId) -> String {
    if lock == LockId::NONE {
        return String::new();
    }
    if lock.index() >= trace.locks.len() {
        return "lock of unknown address".to_owned();
    }
    let row = trace.locks.row(lock.index());
    match (trace.text(row.name), row.kind) {
        ("", LockKind::Unknown | LockKind::Other) => format!("lock {:#x}", row.address),
        ("", LockKind::File) => format!("file lock {:#x}", row.address),
        ("", kind) => format!("{} {:#x}", kind.name(), row.address),
        (name, _) => name.to_owned(),
    }
}

/// 0 for none, else the number plus one.
fn call_key(number: i16) -> u32 {
    u32::try_from(i32::from(number) + 1).unwrap_or(0)
}

fn call(trace: &Trace, key: u32) -> String {
    let number = key as i32 - 1;
    if let Some(reason) = i16::try_from(number).ok().and_then(Syscall::wait_reason) {
        return reason.to_owned();
    }
    let meaning = i16::try_from(number).map_or(Syscall::None, |n| Syscall::from_number(&trace.meta.host.arch, n));
    let word = match meaning {
        Syscall::None => return String::new(),
        Syscall::Futex => "futex",
        Syscall::Sleep => "sleep",
        Syscall::Poll => "poll",
        Syscall::Accept => "accept",
        Syscall::Connect => "connect",
        Syscall::Read => "read",
        Syscall::Write => "write",
        Syscall::WaitChild => "wait",
        Syscall::Sync => "sync",
        Syscall::WaitSignal => "sigwait",
        Syscall::FileLock => "flock",
        Syscall::Exit => "exit",
        Syscall::Yield => "yield",
        Syscall::Other => return format!("#{number}"),
    };
    format!("{word} #{number}")
}
