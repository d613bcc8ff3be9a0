//! Takes out of a trace what tells whose machine it was, and what it worked on: command lines, paths, the host's name, arguments of spans.
//!
//! The same always becomes the same, and different things stay different, so that what is said of the trace stays true and readable. Of
//! a file's path its name stays, behind a number for its folder: `d3/cache.c`. Of what a span was about (a statement, an address, a customer's
//! key), or a process (a script, a class), a number stays: `a7`. Names of functions, threads, processes and spans, and code, stay: they are what a report is about.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::tables::{Codes, LineRow, Locations};
use crate::{Dictionary, Note, Result, StringId, Table, Trace};

/// By these parts of a path the analysis knows whose code a file holds. They tell nothing of the machine and stay, with what is before
/// them taken off.
const PUBLIC: [&str; 7] =
    ["/rustc/", "/library/std/src/", "/include/c++/", "/usr/include/", "/lib/gcc/", "/lib/clang/", "/.cargo/registry/"];
/// What stands for the host.
const HOST: &str = "host";
/// Shorter names of hosts are too likely to be something else.
const SHORTEST_HOST: usize = 2;

/// Takes command lines, paths, the host's name and the arguments of spans out of `trace`.
///
/// # Errors
/// If a table is damaged.
pub fn redact(trace: &mut Trace) -> Result<()> {
    trace.events.load()?;
    let mut redactor = Redactor { host: trace.meta.host.name.clone(), ..Redactor::default() };
    let roles = roles(trace);
    let mut strings = Dictionary::empty_for_reading();
    for (i, text) in trace.strings.iter().enumerate() {
        let id = StringId(i as u32);
        let new = match () {
            () if roles.code.contains(&id) => text.to_owned(),
            () if roles.groups.contains(&id) => redactor.group(text),
            () if roles.paths.contains(&id) => redactor.path(text),
            () if roles.functions.contains(&id) => redactor.paths_in(text),
            () if roles.arguments.contains(&id) => format!("a{}", number(&mut redactor.arguments, text)),
            () => redactor.text(text),
        };
        strings.append(&new);
    }
    trace.strings = strings;
    let meta = &mut trace.meta;
    meta.host.name = String::new();
    meta.command = if meta.command.is_empty() { Vec::new() } else { vec!["(redacted)".to_owned()] };
    for note in &mut meta.notes {
        *note = Note::new(note.kind, redactor.text(&note.text));
    }
    meta.redacted = true;
    Ok(())
}

/// What strings are, by the columns that refer to them.
#[derive(Default)]
struct Roles {
    /// Code bytes.
    code: FxHashSet<StringId>,
    paths: FxHashSet<StringId>,
    groups: FxHashSet<StringId>,
    functions: FxHashSet<StringId>,
    /// What spans were about.
    arguments: FxHashSet<StringId>,
}

fn roles(trace: &mut Trace) -> Roles {
    let mut roles = Roles::default();
    let (locations, codes, lines): (&Locations, &Codes, _) = trace.names.tables();
    roles.code.extend(&codes.bytes);
    roles.paths.extend(locations.module.iter().chain(&locations.file).chain(&codes.module));
    roles.functions.extend(locations.function.iter().chain(&codes.function));
    for LineRow { function, module, code, inlined, file, .. } in lines.rows() {
        roles.code.insert(code);
        roles.paths.extend([module, file]);
        roles.functions.extend([function, inlined]);
    }
    let events = &trace.events;
    roles.paths.extend(events.images.iter().flatten().map(|r| r.path));
    roles.groups.extend(events.placements.iter().flatten().map(|r| r.group));
    roles.groups.extend(events.quotas.iter().flatten().map(|r| r.group));
    roles.arguments.extend(events.spans.iter().flatten().map(|r| r.argument));
    roles.arguments.extend(events.subjects.iter().flatten().map(|r| r.what));
    // A word that is a name besides is told by that name.
    for span in events.spans.iter().flatten() {
        roles.arguments.remove(&span.name);
    }
    for thread in trace.threads.rows() {
        roles.arguments.remove(&thread.name);
        roles.arguments.remove(&thread.process);
    }
    // The empty string is nothing.
    for of in [&mut roles.code, &mut roles.paths, &mut roles.groups, &mut roles.functions, &mut roles.arguments] {
        of.remove(&StringId(0));
    }
    roles
}

/// Gives each thing its number.
#[derive(Default)]
struct Redactor {
    host: String,
    folders: FxHashMap<String, usize>,
    groups: FxHashMap<String, usize>,
    arguments: FxHashMap<String, usize>,
}

impl Redactor {
    /// A path: its folder becomes a number, its name stays.
    fn path(&mut self, text: &str) -> String {
        let Some(at) = text.rfind(['/', '\\']) else { return self.without_host(text) };
        let (folder, name) = (&text[..at], &text[at + 1..]);
        let name = self.without_host(name);
        // Of kernels and of what is no file: `[vdso]`, `//anon`.
        if folder.trim_matches('/').is_empty() {
            return format!("{}{name}", &text[..=at]);
        }
        let public = PUBLIC.iter().find(|part| text.contains(**part)).map_or("/", |part| part);
        format!("d{}{public}{name}", number(&mut self.folders, folder))
    }

    /// A control group: each of its parts becomes a number, so that what is above stays above.
    fn group(&mut self, text: &str) -> String {
        let part = |part: &str| match part {
            "" => String::new(),
            part => format!("g{}", number(&mut self.groups, part)),
        };
        text.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// Any text: paths in it, and the host's name.
    fn text(&mut self, text: &str) -> String {
        let text = self.paths_in(text);
        self.without_host(&text)
    }

    /// Text in which only whole paths, from a root on, are replaced: `kworker/0:1` is none.
    fn paths_in(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = root(rest, out.chars().next_back()) {
            out.push_str(&rest[..at]);
            let length = rest[at..].find(ends_path).unwrap_or(rest.len() - at);
            // What ends a sentence does not belong to the path.
            let path = rest[at..at + length].trim_end_matches(['.', ',', ':', ';']);
            out.push_str(&self.path(path));
            rest = &rest[at + path.len()..];
        }
        out.push_str(rest);
        out
    }

    fn without_host(&self, text: &str) -> String {
        if self.host.len() < SHORTEST_HOST || !text.contains(&self.host) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(&self.host) {
            let (before, after) = (&rest[..at], &rest[at + self.host.len()..]);
            let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let inside = word(before.chars().next_back().or(out.chars().next_back())) || word(after.chars().next());
            out.push_str(before);
            out.push_str(if inside { &self.host } else { HOST });
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

fn number(numbers: &mut FxHashMap<String, usize>, of: &str) -> usize {
    let next = numbers.len() + 1;
    *numbers.entry(of.to_owned()).or_insert(next)
}

/// Where a path begins: at a `/` that nothing stands before that it could belong to, with a name behind it, or at a drive.
fn root(text: &str, before: Option<char>) -> Option<usize> {
    let free = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || "_/\\.-~".contains(c)));
    let mut last = before;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let named = |skip: usize| rest[skip..].chars().next().is_some_and(|c| !ends_path(c) && c != '/');
        let drive = c.is_ascii_alphabetic() && rest[1..].starts_with(":\\");
        if free(last) && ((c == '/' && named(1)) || drive || rest.starts_with("~/")) {
            return Some(at);
        }
        last = Some(c);
    }
    None
}

fn ends_path(c: char) -> bool {
    c.is_whitespace() || "\"'`<>()|*?,;".contains(c)
}

#[cfg(test)]
mod tests;
