//! What a path leads to.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Module;

/// How many imports are followed: imports of imports may lead back to themselves.
const DEPTH: usize = 12;

/// What a path leads to, or goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A module as such, or something in it that has no place.
    Module(usize),
    /// An item of a module's own file: the numbers of both.
    Item(usize, usize),
}

/// The names of a crate.
pub struct Names<'a> {
    modules: &'a [Module],
    /// Items by name, for each module.
    items: Vec<BTreeMap<&'a str, Vec<usize>>>,
    /// Macros of the crate: they are in scope by order, without a path.
    macros: BTreeMap<&'a str, Target>,
    /// What stands in an `impl` of an item, by the item and its own name.
    methods: BTreeMap<(Target, &'a str), Vec<Target>>,
}

type Found = BTreeSet<Target>;

impl<'a> Names<'a> {
    /// Of all modules of a crate.
    pub fn new(modules: &'a [Module]) -> Self {
        let mut names = Names { modules, items: Vec::new(), macros: BTreeMap::new(), methods: BTreeMap::new() };
        for (m, module) in modules.iter().enumerate() {
            let mut items: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for (i, item) in module.items.iter().enumerate() {
                items.entry(&item.name).or_default().push(i);
                if item.is_macro {
                    names.macros.insert(&item.name, Target::Item(m, i));
                }
            }
            names.items.push(items);
        }
        let mut methods: BTreeMap<(Target, &str), Vec<Target>> = BTreeMap::new();
        for (m, module) in modules.iter().enumerate() {
            for (i, item) in module.items.iter().enumerate() {
                let (Some(of), Some((_, name))) = (&item.of, item.name.split_once("::")) else { continue };
                for of in names.targets(m, of) {
                    methods.entry((of, name)).or_default().push(Target::Item(m, i));
                }
            }
        }
        Names { methods, ..names }
    }

    /// All that the path leads to and through, as it stands in the module numbered `from`.
    pub fn targets(&self, from: usize, path: &[String]) -> BTreeSet<Target> {
        let mut found = Found::new();
        self.resolve(from, path, DEPTH, &mut found);
        if let ([name], true) = (path, found.is_empty()) {
            found.extend(self.macros.get(name.as_str()));
        }
        found
    }

    /// Follows a path; where it ends. `found` gets that, and all that it goes through.
    fn resolve(&self, from: usize, path: &[String], depth: usize, found: &mut Found) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let parent = self.modules[from].parent.unwrap_or(from);
        match first.as_str() {
            "crate" => self.walk(0, rest, depth, found),
            "self" if rest.first().is_some_and(|word| word == "super") => self.resolve(from, rest, depth, found),
            "self" => self.walk(from, rest, depth, found),
            "super" if rest.first().is_some_and(|word| word == "super") => self.resolve(parent, rest, depth, found),
            "super" => self.walk(parent, rest, depth, found),
            _ => self.name(from, path, depth, found).unwrap_or_default(),
        }
    }

    /// The rest of a path that has come to module `at`.
    fn walk(&self, at: usize, path: &[String], depth: usize, found: &mut Found) -> Vec<Target> {
        found.insert(Target::Module(at));
        if path.is_empty() {
            return vec![Target::Module(at)];
        }
        self.name(at, path, depth, found).unwrap_or_else(|| {
            // What a macro defines, if anything.
            let made: Vec<Target> =
                self.items[at].get("").into_iter().flatten().map(|i| Target::Item(at, *i)).collect();
            found.extend(&made);
            made
        })
    }

    /// Follows a path that begins with a name in module `at`; `None` if it has no such name.
    fn name(&self, at: usize, path: &[String], depth: usize, found: &mut Found) -> Option<Vec<Target>> {
        let ((name, rest), depth) = (path.split_first()?, depth.checked_sub(1)?);
        let module = &self.modules[at];
        let mut ends = None;
        if let Some(child) = module.children.get(name) {
            ends.get_or_insert_with(Vec::new).extend(self.walk(*child, rest, depth, found));
        }
        for i in self.items[at].get(name.as_str()).into_iter().flatten() {
            let item = Target::Item(at, *i);
            found.insert(item);
            let method = rest.first().and_then(|method| self.methods.get(&(item, method.as_str())));
            found.extend(method.into_iter().flatten());
            ends.get_or_insert_with(Vec::new).push(item);
        }
        for import in module.imports.iter().filter(|import| import.name.as_ref() == Some(name)) {
            found.insert(Target::Module(at));
            let path = [&import.from.path, rest].concat();
            ends.get_or_insert_with(Vec::new).extend(self.resolve(at, &path, depth, found));
        }
        if ends.is_some() {
            return ends;
        }
        for glob in module.imports.iter().filter(|import| import.name.is_none()) {
            for end in self.resolve(at, &glob.from.path, depth, &mut Found::new()) {
                if let Target::Module(of) = end {
                    let mut through = Found::from([Target::Module(at), Target::Module(of)]);
                    if let Some(further) = self.name(of, path, depth, &mut through) {
                        found.extend(through);
                        ends.get_or_insert_with(Vec::new).extend(further);
                    }
                }
            }
        }
        ends
    }
}
